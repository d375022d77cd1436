"""Define the settings of Hudi's streamer that have a meaning in lakeingest, by their Hudi names.

The names were checked against Hudi's sources (``KafkaSourceConfig``, ``HoodieStreamerConfig``,
``HoodieSchemaProviderConfig``, ``HoodieWriteConfig``, ``DataSourceOptions``). Some are properties
only in lakeingest (``source.class``, ``transformer.class``). In Hudi they are options of the
command, yet many files contain them and their meaning is clear. lakeingest reads the command's
options as these keys, so that an option and a setting cannot mean two things.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakeingest.config.keys import (
    BATCH_MAX_EVENTS,
    CONNECTOR,
    HUDI_TABLE_TYPE,
    PIPELINE_NAME,
    REGISTRY_URL,
    SOURCE_FORMAT,
    TABLE_KEYS,
    TARGET_PATH,
    TOPICS,
)


@dataclass(frozen=True)
class HudiKey:
    """A setting of Hudi's streamer that has a meaning in lakeingest.

    Attributes:
        names: The setting's names, the current one first.
        becomes: The lakeingest key that it sets; ``None``: lakeingest only checks the setting.
        description: The setting's effect in lakeingest.
    """

    names: tuple[str, ...]
    becomes: str | None
    description: str


def both_names(name: str) -> tuple[str, str]:
    """Return the two names of a streamer's setting, the current one first."""
    return f"hoodie.streamer.{name}", f"hoodie.deltastreamer.{name}"


TOPIC = HudiKey(
    both_names("source.kafka.topic"),
    TOPICS.name,
    "The one topic to ingest. The topic prefix is taken from it (all but the last two parts) "
    "unless it is given.",
)
RECORD_KEY = HudiKey(
    ("hoodie.datasource.write.recordkey.field",),
    TABLE_KEYS["key"].name,
    "Key columns of the one table; refused when there is more than one topic.",
)
SOURCE_CLASS = HudiKey(
    both_names("source.class"),
    CONNECTOR.name,
    "`PostgresDebeziumSource` or `MysqlDebeziumSource`, with or without package.",
)
TABLE_NAME = HudiKey(
    ("hoodie.datasource.write.table.name", "hoodie.table.name"),
    PIPELINE_NAME.name,
    "Name of the pipeline; the table itself is named by its collection.",
)
BASE_PATH = HudiKey(
    ("hoodie.base.path", *both_names("ingestion.targetBasePath")),
    TARGET_PATH.name,
    "Folder of the one table; the ledger lies below it, in `_lakeingest`. Of the whole lake when "
    "there is more than one topic.",
)
TABLE_TYPE = HudiKey(
    ("hoodie.datasource.write.table.type", "hoodie.table.type"),
    HUDI_TABLE_TYPE.name,
    "How Hudi tables are kept.",
)
MAX_EVENTS = HudiKey(
    both_names("kafka.source.maxEvents"), BATCH_MAX_EVENTS.name, "Events per batch."
)
DESERIALIZER = HudiKey(
    both_names("source.kafka.value.deserializer.class"),
    SOURCE_FORMAT.name,
    "`KafkaAvroDeserializer` (or Hudi's own, `KafkaAvroSchemaDeserializer`) means `avro`, "
    "`StringDeserializer` `json`.",
)
REGISTRY = HudiKey(
    both_names("schemaprovider.registry.url"),
    REGISTRY_URL,
    "The registry; what begins with `/subjects/` is left out, each event names its schema's id.",
)
REGISTRY_BASE = HudiKey(
    both_names("schemaprovider.registry.baseUrl"), REGISTRY_URL, "The same, where that is missing."
)
ORDERING = HudiKey(
    (
        "hoodie.table.ordering.fields",
        "hoodie.datasource.write.precombine.field",
        "hoodie.table.precombine.field",
    ),
    None,
    "Rows are always ordered by their place in the source's log, which is what `_event_lsn` and "
    "`_event_seq` stood for; any other column is warned about.",
)
DATA_LOSS = HudiKey(
    both_names("source.kafka.enable.failOnDataLoss"),
    None,
    "A run always stops when offsets were lost; `false` is warned about.",
)
PAYLOAD = HudiKey(
    ("hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class"),
    None,
    "The Debezium payloads are what is done anyway, and name the connector where nothing else "
    "does. Those that keep the newest row are warned about; any other is refused.",
)
MERGE_MODE = HudiKey(
    ("hoodie.write.record.merge.mode", "hoodie.record.merge.mode"),
    None,
    "`EVENT_TIME_ORDERING` is what is done anyway; `COMMIT_TIME_ORDERING` is warned about, "
    "`CUSTOM` refused.",
)
MERGER = HudiKey(
    (
        "hoodie.write.record.merge.custom.implementation.classes",
        "hoodie.datasource.write.record.merger.impls",
    ),
    None,
    "Hudi's own, which keep the row of the highest order, are what is done anyway; those that keep "
    "the newest are warned about; any other is refused.",
)
MERGE_STRATEGY = HudiKey(
    (
        "hoodie.write.record.merge.strategy.id",
        "hoodie.record.merge.strategy.id",
        "hoodie.datasource.write.record.merger.strategy",
    ),
    None,
    "The id of one of Hudi's own; any other belongs to a class and is refused.",
)
OPERATION = HudiKey(
    ("hoodie.datasource.write.operation",),
    None,
    "Only `upsert`; any other would lose updates or rows.",
)
PARTITION_PATH = HudiKey(
    ("hoodie.datasource.write.partitionpath.field",),
    TABLE_KEYS["partition"].name,
    "Partition columns of the one table; refused when there is more than one topic.",
)
KEY_GENERATOR = HudiKey(
    ("hoodie.datasource.write.keygenerator.class", "hoodie.datasource.write.keygenerator.type"),
    None,
    "`NonpartitionedKeyGenerator`, `SimpleKeyGenerator` and `ComplexKeyGenerator`: whether and by "
    "how many columns the one table is partitioned; any other is refused.",
)
TRANSFORMER = HudiKey(
    both_names("transformer.class"), None, "Refused: tables equal those of the source."
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
