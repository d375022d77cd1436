"""Refuse cells of ``value`` and ``set`` that cannot be read (``decode/cell.py``).

A table's records are read in one way. Where some come in cells and some do not, the connector's
plugin was changed over topics that hold the old records still. With another connector nobody looks
for cells that are left out, and an update would make NULL of what it does not name.
"""

from __future__ import annotations

from lakeingest.decode.wire import Shown
from lakeingest.envelope.change import FAMILIES
from lakeingest.errors import ConfigError


def refuse_cells(collection: str, shown: Shown, connector: str) -> None:
    """Stop at a table whose cells cannot be read.

    Args:
        collection: The source table.
        shown: What its records show.
        connector: One of ``FAMILIES``.

    Raises:
        ConfigError: Only some of the records come in cells, or the connector sends none.
    """
    if shown.mixed:
        message = (
            f"Some records of table '{collection}' come wrapped as value and set, and some do "
            "not: plugin.name of the connector was changed. Start it over with other topics "
            "(topic.prefix), and load the tables anew. Nothing of this batch was published."
        )
        raise ConfigError(message)
    if shown.reader.cells and not FAMILIES[connector].cells:
        message = (
            f"The columns of table '{collection}' come wrapped as value and set, as YugabyteDB's "
            "connectors write them. Set lakeingest.source.connector=yugabytedb. Nothing of this "
            "batch was published."
        )
        raise ConfigError(message)
