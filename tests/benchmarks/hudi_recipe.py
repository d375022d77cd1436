"""The recipe of Hudi's users: Debezium's rows flattened, and Hudi's payload for them.

As ``PostgresDebeziumSource`` of Hudi Streamer flattens (``after``, of a delete ``before``, and the
fields of the event under its names), upserted with ``PostgresDebeziumAvroPayload`` and
``_event_lsn`` as ordering field. Hudi itself finds the last change of each key, in the batch and in
the table. Index, buckets, table type, batches and session are those of ours; the index and the
missing metadata table are the largest part of what one can win over Hudi's defaults (a small commit
takes a quarter of the time, measured), so a recipe without them would be a straw man.

What it does not do is what makes it cheap: no transaction is waited for, nothing ties the tables of
a batch together, a late event may bring a deleted row back, and only top-level text that was left
out is filled.

``tuned`` is the same with what measurement taught: tables side by side, the other options that ours
sets, and one row per key picked by Spark before Hudi sees them (Hudi would move every event through
a shuffle as an Avro record). The last is right here, where no event leaves a value out; where one
does, the value that an earlier event of the batch brought would be lost with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.engine.hudi.table import READ_OPTIONS
from lakeingest.sink.hudi.options import TableType
from tests.benchmarks.contestant import Stream
from tests.benchmarks.workload import Table, of_all_tables
from tests.recordings.flattened import POSTGRESQL

LSN = "_event_lsn"


RECIPE = {
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.payload.class": (
        "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"
    ),
    "hoodie.table.ordering.fields": LSN,
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "4",
    "hoodie.metadata.enable": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
}

TUNED = {
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.combine.before.upsert": "false",
    "hoodie.combine.before.insert": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    # Else every fifth commit of a merge-on-read table compacts it first.
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "false",
}


@dataclass(frozen=True)
class HudiRecipe:
    """Flattened events into one upsert per table."""

    table_type: TableType
    name: str = "recipe"
    tuned: bool = False

    def load(self, stream: Stream, target: Path) -> None:
        """Upsert the snapshot's rows into new tables."""
        of_all_tables(partial(self._upsert, stream.source.read(stream.snapshot), target))

    def run(self, stream: Stream, target: Path) -> None:
        """Upsert batch after batch."""
        for ranges in stream.batches:
            upsert = partial(self._upsert, stream.source.read(ranges), target)
            of_all_tables(upsert, parallel=self.tuned)

    def table(self, stream: Stream, target: Path, table: Table) -> DataFrame:
        """Read the table's head."""
        reader = stream.spark.read.format("hudi").options(**READ_OPTIONS)
        return reader.load(str(target / table.name))

    def _upsert(self, batch: DataFrame, target: Path, table: Table) -> None:
        rows = flattened(batch, table)
        if self.tuned:
            rows = latest(rows, table)
        options = self._options(table)
        rows.write.format("hudi").options(**options).mode("append").save(str(target / table.name))

    def _options(self, table: Table) -> Mapping[str, str]:
        return {
            **RECIPE,
            **(TUNED if self.tuned else {}),
            "hoodie.table.name": table.name,
            "hoodie.datasource.write.table.type": self.table_type.value,
            "hoodie.datasource.write.recordkey.field": ",".join(table.key),
        }


def flattened(records: DataFrame, table: Table) -> DataFrame:
    """Return the events of ``table`` as rows: columns of the event, then the table's."""
    row = ", ".join(
        f"{name}: {'BIGINT' if kind == 'TIMESTAMP_NTZ' else kind}"
        for name, kind in table.column_types.items()
    )
    source = "name: STRING, schema: STRING, ts_ms: BIGINT, txId: BIGINT, lsn: BIGINT, xmin: BIGINT"
    envelope = (
        f"op STRING, ts_ms BIGINT, before STRUCT<{row}>, after STRUCT<{row}>, "
        f"source STRUCT<{source}>"
    )
    events = records.where((F.col("topic") == table.topic) & F.col("value").isNotNull()).select(
        F.from_json(F.col("value").cast("string"), envelope).alias("e")
    )
    image = F.when(F.col("e.op") == "d", F.col("e.before")).otherwise(F.col("e.after"))
    return events.select(
        *(F.col(f"e.{place}").alias(name) for name, place in POSTGRESQL.items()), image.alias("row")
    ).select(
        *POSTGRESQL,
        *(
            F.timestamp_micros(f"row.{name}").cast(kind).alias(name)
            if kind == "TIMESTAMP_NTZ"
            else F.col(f"row.{name}")
            for name, kind in table.column_types.items()
        ),
    )


def latest(rows: DataFrame, table: Table) -> DataFrame:
    """Return the row with the highest LSN of each key."""
    columns = [name for name in rows.columns if name not in table.key]
    newest = F.max_by(F.struct(*columns), F.col(LSN)).alias("row")
    return rows.groupBy(*table.key).agg(newest).select(*table.key, "row.*").select(*rows.columns)
