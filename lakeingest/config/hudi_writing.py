"""Check Hudi's settings about writing: pass on, follow anyway, warn about, or refuse each.

lakeingest alone decides the content of a table: the last row of the source. A setting with the same
meaning gets no message. A setting that would give another row only for late events gets a warning,
because the table is then nearer to the source than before. A setting that would always give other
rows is refused: to ignore it would silently change the table for its readers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakeingest.config import hudi_keys
from lakeingest.config.hudi_keys import HudiKey
from lakeingest.config.hudi_services import is_on
from lakeingest.config.properties import Value

_OF_WRITER = tuple(
    f"hoodie.{what}."
    for what in (
        "archive",
        "aws",
        "bloom.index",
        "bucket",
        "bulkinsert",
        "clean",
        "cleaner",
        "client.heartbeat",
        "clustering",
        "compact",
        "compaction",
        "copyonwrite",
        "delete.shuffle",
        "embed",
        "fail.writes",
        "finalize.write",
        "global.simple.index",
        "index",
        "insert",
        "keep",
        "logfile",
        "markers",
        "memory",
        "metadata",
        "parquet",
        "record.index",
        "rollback",
        "simple.index",
        "storage",
        "upsert",
        "write.concurrency",
        "write.lock",
        "write.markers",
    )
)

_FOLDERS = "hoodie.datasource.write.hive_style_partitioning"

# The columns by which the Debezium payload classes order. lakeingest's order by log position is the
# same order, made total.
_ORDERED_BY_POSITION = {"_event_lsn", "_event_seq", "_event_bin_file", "_event_pos", "_event_row"}

_SWITCHES = {
    "hoodie.clean.commits.retained": "hoodie.clean.automatic",
    "hoodie.cleaner.commits.retained": "hoodie.clean.automatic",
    "hoodie.keep.min.commits": "hoodie.archive.automatic",
    "hoodie.keep.max.commits": "hoodie.archive.automatic",
    "hoodie.compact.inline.max.delta.commits": "hoodie.compact.inline",
    "hoodie.clustering.inline.max.commits": "hoodie.clustering.inline",
}
"""Map from the setting for a table service's frequency to the switch that enables the service."""

_OTHER_SWITCHES = {
    "hoodie.compact.inline": "hoodie.compact.schedule.inline",
    "hoodie.clustering.inline": "hoodie.clustering.schedule.inline",
}

_BESIDE_A_STREAM = "hoodie.clustering.async.enabled"
"""Hudi's streamer runs this service in its own thread; lakeingest has none."""

PAYLOAD_CONNECTORS = {
    "PostgresDebeziumAvroPayload": "postgresql",
    "MySqlDebeziumAvroPayload": "mysql",
}
"""Connector by the payload class for its events."""

# Payloads and mergers that keep the newest row, by arrival or by a column.
_NEWEST_WINS = {
    "OverwriteWithLatestAvroPayload",
    "DefaultHoodieRecordPayload",
    "EventTimeAvroPayload",
    "OverwriteWithLatestMerger",
    "OverwriteWithLatestSparkRecordMerger",
}

_HIGHEST_WINS = {
    "DefaultSparkRecordMerger",
    "HoodieAvroRecordMerger",
    "HoodiePreCombineAvroRecordMerger",
    "HoodieSparkRecordMerger",
}
"""Hudi's merger classes that choose the row by the ordering columns or by the payload."""

_NOT_BY_A_CLASS = (
    "rows are not merged by a class, they are what the source had last; remove it if that is wanted"
)

_OF_EVENT_TIME, _OF_COMMIT_TIME, _OF_PAYLOAD = (
    "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "ce9acb64-bde0-424c-9b91-f6ebba25356d",
    "00000000-0000-0000-0000-000000000000",
)
"""Hudi's ids of its merge modes, as in its files and tables."""


@dataclass
class Said:
    """The messages about settings.

    Attributes:
        warnings: Messages about settings that lakeingest does not follow to the letter.
        problems: Messages about settings that are contradictory or that it cannot follow.
    """

    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def is_of_writer(name: str) -> bool:
    """Return whether a key is about Hudi's files, index or table services, not a table's content.

    Settings about merging, keys and order of rows are not among them: lakeingest decides those.
    """
    return name.startswith(_OF_WRITER) or name == _FOLDERS


def class_name(value: Value) -> str:
    """Return the name of a Java class without its package."""
    return value.text.rpartition(".")[2]


def check(settings: Mapping[HudiKey, Value], findings: Said) -> None:
    """Check the settings that lakeingest follows in any case, or can never follow.

    Args:
        settings: Values of Hudi's settings.
        findings: Receives the messages.
    """
    for key, check_setting in _CHECKS.items():
        if key in settings:
            check_setting(settings[key], findings)


def check_writer(settings: Mapping[str, Value], findings: Said) -> None:
    """Warn about settings of Hudi's writer that lakeingest passes on, but that have no effect.

    Hudi's streamer cleans, archives and compacts by default; lakeingest does so only if a switch is
    on. So a frequency without the switch, which had an effect in the streamer, gets a warning.
    (``hudi_services.py`` refuses the settings that must not be passed on.)

    Args:
        settings: Values by Hudi's key; only those that are passed on.
        findings: Receives the messages.
    """
    texts = {key: value.text for key, value in settings.items()}
    for key, switch in _SWITCHES.items():
        switches = (switch, _OTHER_SWITCHES.get(switch, switch))
        if key in texts and not any(is_on(texts, name) for name in switches):
            findings.warnings.append(
                f"{key} has no effect without {switch}=true: no table service works here unless it "
                "is switched on"
            )
    if is_on(texts, _BESIDE_A_STREAM):
        findings.warnings.append(
            f"{_BESIDE_A_STREAM} has no effect: set hoodie.clustering.inline=true to cluster with "
            "commits, or hoodie.clustering.schedule.inline=true and have it done elsewhere"
        )


def _ordering(value: Value, findings: Said) -> None:
    columns = {column.strip() for column in value.text.split(",")}
    if not columns <= _ORDERED_BY_POSITION:
        findings.warnings.append(
            f"{value.key} is not followed: rows are ordered by their place in the source's log"
        )


def _data_loss(value: Value, findings: Said) -> None:
    if value.text.lower() != "true":
        findings.warnings.append(f"{value.key} is not followed: a run stops when offsets were lost")


def _payload(value: Value, findings: Said) -> None:
    name = class_name(value)
    if name in PAYLOAD_CONNECTORS:
        return
    if name in _NEWEST_WINS:
        findings.warnings.append(_by_place(value))
        return
    findings.problems.append(
        f"{value.key}: rows are not merged by a class of Hudi's, they are what the source had "
        f"last; remove it if that is wanted ({' and '.join(PAYLOAD_CONNECTORS)} mean the same)"
    )


def _merge_mode(value: Value, findings: Said) -> None:
    mode = value.text.upper()
    if mode == "COMMIT_TIME_ORDERING":
        findings.warnings.append(
            f"{value.key} is not followed: rows are ordered by their place in the source's log, "
            "not by when they arrive"
        )
    elif mode != "EVENT_TIME_ORDERING":
        findings.problems.append(
            f"{value.key}: only EVENT_TIME_ORDERING is done here, by place in the source's log; "
            "set it, or remove the key"
        )


def _merger(value: Value, findings: Said) -> None:
    classes = {name.strip().rpartition(".")[2] for name in value.text.split(",") if name.strip()}
    if not classes <= _HIGHEST_WINS | _NEWEST_WINS:
        findings.problems.append(f"{value.key}: {_NOT_BY_A_CLASS}")
    elif not classes <= _HIGHEST_WINS:
        findings.warnings.append(_by_place(value))


def _merge_strategy(value: Value, findings: Said) -> None:
    strategy = value.text.lower()
    if strategy == _OF_COMMIT_TIME:
        findings.warnings.append(_by_place(value))
    elif strategy not in (_OF_EVENT_TIME, _OF_PAYLOAD):
        findings.problems.append(f"{value.key}: {_NOT_BY_A_CLASS}")


def _by_place(value: Value) -> str:
    return (
        f"{value.key} is not followed: a row is the one that the source had last, by its place in "
        "the source's log"
    )


def _operation(value: Value, findings: Said) -> None:
    if value.text.lower() != "upsert":
        findings.problems.append(
            f"{value.key}: only UPSERT keeps a table equal to its source, which has updates and "
            "deletes; set it, or remove it (inserts of new keys are as cheap)"
        )


def _transformer(value: Value, findings: Said) -> None:
    findings.problems.append(
        f"{value.key}: rows are not transformed, a table equals that of its source; make a view of "
        "it, or transform in a job of its own behind it"
    )


_CHECKS: Mapping[HudiKey, Callable[[Value, Said], None]] = {
    hudi_keys.ORDERING: _ordering,
    hudi_keys.DATA_LOSS: _data_loss,
    hudi_keys.PAYLOAD: _payload,
    hudi_keys.MERGE_MODE: _merge_mode,
    hudi_keys.MERGER: _merger,
    hudi_keys.MERGE_STRATEGY: _merge_strategy,
    hudi_keys.OPERATION: _operation,
    hudi_keys.TRANSFORMER: _transformer,
}
