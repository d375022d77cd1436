"""A source changes its table while it is read: from the log to the rows that readers see."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.summary import RunSummary
from lakeingest.engine.delta.log import commits
from lakeingest.errors import DataError
from tests.apply.published import history
from tests.faults.before_commit import before_each_version
from tests.faults.lost_publication import CrashError
from tests.forms import further
from tests.logs.changing import ID, TABLE, Log, column

# Whole runs of the pipeline, some seconds each.
pytestmark = pytest.mark.slow

NOTE = column("note")
WEB, MORE = column("channel", default="web"), column("more", default="yes")
OLD, BARE = (ID, NOTE), (ID, column("n", "int64"))


def said(summary: RunSummary) -> list[str]:
    """Return the warnings of a run, but for what is said of any nullable column with a default."""
    return [text for text in summary.warnings if "may be NULL and have a default" not in text]


@pytest.mark.parametrize("form", [further("json-schema"), "avro"])
def test_old_rows_get_a_new_columns_default_in_its_commit_but_an_ignored_one_is_never_guessed(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    log = Log(tmp_path, form)
    rows = (("c", {"id": id_, "note": "a"}) for id_ in (1, 2, 3))
    log.commit(OLD, *rows, ("u", {"id": 3, "note": "b"}))
    log.commit((*OLD, MORE), ("c", {"id": 4, "note": "d", "more": "no"}))
    (text,) = said(log.run(spark, {"schema.added": "ignore"}, apart=True))
    assert "column 'more' of the source is not taken in" in text
    # Of the two columns that the table gets now, the one was there before, the other was not.
    log.commit(
        (*OLD, MORE, WEB),
        ("u", {"id": 2, "note": "c", "more": "yes", "channel": "shop"}),
        ("c", {"id": 5, "note": "e", "more": "no", "channel": None}),
    )
    (text,) = said(log.run(spark))
    assert "column 'more' is taken in now, but was there before" in text
    assert log.rows("note", "channel", "more") == {
        1: ("a", "web", None),
        2: ("c", "shop", "yes"),
        3: ("b", "web", None),
        4: ("d", "web", None),
        5: ("e", None, "no"),
    }
    lake = log.lake(spark)
    before, now = lake.snapshot(2), lake.snapshot(3)
    assert {"channel", "more"}.isdisjoint(before.table(TABLE).columns)
    assert now.versions[TABLE] == before.versions[TABLE] + 1
    shown = [(row["batch"], row["columns"]) for row in lake.schemas(TABLE).collect()]
    assert [batch for batch, _ in shown] == [3, 2, 1]
    added = '`note` STRING, `more` STRING DEFAULT "yes", `channel` STRING DEFAULT "web"'
    assert shown[0][1].endswith(added)
    assert "`id` BIGINT NOT NULL" in shown[2][1]


@pytest.mark.parametrize("form", ["json-schema", further("json")])
def test_a_run_that_dies_between_versions_has_a_columns_values_until_the_column_goes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    log, each = Log(tmp_path, form), {"commit.mode": "per-transaction"}
    n, v = column("n", "int64"), column("v", default="web")
    rows = ({"id": 1, "n": 0, "v": "0"}, {"id": 2, "n": 0, "v": None})
    # It makes the table, and so it is no version of the batch behind it.
    log.commit((ID, n, v), *(("c", row) for row in rows))
    for number in (1, 2):
        log.commit((ID, n, v), ("u", {"id": 1, "n": number, "v": str(number)}))
    log.commit((ID, n), ("u", {"id": 1, "n": 3}))

    def die(_: str, versions: int) -> None:
        if versions == 1:
            raise CrashError

    with before_each_version(monkeypatch, die), pytest.raises(CrashError):
        log.run(spark, each)
    log.run(spark, each)
    shown = [tables[TABLE] for tables in history(spark, tmp_path / "lake").values()]
    assert shown == [{1: value, 2: None} for value in ("0", "1", "2", "2")]


@pytest.mark.soak
@pytest.mark.parametrize("partition", ["", "note"])
@pytest.mark.parametrize("format_", ["delta", "hudi"])
def test_a_dropped_column_keeps_its_values_and_is_null_in_later_rows(
    spark: SparkSession, tmp_path: Path, format_: str, partition: str
) -> None:
    log, settings = Log(tmp_path, "json"), {"target.format": format_}
    if partition:
        settings[f"table.{TABLE}.partition"] = partition
    rows = log.rows if format_ == "delta" else partial(log.rows_by_our_reader, spark)
    log.commit(OLD, *(("c", {"id": id_, "note": "a"}) for id_ in (1, 2)))
    log.commit(OLD, ("c", {"id": 3, "note": "a"}))
    # In the last batch that has it, its value changes.
    log.commit(OLD, ("u", {"id": 2, "note": "b"}))
    log.commit((ID,), ("u", {"id": 1}), ("u", {"id": 2}), ("c", {"id": 4}), ("u", {"id": 5}))
    log.commit(BARE, ("u", {"id": 2, "n": 2}))
    log.commit(BARE, ("d", {"id": 3, "n": None}))
    # Its delete is in the lake when the row is created again.
    log.commit(BARE, ("c", {"id": 3, "n": 3}))
    log.commit(BARE, ("c", {"id": 6, "n": 6}), ("u", {"id": 1, "n": 1}))
    summary = log.run(spark, {**settings, "commit.max.transactions": "2"})
    assert summary.batches == 4
    earlier_notes = {1: ("a",), 2: ("b",), 3: ("a",), 4: (None,), 5: (None,)}
    shown = log.lake(spark).snapshot(2).table(TABLE).select("id", "note").collect()
    assert sorted((row["id"], (row["note"],)) for row in shown) == [*earlier_notes.items()]
    numbers = {1: 1, 2: 2, 3: 3, 4: None, 5: None, 6: 6}
    notes = {**earlier_notes, 3: (None,), 6: (None,)}
    assert rows("note", "n") == {id_: (*notes[id_], n) for id_, n in numbers.items()}
    assert sum("no longer sends column 'note'" in text for text in summary.warnings) == 1


@pytest.mark.soak
def test_types_order_nullability_and_defaults_evolve_and_a_value_of_another_type_stops_the_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = Log(tmp_path, "json-schema")
    small = column("n", "int32", optional=False, default=7)
    log.commit((ID, NOTE, small), ("c", {"id": 1, "note": "a", "n": 1}))
    wide = column("n", "int64", default=8)
    log.commit((ID, wide, NOTE), ("c", {"id": 2, "n": None, "note": "b"}))
    log.commit((ID, small, NOTE), ("c", {"id": 3, "n": 3, "note": "c"}))
    assert said(log.run(spark, apart=True)) == []
    rows = {1: (1, "a"), 2: (None, "b"), 3: (3, "c")}
    assert log.rows("n", "note") == rows
    table = log.lake(spark).table(TABLE)
    assert (table.columns, dict(table.dtypes)["n"]) == (["id", "note", "n"], "bigint")
    assert [row["columns"] for row in reversed(log.lake(spark).schemas(TABLE).collect())] == [
        "`id` BIGINT NOT NULL, `note` STRING, `n` INT NOT NULL DEFAULT 7",
        "`id` BIGINT NOT NULL, `n` BIGINT DEFAULT 8, `note` STRING",
        "`id` BIGINT NOT NULL, `n` INT NOT NULL DEFAULT 7, `note` STRING",
    ]
    # A wider type, too, comes in the commit of its transaction.
    assert len(list(commits(spark, str(tmp_path / "lake" / TABLE)))) == 3
    text = (ID, column("n", "string"), NOTE)
    log.commit(text, ("c", {"id": 4, "n": "4", "note": "d"}))
    log.commit(text, ("c", {"id": 5, "n": "five", "note": "e"}))
    message = "column 'n': a value is not a bigint, its type in the lake"
    with pytest.raises(DataError, match=message):
        log.run(spark, {"schema.retyped": "ignore"}, apart=True)
    assert log.rows("n", "note") == {**rows, 4: (4, "d")}


def cents(unscaled: int) -> bytes:
    return unscaled.to_bytes(3, "big")


def price(precision: int, scale: int, default: int) -> dict[str, object]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    name = "org.apache.kafka.connect.data.Decimal"
    return column("price", "bytes", name=name, parameters=parameters, default=cents(default))


@pytest.mark.parametrize("form", [further("json-schema"), further("avro")])
def test_a_batch_with_two_scales_and_units_reads_each_record_and_default_by_its_own(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    log = Log(tmp_path, form)
    # Three transactions are a batch: the table is there before its new columns are.
    for id_ in (1, 6, 7):
        log.commit((ID,), ("c", {"id": id_}))
    millis, micros = (
        column("at", "int64", name=f"io.debezium.time.{name}")
        for name in ("Timestamp", "MicroTimestamp")
    )
    first, later = (ID, price(5, 2, 150), millis), (ID, price(7, 4, 20_000), micros)
    log.commit((ID,), ("c", {"id": 2}))
    log.commit(first, ("c", {"id": 3, "price": cents(250), "at": 1_767_357_000_500}))
    log.commit(later, ("c", {"id": 4, "price": cents(25_001), "at": 1_767_357_000_500_001}))
    log.commit(first, ("u", {"id": 4, "price": cents(350), "at": 1_767_357_000_500}))
    log.commit(later, ("u", {"id": 3, "price": cents(35_001), "at": 1_767_357_000_500_001}))
    log.commit(first, ("c", {"id": 5, "price": cents(450), "at": 1_767_357_000_500}))
    assert log.run(spark, {"commit.max.transactions": "3"}).batches == 3
    rows = log.rows_by_our_reader(spark, "price", "at")
    assert {id_: (str(amount), str(at)) for id_, (amount, at) in rows.items()} == {
        **dict.fromkeys((1, 2, 6, 7), ("1.5000", "None")),
        3: ("3.5001", "2026-01-02 12:30:00.500001"),
        4: ("3.5000", "2026-01-02 12:30:00.500000"),
        5: ("4.5000", "2026-01-02 12:30:00.500000"),
    }
