"""A pipeline looked at: before its first run, after it, and with a table's name misspelt."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.inspect.status import pipeline_status
from lakeingest.apply.inspect.validate import validate_pipeline
from lakeingest.apply.run import run_pipeline
from lakeingest.cli.main import execute
from lakeingest.config import load_config
from lakeingest.errors import ConfigError, UnavailableError
from tests.reader.small_lake import LINES, NOTES, SmallLake
from tests.recordings.configure import write_properties

READERS = (
    "large Delta tables get deletion vectors, which their readers must support "
    "(lakeingest.delta.deletion.vectors=false: none; guide page 'reading')"
)
APPLICABLE = "the first records that wait can be applied"


def misspelt(lake: SmallLake) -> dict[str, str]:
    """Return the settings with a table's name misspelt."""
    others = {key: text for key, text in lake.settings.items() if f".{NOTES}." not in key}
    return {**others, "lakeingest.table.public.note.infinite.times": "null"}


@pytest.mark.soak
def test_before_the_first_run_everything_waits(
    spark: SparkSession, small_lake: SmallLake, tmp_path: Path
) -> None:
    config = load_config({**small_lake.settings, "lakeingest.target.path": str(tmp_path / "lake")})
    findings = validate_pipeline(spark, config)
    assert findings.warnings == ()
    assert findings.seen == ("2 topics, 0 tables, batch 0", APPLICABLE, READERS)
    status = pipeline_status(spark, config)
    assert (status["batch"], status["tables"], status["records_not_applied"]) == (0, {}, 6)
    # A BEGIN and an END for each.
    assert status["transaction_records_not_applied"] == 2 * 3
    assert not Path(config.target.path).exists()


def test_after_a_run_nothing_waits(spark: SparkSession, small_lake: SmallLake) -> None:
    config = load_config(small_lake.settings)
    findings = validate_pipeline(spark, config)
    assert findings.warnings == ()
    assert findings.seen == ("2 topics, 2 tables, batch 3", "nothing waits", READERS)
    status = pipeline_status(spark, config)
    assert (status["pipeline"], status["batch"], status["end_offset"]) == ("small", 3, 5)
    assert list(status["tables"]) == [LINES, NOTES]  # type: ignore[call-overload]
    assert (status["records_not_applied"], status["transaction_records_not_applied"]) == (0, 0)


def test_a_misspelt_table_is_a_warning_with_the_nearest_name_in_a_run_too(
    spark: SparkSession, small_lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    config = load_config(misspelt(small_lake))
    (warning,) = validate_pipeline(spark, config).warnings
    assert warning.startswith("lakeingest.table.public.note.* has no effect yet")
    assert f"no topic 'small.public.note' is read. Was {NOTES} meant?" in warning
    summary = run_pipeline(spark, config)
    assert (summary.nothing_new, summary.warnings) == (True, (warning,))


def test_validate_says_the_warning_before_it_says_that_the_pipeline_can_run(
    spark: SparkSession, small_lake: SmallLake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_properties(tmp_path / "small.properties", misspelt(small_lake))
    assert execute(["validate", str(path)]) == 0
    said = capsys.readouterr()
    assert said.out == f"2 topics, 2 tables, batch 3\nnothing waits\n{READERS}\n"
    assert f"Was {NOTES} meant?" in said.err
    assert said.err.endswith("small can run, but there is a warning\n")


def test_a_table_of_the_lake_whose_topic_is_gone_is_no_misspelling(
    spark: SparkSession, small_lake: SmallLake, tmp_path: Path
) -> None:
    log = tmp_path / "topics"
    log.mkdir()
    for name in f"small.{LINES}.jsonl.gz", "small.transaction.jsonl.gz":
        shutil.copy(Path(small_lake.settings["lakeingest.source.path"]) / "topics" / name, log)
    one = {**small_lake.settings, "lakeingest.source.path": str(tmp_path)}
    findings = validate_pipeline(spark, load_config(one))
    assert findings.warnings == ()
    assert findings.seen == ("1 topics, 2 tables, batch 3", "nothing waits", READERS)


def test_a_table_that_is_not_among_the_listed_topics_is_told_of_once(
    spark: SparkSession, small_lake: SmallLake
) -> None:
    listed = {"lakeingest.source.topics": f"small.{LINES},small.{NOTES}"}
    (warning,) = validate_pipeline(spark, load_config({**misspelt(small_lake), **listed})).warnings
    assert "public.note is not among the topics" in warning


@pytest.mark.parametrize(
    ("key", "text", "error", "message"),
    [
        ("lakeingest.pipeline.name", "other", ConfigError, "holds the lake of pipeline 'small'"),
        ("lakeingest.source.path", "/nowhere", UnavailableError, "cannot be listed"),
        (f"lakeingest.table.{LINES}.schema", "id NUMBER", ConfigError, "not a column list"),
    ],
)
def test_what_could_not_run_is_refused(
    spark: SparkSession,
    small_lake: SmallLake,
    key: str,
    text: str,
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        validate_pipeline(spark, load_config({**small_lake.settings, key: text}))
