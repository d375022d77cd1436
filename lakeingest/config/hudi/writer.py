"""Tell which ``hoodie.*`` settings lakeingest passes on to Hudi's writer, and which do nothing.

Settings about files, index and table services go to the writer. Settings about merging, keys and
order of rows do not: lakeingest decides those (``streamer/settings.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lakeingest.config.hudi.table_services import is_on

_OF_WRITER = re.compile(
    r"""hoodie\.(archive|aws|bloom\.index|bucket|bulkinsert|clean|cleaner|client\.heartbeat|clustering
    |compact|compaction|copyonwrite|delete\.shuffle|embed|fail\.writes|finalize\.write
    |global\.simple\.index|index|insert|keep|logfile|markers|memory|metadata|parquet|record\.index
    |rollback|simple\.index|storage|upsert|write\.concurrency|write\.lock|write\.markers)\.""",
    re.VERBOSE,
)
_FOLDERS = "hoodie.datasource.write.hive_style_partitioning"

_SWITCHES = {
    "hoodie.clean.commits.retained": ("hoodie.clean.automatic",),
    "hoodie.cleaner.commits.retained": ("hoodie.clean.automatic",),
    "hoodie.keep.min.commits": ("hoodie.archive.automatic",),
    "hoodie.keep.max.commits": ("hoodie.archive.automatic",),
    "hoodie.compact.inline.max.delta.commits": (
        "hoodie.compact.inline",
        "hoodie.compact.schedule.inline",
    ),
    "hoodie.clustering.inline.max.commits": (
        "hoodie.clustering.inline",
        "hoodie.clustering.schedule.inline",
    ),
}
"""Map from the setting for a table service's frequency to the switches that enable the service."""

_BESIDE_A_STREAM = "hoodie.clustering.async.enabled"
"""Hudi's streamer runs this service in its own thread; lakeingest has none."""


def is_of_writer(name: str) -> bool:
    """Return whether a key is about Hudi's files, index or services, not a table's content."""
    return _OF_WRITER.match(name) is not None or name == _FOLDERS


def writer_warnings(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each setting that lakeingest passes on, but that has no effect.

    Hudi's streamer cleans, archives and compacts by default; lakeingest does so only if a switch is
    on. So a frequency without the switch, which had an effect in the streamer, gets a warning.
    (``table_services.py`` refuses the settings that must not be passed on.)

    Args:
        settings: Texts by Hudi's key; only those that are passed on.
    """
    for key, switches in _SWITCHES.items():
        if key in settings and not any(is_on(settings, switch) for switch in switches):
            yield (
                f"{key} has no effect without {switches[0]}=true: no table service works here "
                "unless it is switched on"
            )
    if is_on(settings, _BESIDE_A_STREAM):
        yield (
            f"{_BESIDE_A_STREAM} has no effect: set hoodie.clustering.inline=true to cluster with "
            "commits, or hoodie.clustering.schedule.inline=true and have it done elsewhere"
        )
