"""A table as Hudi Streamer leaves it: rows of PostgresDebeziumSource, its payload, its checkpoint.

Its own program is not on the package resolver that CI has, so its part is done by Spark's data
source with the same options. Debezium's placeholder goes in as it came: filling it is Hudi's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.columns import declared_columns
from lakeingest.decode.encodings import Encodings
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.frame_schemas import Kind
from lakeingest.plan.spec import PipelineSpec, TableSpec
from lakeingest.plan.table import decoded_rows
from lakeingest.plan.window import window_changes
from lakeingest.source.contract import OffsetRange
from lakeingest.source.recorded import RecordedSource
from lakeingest.topic_names import TopicNames
from tests.recordings.configure import RecordedRun, key_of

PLACEHOLDER = "__debezium_unavailable_value"
PAYLOAD = "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"
CHECKPOINT = {9: "streamer.checkpoint.key.v2", 6: "deltastreamer.checkpoint.key"}
"""Where the checkpoint is in a commit, by table version."""

_QUICK = {
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.embed.timeline.server": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.datasource.compaction.async.enable": "false",
}


def writer_options(
    table: str, key: str, table_type: str, checkpoint: str, version: int = 9
) -> dict[str, str]:
    """Return Hudi Streamer's options for a commit with a checkpoint."""
    return {
        "hoodie.table.name": table,
        "hoodie.datasource.write.recordkey.field": key,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.keygenerator.class": (
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        ),
        "hoodie.datasource.write.payload.class": PAYLOAD,
        "hoodie.metadata.enable": "false",
        "hoodie.datasource.write.commitmeta.key.prefix": CHECKPOINT[version],
        CHECKPOINT[version]: checkpoint,
    }


@dataclass(frozen=True)
class Streamed:
    """One table that a Hudi Streamer keeps.

    Attributes:
        spark: Session with Hudi.
        run: The recorded run that it reads.
        table: Bare name.
        target: Folder of the lake; the table lies in it by its collection's name.
        table_type: Hudi's.
        version: Hudi's table version.
        options: More of its settings.
    """

    spark: SparkSession
    run: RecordedRun
    table: str
    target: Path
    table_type: str
    version: int = 9
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        return f"{self.run.prefix}.{self.run.collection(self.table)}"

    @property
    def path(self) -> str:
        return str(self.target / self.run.collection(self.table))

    def take(self, start: Mapping[int, int], end: Mapping[int, int]) -> None:
        """Write what lies between two checkpoints, in one commit with the second one."""
        checkpoint = ",".join([self.topic, *(f"{p}:{offset}" for p, offset in end.items())])
        key = ",".join(key_of(self.table))
        options = {
            **writer_options(self.table, key, self.table_type, checkpoint, self.version),
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.precombine.field": "_event_lsn",
            "hoodie.write.table.version": str(self.version),
            **_QUICK,
            **self.options,
        }
        # Hudi reads what it is to write more than once.
        rows = local_checkpoint(self.rows(start, end))
        rows.write.format("hudi").options(**options).mode("append").save(self.path)

    def rows(self, start: Mapping[int, int], end: Mapping[int, int]) -> DataFrame:
        """Return the rows of PostgresDebeziumSource; it knows no truncate."""
        source = RecordedSource(self.spark, str(self.run.events), TopicNames(self.run.prefix))
        encodings = Encodings()
        spec = PipelineSpec("postgresql", encodings)
        ddl = ", ".join(f"{n} {kind}" for n, kind in self.run.schemas[self.table].items())
        columns = declared_columns(self.spark.createDataFrame([], ddl).schema, encodings)
        table = TableSpec(self.run.collection(self.table), columns, key_of(self.table))
        ranges = [OffsetRange(self.topic, p, start[p], end[p]) for p in end]
        # As a run does: Spark takes a minute to plan the decoding of what has its plan behind it.
        changes = local_checkpoint(window_changes(source.read(ranges), spec))
        rows = changes.where(F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT))
        decoded = decoded_rows(rows, table, spec)

        kinds = {column.name: column.type.spark.typeName() for column in columns}

        def value(name: str) -> Column:
            column = F.col("row").getField(name)
            if name in table.key:
                return F.coalesce(column, F.col("key_row").getField(name))
            if kinds[name] != "string":
                return column
            left_out = F.coalesce(F.array_contains("unavailable", name), F.lit(False))
            return F.when(left_out, F.lit(PLACEHOLDER)).otherwise(column)

        lsn = F.conv(F.substring("position", -16, 16), 16, 10).cast("bigint")
        return decoded.select(
            F.col("op").alias("_change_operation_type"),
            lsn.alias("_event_lsn"),
            # Hudi Streamer makes every column nullable.
            F.when(lsn > 0, F.lit(self.run.prefix)).alias("db_shard_source_partition"),
            *(value(name).alias(name) for name in table.names()),
        )
