"""What Hudi's settings say of how rows are written: handed on, kept anyway, warned of, or refused.

What is in a table is ours to decide: the row that the source had last. A setting that wants the
same is passed over in silence. One that would give another row only where events come late is a
warning, since the table is then nearer to the source than it was. One that would give other rows
whatever comes is refused, for ignoring it would change the table behind its reader's back.
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

# What the Debezium payload classes order by; our order by log position is the same, made total.
_ORDERED_BY_POSITION = {"_event_lsn", "_event_seq", "_event_bin_file", "_event_pos", "_event_row"}

_SWITCHES = {
    "hoodie.clean.commits.retained": "hoodie.clean.automatic",
    "hoodie.cleaner.commits.retained": "hoodie.clean.automatic",
    "hoodie.keep.min.commits": "hoodie.archive.automatic",
    "hoodie.keep.max.commits": "hoodie.archive.automatic",
    "hoodie.compact.inline.max.delta.commits": "hoodie.compact.inline",
    "hoodie.clustering.inline.max.commits": "hoodie.clustering.inline",
}
"""What says how often a table service works, by what lets it work at all."""

_OTHER_SWITCHES = {
    "hoodie.compact.inline": "hoodie.compact.schedule.inline",
    "hoodie.clustering.inline": "hoodie.clustering.schedule.inline",
}

_BESIDE_A_STREAM = "hoodie.clustering.async.enabled"
"""Hudi's streamer starts it as a thread of its own."""

PAYLOAD_CONNECTORS = {
    "PostgresDebeziumAvroPayload": "postgresql",
    "MySqlDebeziumAvroPayload": "mysql",
}
"""Connector by the payload class that was made for its events."""

# These payloads and mergers keep the newest row, by arrival or by a column.
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
"""Merger classes of Hudi's that leave the choice to the ordering columns, or to the payload."""

_NOT_BY_A_CLASS = (
    "rows are not merged by a class, they are what the source had last; remove it if that is wanted"
)

_OF_EVENT_TIME, _OF_COMMIT_TIME, _OF_PAYLOAD = (
    "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "ce9acb64-bde0-424c-9b91-f6ebba25356d",
    "00000000-0000-0000-0000-000000000000",
)
"""Hudi's ids of its merge modes, as its files and tables have them."""


@dataclass
class Said:
    """What is found out about settings.

    Attributes:
        warnings: What is not followed to the letter.
        problems: What contradicts itself or cannot be followed.
    """

    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def is_of_writer(name: str) -> bool:
    """Tell whether a key is about Hudi's files, index and table services, not about what is in it.

    How rows are merged, keyed and ordered is ours to decide and not among them.
    """
    return name.startswith(_OF_WRITER) or name == _FOLDERS


def class_name(value: Value) -> str:
    """Return the name of a Java class without its package."""
    return value.text.rpartition(".")[2]


def check(given: Mapping[HudiKey, Value], said: Said) -> None:
    """Check the settings that are followed in any case, or cannot be.

    Args:
        given: Values of Hudi's settings.
        said: Gets what is to be said.
    """
    for key, checked in _CHECKS.items():
        if key in given:
            checked(given[key], said)


def check_writer(given: Mapping[str, Value], said: Said) -> None:
    """Tell of settings of Hudi's writer that are handed on and come to nothing.

    Hudi's streamer cleans, archives and compacts unless it is told not to; here it is the other way
    round, so a number alone, which meant something there, is told of. (What must not be handed on
    is refused in ``hudi_services.py``.)

    Args:
        given: Values by Hudi's key; only those that are handed on.
        said: Gets what is to be said.
    """
    texts = {key: value.text for key, value in given.items()}
    for key, switch in _SWITCHES.items():
        switches = (switch, _OTHER_SWITCHES.get(switch, switch))
        if key in texts and not any(is_on(texts, name) for name in switches):
            said.warnings.append(
                f"{key} has no effect without {switch}=true: no table service works here unless it "
                "is switched on"
            )
    if is_on(texts, _BESIDE_A_STREAM):
        said.warnings.append(
            f"{_BESIDE_A_STREAM} has no effect: set hoodie.clustering.inline=true to cluster with "
            "commits, or hoodie.clustering.schedule.inline=true and have it done elsewhere"
        )


def _ordering(value: Value, said: Said) -> None:
    columns = {column.strip() for column in value.text.split(",")}
    if not columns <= _ORDERED_BY_POSITION:
        said.warnings.append(
            f"{value.key} is not followed: rows are ordered by their place in the source's log"
        )


def _data_loss(value: Value, said: Said) -> None:
    if value.text.lower() != "true":
        said.warnings.append(f"{value.key} is not followed: a run stops when offsets were lost")


def _payload(value: Value, said: Said) -> None:
    name = class_name(value)
    if name in PAYLOAD_CONNECTORS:
        return
    if name in _NEWEST_WINS:
        said.warnings.append(_by_place(value))
        return
    said.problems.append(
        f"{value.key}: rows are not merged by a class of Hudi's, they are what the source had "
        f"last; remove it if that is wanted ({' and '.join(PAYLOAD_CONNECTORS)} mean the same)"
    )


def _merge_mode(value: Value, said: Said) -> None:
    mode = value.text.upper()
    if mode == "COMMIT_TIME_ORDERING":
        said.warnings.append(
            f"{value.key} is not followed: rows are ordered by their place in the source's log, "
            "not by when they arrive"
        )
    elif mode != "EVENT_TIME_ORDERING":
        said.problems.append(
            f"{value.key}: only EVENT_TIME_ORDERING is done here, by place in the source's log; "
            "set it, or remove the key"
        )


def _merger(value: Value, said: Said) -> None:
    classes = {name.strip().rpartition(".")[2] for name in value.text.split(",") if name.strip()}
    if not classes <= _HIGHEST_WINS | _NEWEST_WINS:
        said.problems.append(f"{value.key}: {_NOT_BY_A_CLASS}")
    elif not classes <= _HIGHEST_WINS:
        said.warnings.append(_by_place(value))


def _merge_strategy(value: Value, said: Said) -> None:
    strategy = value.text.lower()
    if strategy == _OF_COMMIT_TIME:
        said.warnings.append(_by_place(value))
    elif strategy not in (_OF_EVENT_TIME, _OF_PAYLOAD):
        said.problems.append(f"{value.key}: {_NOT_BY_A_CLASS}")


def _by_place(value: Value) -> str:
    return (
        f"{value.key} is not followed: a row is the one that the source had last, by its place in "
        "the source's log"
    )


def _operation(value: Value, said: Said) -> None:
    if value.text.lower() != "upsert":
        said.problems.append(
            f"{value.key}: only UPSERT keeps a table equal to its source, which has updates and "
            "deletes; set it, or remove it (inserts of new keys are as cheap)"
        )


def _transformer(value: Value, said: Said) -> None:
    said.problems.append(
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
