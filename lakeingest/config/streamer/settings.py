"""Define the settings of Hudi's streamer that have a meaning in lakeingest, by their Hudi names.

The names were checked against Hudi's sources (``KafkaSourceConfig``, ``HoodieStreamerConfig``,
``HoodieSchemaProviderConfig``, ``HoodieWriteConfig``, ``DataSourceOptions``). Some are properties
only in lakeingest (``source.class``, ``transformer.class``). In Hudi they are options of the
command, yet many files contain them and their meaning is clear. lakeingest reads the command's
options as these keys, so that an option and a setting cannot mean two things.

lakeingest alone decides the content of a table: the last row of the source. A setting with the same
meaning gets no message. A setting that would give another row only for late events gets a warning,
because the table is then nearer to the source than before. A setting that would always give other
rows is refused: to ignore it would silently change the table for its readers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from lakeingest.config import keys
from lakeingest.config.complaints import Messages
from lakeingest.config.file.properties import Value

PAYLOAD_CONNECTORS = {
    "PostgresDebeziumAvroPayload": "postgresql",
    "MySqlDebeziumAvroPayload": "mysql",
}
"""Connector by the payload class for its events."""

# The columns by which the Debezium payload classes order. lakeingest's order by log position is the
# same order, made total.
_ORDERED_BY_POSITION = {"_event_lsn", "_event_seq", "_event_bin_file", "_event_pos", "_event_row"}

# Payloads and mergers that keep the newest row, by arrival or by a column.
_NEWEST_WINS = {
    "OverwriteWithLatestAvroPayload",
    "DefaultHoodieRecordPayload",
    "EventTimeAvroPayload",
    "OverwriteWithLatestMerger",
    "OverwriteWithLatestSparkRecordMerger",
}
# Hudi's merger classes that choose the row by the ordering columns or by the payload.
_HIGHEST_WINS = {
    "DefaultSparkRecordMerger",
    "HoodieAvroRecordMerger",
    "HoodiePreCombineAvroRecordMerger",
    "HoodieSparkRecordMerger",
}
# Hudi's ids of its merge modes, as in its files and tables.
_OF_EVENT_TIME = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_OF_COMMIT_TIME = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
_OF_PAYLOAD = "00000000-0000-0000-0000-000000000000"

_LAST_OF_THE_SOURCE = (
    "is not followed: a row is the one that the source had last, by its place in the source's log"
)
_NO_CLASS = (
    "rows are not merged by a class, they are what the source had last; remove it if that is wanted"
)


@dataclass(frozen=True)
class HudiKey:
    """A setting of Hudi's streamer that has a meaning in lakeingest.

    Attributes:
        names: The setting's names, the current one first.
        description: The setting's effect in lakeingest.
        becomes: The lakeingest key that it sets; ``None``: lakeingest only checks the setting.
        followed: Values (a class without its package) that lakeingest follows in any case.
        warned: Values that it does not follow to the letter.
        warning: Message about the warned values, and about all others unless they are refused.
        refusal: Message about all other values; empty: it refuses none.
    """

    names: tuple[str, ...]
    description: str
    becomes: str | None = None
    followed: Collection[str] = field(default=(), hash=False)
    warned: Collection[str] = field(default=(), hash=False)
    warning: str = ""
    refusal: str = ""

    def check(self, value: Value, messages: Messages) -> None:
        """Add the message about a value, if there is one."""
        items = [item.strip().rpartition(".")[2] for item in value.text.split(",") if item.strip()]
        if all(_is_among(item, self.followed) for item in items):
            return
        if self.refusal and not all(_is_among(i, [*self.followed, *self.warned]) for i in items):
            messages.problems.append(f"{value.key}: {self.refusal}")
        elif self.warning:
            messages.warnings.append(f"{value.key} {self.warning}")


def _is_among(item: str, names: Collection[str]) -> bool:
    """Return whether a value is one of these names; only a name of one case takes any case."""
    return item in names or item.upper() in names or item.lower() in names


def both_names(name: str) -> tuple[str, str]:
    """Return the two names of a streamer's setting, the current one first."""
    return f"hoodie.streamer.{name}", f"hoodie.deltastreamer.{name}"


TOPIC = HudiKey(
    both_names("source.kafka.topic"),
    "The one topic to ingest. The topic prefix is taken from it (all but the last two parts) "
    "unless it is given.",
    keys.TOPICS,
)
RECORD_KEY = HudiKey(
    ("hoodie.datasource.write.recordkey.field",),
    "Key columns of the one table; refused when there is more than one topic.",
    keys.table_key("key"),
)
SOURCE_CLASS = HudiKey(
    both_names("source.class"),
    "`PostgresDebeziumSource` or `MysqlDebeziumSource`, with or without package.",
    keys.CONNECTOR,
)
TABLE_NAME = HudiKey(
    ("hoodie.datasource.write.table.name", "hoodie.table.name"),
    "Name of the pipeline; the table itself is named by its collection.",
    keys.PIPELINE_NAME,
)
BASE_PATH = HudiKey(
    ("hoodie.base.path", *both_names("ingestion.targetBasePath")),
    "Folder of the one table; the ledger lies below it, in `_lakeingest`. Of the whole lake when "
    "there is more than one topic.",
    keys.TARGET_PATH,
)
TABLE_TYPE = HudiKey(
    ("hoodie.datasource.write.table.type", "hoodie.table.type"),
    "How Hudi tables are kept.",
    keys.HUDI_TABLE_TYPE,
)
MAX_EVENTS = HudiKey(
    both_names("kafka.source.maxEvents"), "Events per batch.", keys.BATCH_MAX_EVENTS
)
DESERIALIZER = HudiKey(
    both_names("source.kafka.value.deserializer.class"),
    "`KafkaAvroDeserializer` (or Hudi's own, `KafkaAvroSchemaDeserializer`) means `avro`, "
    "`StringDeserializer` `json`.",
    keys.SOURCE_FORMAT,
)
REGISTRY = HudiKey(
    both_names("schemaprovider.registry.url"),
    "The registry; what begins with `/subjects/` is left out, each event names its schema's id.",
    keys.REGISTRY_URL,
)
REGISTRY_BASE = HudiKey(
    both_names("schemaprovider.registry.baseUrl"),
    "The same, where that is missing.",
    keys.REGISTRY_URL,
)
ORDERING = HudiKey(
    (
        "hoodie.table.ordering.fields",
        "hoodie.datasource.write.precombine.field",
        "hoodie.table.precombine.field",
    ),
    "Rows are always ordered by their place in the source's log, which is what `_event_lsn` and "
    "`_event_seq` stood for; any other column is warned about.",
    followed=_ORDERED_BY_POSITION,
    warning="is not followed: rows are ordered by their place in the source's log",
)
DATA_LOSS = HudiKey(
    both_names("source.kafka.enable.failOnDataLoss"),
    "A run always stops when offsets were lost; `false` is warned about.",
    followed={"true"},
    warning="is not followed: a run stops when offsets were lost",
)
PAYLOAD = HudiKey(
    ("hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class"),
    "The Debezium payloads are what is done anyway, and name the connector where nothing else "
    "does. Those that keep the newest row are warned about; any other is refused.",
    followed=PAYLOAD_CONNECTORS,
    warned=_NEWEST_WINS,
    warning=_LAST_OF_THE_SOURCE,
    refusal="rows are not merged by a class of Hudi's, they are what the source had last; remove "
    f"it if that is wanted ({' and '.join(PAYLOAD_CONNECTORS)} mean the same)",
)
MERGE_MODE = HudiKey(
    ("hoodie.write.record.merge.mode", "hoodie.record.merge.mode"),
    "`EVENT_TIME_ORDERING` is what is done anyway; `COMMIT_TIME_ORDERING` is warned about, "
    "`CUSTOM` refused.",
    followed={"EVENT_TIME_ORDERING"},
    warned={"COMMIT_TIME_ORDERING"},
    warning="is not followed: rows are ordered by their place in the source's log, not by when "
    "they arrive",
    refusal="only EVENT_TIME_ORDERING is done here, by place in the source's log; set it, or "
    "remove the key",
)
MERGER = HudiKey(
    (
        "hoodie.write.record.merge.custom.implementation.classes",
        "hoodie.datasource.write.record.merger.impls",
    ),
    "Hudi's own, which keep the row of the highest order, are what is done anyway; those that keep "
    "the newest are warned about; any other is refused.",
    followed=_HIGHEST_WINS,
    warned=_NEWEST_WINS,
    warning=_LAST_OF_THE_SOURCE,
    refusal=_NO_CLASS,
)
MERGE_STRATEGY = HudiKey(
    (
        "hoodie.write.record.merge.strategy.id",
        "hoodie.record.merge.strategy.id",
        "hoodie.datasource.write.record.merger.strategy",
    ),
    "The id of one of Hudi's own; any other belongs to a class and is refused.",
    followed={_OF_EVENT_TIME, _OF_PAYLOAD},
    warned={_OF_COMMIT_TIME},
    warning=_LAST_OF_THE_SOURCE,
    refusal=_NO_CLASS,
)
OPERATION = HudiKey(
    ("hoodie.datasource.write.operation",),
    "Only `upsert`; any other would lose updates or rows.",
    followed={"upsert"},
    refusal="only UPSERT keeps a table equal to its source, which has updates and deletes; set it, "
    "or remove it (inserts of new keys are as cheap)",
)
PARTITION_PATH = HudiKey(
    ("hoodie.datasource.write.partitionpath.field",),
    "Partition columns of the one table; refused when there is more than one topic.",
    keys.table_key("partition"),
)
KEY_GENERATOR = HudiKey(
    ("hoodie.datasource.write.keygenerator.class", "hoodie.datasource.write.keygenerator.type"),
    "`NonpartitionedKeyGenerator`, `SimpleKeyGenerator` and `ComplexKeyGenerator`: whether and by "
    "how many columns the one table is partitioned; any other is refused.",
)
TRANSFORMER = HudiKey(
    both_names("transformer.class"),
    "Refused: tables equal those of the source.",
    refusal="rows are not transformed, a table equals that of its source; make a view of it, or "
    "transform in a job of its own behind it",
)

HUDI_KEYS: tuple[HudiKey, ...] = (
    TOPIC,
    SOURCE_CLASS,
    RECORD_KEY,
    TABLE_NAME,
    BASE_PATH,
    TABLE_TYPE,
    MAX_EVENTS,
    DESERIALIZER,
    REGISTRY,
    REGISTRY_BASE,
    ORDERING,
    DATA_LOSS,
    PAYLOAD,
    MERGE_MODE,
    MERGER,
    MERGE_STRATEGY,
    OPERATION,
    PARTITION_PATH,
    KEY_GENERATOR,
    TRANSFORMER,
)
"""The settings of Hudi's streamer that have a meaning in lakeingest. The settings of Hudi's writer
are not here: lakeingest passes them on."""

HUDI_NAMES: frozenset[str] = frozenset(name for key in HUDI_KEYS for name in key.names)
