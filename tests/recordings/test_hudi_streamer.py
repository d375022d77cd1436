"""A pipeline of Hudi's streamer, command and file as they were, through a real broker."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakeingest.cli.main import execute
from lakeingest.reader import open_lake
from tests.recordings.configure import RecordedRun, recorded_run
from tests.recordings.oracle import Rows
from tests.rig.kafka import KafkaBroker, broker
from tests.rig.replay import replay

__all__ = ["broker"]

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.kafka]

# As in Hudi's documentation: what its own quick start for Debezium and PostgreSQL has.
PROPERTIES = """\
# Kafka
bootstrap.servers={bootstrap}
auto.offset.reset=earliest
group.id=hudi-{table}
hoodie.deltastreamer.source.kafka.topic={topic}
hoodie.deltastreamer.source.kafka.value.deserializer.class=\\
  org.apache.kafka.common.serialization.StringDeserializer
# Hudi
hoodie.datasource.write.recordkey.field=id
hoodie.datasource.write.partitionpath.field=
hoodie.datasource.write.precombine.field=_event_lsn
hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.NonpartitionedKeyGenerator
hoodie.datasource.write.payload.class=\\
  org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload
hoodie.write.record.merge.mode=EVENT_TIME_ORDERING
hoodie.upsert.shuffle.parallelism=2
hoodie.datasource.hive_sync.table={table}
"""

SOURCE = "org.apache.hudi.utilities.sources.debezium.PostgresDebeziumSource"


@dataclass(frozen=True)
class Stage:
    """A broker with some tables of a run in it.

    Attributes:
        run: The run.
        bootstrap: The broker's address.
        prefix: The topics' prefix.
        folder: Where files may lie.
    """

    run: RecordedRun
    bootstrap: str
    prefix: str
    folder: Path

    def properties(self, table: str) -> str:
        """Return the table's file in Hudi's style."""
        topic = f"{self.prefix}.public.{table}"
        return PROPERTIES.format(bootstrap=self.bootstrap, topic=topic, table=table)

    def final(self, table: str) -> Rows:
        """Return what the database held in the end."""
        return self.run.oracle.final(table)


@pytest.fixture
def stage(broker: KafkaBroker, tmp_path: Path) -> Stage:
    run = recorded_run(Path(__file__).parent / "data" / "pg-shop-small", "json-schema")
    topics = tmp_path / "events" / "topics"
    topics.mkdir(parents=True)
    for table in ("public.carts", "public.bulk", "transaction"):
        shutil.copy(run.events / "topics" / f"{run.prefix}.{table}.jsonl.gz", topics)
    rename = f"{tmp_path.name}-"
    replay(tmp_path / "events", broker.bootstrap, rename=rename)
    return Stage(run, broker.bootstrap, f"{rename}{run.prefix}", tmp_path)


def rows(frame: DataFrame, header: tuple[str, ...]) -> Rows:
    """Return whole numbers as the database's own CSV has them."""
    records = frame.orderBy(header[0]).select(*header).collect()
    return Rows(header, tuple(tuple(str(value) for value in row) for row in records))


def by_hudi(spark: SparkSession, folder: Path) -> DataFrame:
    """Read a table as any user of Hudi Streamer's does, who knows none of our columns."""
    return spark.read.format("hudi").load(str(folder))


def test_a_table_by_the_streamers_command_is_the_sources_and_a_second_run_changes_nothing(
    spark: SparkSession, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    file = stage.folder / "carts.properties"
    file.write_text(stage.properties("carts"), "utf-8")
    table = stage.folder / "hudi" / "carts"
    command = ["hoodie-streamer", "--props", f"file://{file}", "--table-type", "COPY_ON_WRITE"]
    command += ["--op", "UPSERT", "--source-ordering-field", "_event_lsn"]
    command += ["--target-base-path", str(table), "--target-table", "carts"]
    command += ["--source-class", SOURCE, "--enable-sync"]
    command += ["--hoodie-conf", "hoodie.metadata.enable=true"]
    assert execute(command) == 0
    final = stage.final("carts")
    assert rows(by_hudi(spark, table), final.header) == final
    assert {"_event_lsn", "_change_operation_type"} <= {*by_hudi(spark, table).columns}
    lake = open_lake(spark, str(table))
    assert rows(lake.table("public.carts"), final.header) == final
    timeline = sorted(path.name for path in (table / ".hoodie" / "timeline").iterdir())
    published = lake.history().count()
    assert execute(command) == 0
    assert "there is nothing new" in capsys.readouterr().err
    assert timeline == sorted(path.name for path in (table / ".hoodie" / "timeline").iterdir())
    assert lake.history().count() == published
