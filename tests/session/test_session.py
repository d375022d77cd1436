from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from lakeingest.errors import ConfigError
from lakeingest.session import _with_delta, require_hudi, session
from lakeingest.session.settings import HUDI, LOG_CONFIGURATION, settings
from tests.forms import further, with_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.generated
def test_every_setting_of_the_table_is_in_force(spark: SparkSession) -> None:
    chosen_by_the_fixture = {"spark.driver.memory"}
    for setting in settings("local[2]", 2, hudi=True):
        if setting.key not in chosen_by_the_fixture:
            assert spark.conf.get(setting.key) == setting.value, setting.reason


@pytest.mark.parametrize("brief", [True, False])
def test_only_what_lives_for_seconds_does_without_optimised_code(brief: bool) -> None:
    chosen = {setting.key: setting.value for setting in settings("local[2]", 2, brief=brief)}
    options = chosen["spark.driver.extraJavaOptions"].split()
    assert ("-XX:TieredStopAtLevel=1" in options) == brief
    assert ("-XX:ReservedCodeCacheSize=240m" in options) == brief


@pytest.mark.soak
def test_a_delta_table_is_written_read_and_merged(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    spark.range(3).write.format("delta").save(path)
    spark.range(5).createOrReplaceTempView("coming")
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING coming s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    rows = spark.read.format("delta").load(path).orderBy("id").collect()
    assert [row.id for row in rows] == [0, 1, 2, 3, 4]


def test_the_kafka_reader_is_loaded(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"kafka\.bootstrap\.servers"):
        spark.read.format("kafka").option("subscribe", "t").load()


def test_a_session_that_runs_is_returned_as_it_is(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert session("another name", cores=7).sparkContext.applicationId == (
        spark.sparkContext.applicationId
    )
    assert spark.conf.get("spark.sql.shuffle.partitions") == before != "7"


def test_a_provided_session_without_delta_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)
    conf = SimpleNamespace(get=lambda _key, default: default)
    provided = cast("SparkSession", SimpleNamespace(conf=conf))
    with pytest.raises(ConfigError, match="has no Delta Lake"):
        _with_delta(provided)
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "15.4")
    assert _with_delta(provided) is provided


def test_a_session_that_is_not_made_for_hudi_is_told_what_it_lacks(spark: SparkSession) -> None:
    require_hudi(spark, write=True)
    key = "spark.hadoop.parquet.avro.write-old-list-structure"
    lacking = spark.newSession()
    lacking.conf.set(key, "true")
    lacks = rf"it lacks {key}=false\. .* lakeingest\.session\(hudi=True\)"
    with pytest.raises(ConfigError, match=lacks):
        require_hudi(lacking, write=True)
    require_hudi(lacking, write=False)


def test_a_provided_session_without_kryo_is_told_so() -> None:
    kryo = "spark.serializer=org.apache.spark.serializer.KryoSerializer"
    lacking = {setting.key: setting.value for setting in HUDI} | {"spark.serializer": "java"}
    conf = SimpleNamespace(get=lambda key, _default: lacking.get(key))
    with pytest.raises(ConfigError, match=f"it lacks {kryo}. Start"):
        require_hudi(cast("SparkSession", SimpleNamespace(conf=conf)), write=True)


def test_without_pyspark_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(ConfigError, match=r"pip install 'lakeingest\[local\]'"):
        session()


def test_the_log_configuration_is_a_file_of_the_package() -> None:
    assert LOG_CONFIGURATION.is_file()
    assert LOG_CONFIGURATION.suffix == ".properties"


_HUDI_WRITE = (
    "format('hudi').options(**{'hoodie.table.name': 't', 'hoodie.metadata.enable': 'false',"
    " 'hoodie.datasource.write.recordkey.field': 'id'})"
)


@with_all
@pytest.mark.parametrize(
    ("hudi", "write"),
    [pytest.param(False, "format('delta')", id="delta"), further(True, _HUDI_WRITE, id="hudi")],
)
def test_a_fresh_session_writes_nothing_but_our_data_to_any_stream(
    tmp_path: Path, hudi: bool, write: str
) -> None:
    program = (
        "from lakeingest.session import session\n"
        f"spark = session(cores=2, hudi={hudi})\n"
        f"spark.range(3).write.{write}.mode('append').save({str(tmp_path / 'table')!r})\n"
        "print(spark.range(3).count())\n"
        "spark.stop()\n"
    )
    run = run_in(tmp_path, program)
    assert (run.stdout, run.stderr) == ("3\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


@with_all
def test_what_hudi_measures_while_it_merges_is_told_to_no_stream(tmp_path: Path) -> None:
    merged = _HUDI_WRITE.replace(
        "**{", "**{'hoodie.datasource.write.table.type': 'MERGE_ON_READ', "
    )
    program = (
        "from lakeingest.session import session\n"
        "spark = session(cores=2, hudi=True)\n"
        f"path = {str(tmp_path / 'table')!r}\n"
        "for _ in range(2):\n"
        f"    spark.range(3).write.{merged}.mode('append').save(path)\n"
        "print(spark.read.format('hudi').load(path).selectExpr('sum(id)').first()[0])\n"
        "spark.stop()\n"
    )
    run = run_in(tmp_path, program)
    assert (run.stdout, run.stderr) == ("3\n", "")


def run_in(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, and return what it wrote."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        timeout=300,
    )
