"""A source changes its table while it is read: from the log to the rows that readers see."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.summary import RunSummary
from lakeingest.engine.delta.log import commits
from lakeingest.errors import DataError
from tests.apply.changing import ID, TABLE, Log, column
from tests.faults.before_commit import before_each_version
from tests.faults.lost_publication import CrashError
from tests.forms import further

# Whole runs of the pipeline, some seconds each.
pytestmark = pytest.mark.slow

NOTE = column("note")
WEB = column("channel", default="web")
OLD, NEW = (ID, NOTE), (ID, NOTE, WEB)

# What differs between the formats is in tests/sink.
FORMATS = pytest.mark.parametrize("format_", ["delta", further("hudi")])


def added(folder: Path, form: str) -> Log:
    """Rows 1 to 3, 3 of them changed; then a column with a default, and 2 is changed."""
    log = Log(folder, form)
    rows = (("c", {"id": id_, "note": "a"}) for id_ in (1, 2, 3))
    log.commit(OLD, *rows, ("u", {"id": 3, "note": "b"}))
    log.commit(
        NEW,
        ("u", {"id": 2, "note": "c", "channel": "shop"}),
        ("c", {"id": 4, "note": "d", "channel": None}),
    )
    return log


FILLED = {1: ("a", "web"), 2: ("c", "shop"), 3: ("b", "web"), 4: ("d", None)}


def said(summary: RunSummary) -> list[str]:
    """Return the warnings of a run, but for what is said of any nullable column with a default."""
    return [text for text in summary.warnings if "may be NULL and have a default" not in text]


@pytest.mark.parametrize("form", [further("json-schema"), "avro"])
def test_old_rows_get_a_new_columns_default_in_its_commit_but_an_ignored_one_is_never_guessed(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    log = added(tmp_path, form)
    assert said(log.run(spark, apart=True)) == []
    assert log.rows(spark, "note", "channel") == FILLED
    lake = log.lake(spark)
    before, now = lake.snapshot(1), lake.snapshot(2)
    assert "channel" not in before.table(TABLE).columns
    assert now.versions[TABLE] == before.versions[TABLE] + 1
    shown = [(row["batch"], row["columns"]) for row in lake.schemas(TABLE).collect()]
    assert [batch for batch, _ in shown] == [2, 1]
    assert shown[0][1].endswith('`note` STRING, `channel` STRING DEFAULT "web"')
    assert "`id` BIGINT NOT NULL" in shown[1][1]
    # It is left out, and taken in later.
    more = (*NEW, column("more", default="yes"))
    log.commit(more, ("u", {"id": 4, "note": "e", "channel": None, "more": "no"}))
    told = said(log.run(spark, {"schema.added": "ignore"}))
    assert "more" not in log.lake(spark).table(TABLE).columns
    assert ["is not taken in" in text for text in told] == [True]
    log.commit(more, ("u", {"id": 3, "note": "f", "channel": "web", "more": "yes"}))
    told = said(log.run(spark))
    assert ["was there before" in text for text in told] == [True]
    assert log.rows(spark, "more") == {1: (None,), 2: (None,), 3: ("yes",), 4: (None,)}


@pytest.mark.soak
@FORMATS
def test_a_batch_that_brings_a_column_and_rows_from_before_gives_these_its_default(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    log = added(tmp_path, "avro")
    assert log.run(spark, {"target.format": format_}).batches == 1
    assert log.rows(spark, "note", "channel") == FILLED


@pytest.mark.soak
@pytest.mark.parametrize("apart", [True, further(False)])
def test_old_rows_of_a_column_that_may_be_renamed_are_null_which_is_said(
    spark: SparkSession, tmp_path: Path, apart: bool
) -> None:
    log = Log(tmp_path, "json-schema")
    log.commit((ID, column("qty", "int32")), *(("c", {"id": id_, "qty": 7}) for id_ in (1, 2)))
    renamed = (ID, column("quantity", "int32", optional=False, default=0))
    log.commit(renamed, ("u", {"id": 2, "quantity": 8}))
    told = said(log.run(spark, apart=apart))
    assert ["'quantity' came when another column went" in text for text in told].count(True) == 1
    assert log.rows(spark, "quantity") == {1: (None,), 2: (8,)}


@pytest.mark.soak
def test_without_schemas_a_default_cannot_be_known_which_is_said_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = added(tmp_path, "json")
    log.commit(NEW, ("u", {"id": 1, "note": "e", "channel": "web"}))
    told = said(log.run(spark, apart=True))
    assert ["'channel' is new" in text for text in told].count(True) == 1
    assert any("value.converter.schemas.enable" in text for text in told)
    assert log.rows(spark, "channel") == {1: ("web",), 2: ("shop",), 3: (None,), 4: (None,)}


@pytest.mark.soak
def test_the_default_of_an_expression_is_not_taken_for_a_value(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = Log(tmp_path, "json-schema")
    log.commit(OLD, ("c", {"id": 1, "note": "a"}))
    kind = {"name": "io.debezium.time.MicroTimestamp", "default": 0}
    log.commit(
        (*OLD, column("made", "int64", **kind)), ("c", {"id": 2, "note": "b", "made": 1_000_000})
    )
    told = said(log.run(spark, apart=True))
    assert ["expression" in text for text in told] == [True]
    known = {id_: at is not None for id_, (at,) in log.rows(spark, "made").items()}
    assert known == {1: False, 2: True}


BARE = (ID, column("n", "int64"))


@pytest.mark.soak
def test_a_column_that_comes_and_goes_in_the_batch_that_makes_the_table_is_no_change_of_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = Log(tmp_path, "json-schema")
    log.commit(OLD, *(("c", {"id": id_, "note": "a"}) for id_ in (1, 2, 3, 4)))
    log.commit(OLD, ("u", {"id": 1, "note": "newer"}))
    log.commit((*OLD, BARE[1]), ("u", {"id": 4, "note": "b", "n": 4}))
    log.commit(BARE, ("u", {"id": 1, "n": 1}), ("d", {"id": 2, "n": None}))
    log.commit(BARE, ("c", {"id": 2, "n": 2}), ("c", {"id": 5, "n": 5}), ("u", {"id": 3, "n": 3}))
    summary = log.run(spark)
    kept = {1: ("newer", 1), 2: (None, 2), 3: ("a", 3), 4: ("b", 4), 5: (None, 5)}
    assert log.rows(spark, "note", "n") == kept
    assert not any("no longer sends column 'note'" in text for text in summary.warnings)


@pytest.mark.parametrize("form", ["json-schema", further("json")])
def test_a_run_that_dies_between_versions_has_a_columns_values_until_the_column_goes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    log, each = Log(tmp_path, form), {"commit.mode": "per-transaction"}
    n = column("n", "int64")
    rows = ({"id": 1, "n": 0, "channel": "0"}, {"id": 2, "n": 0, "channel": None})
    log.commit((ID, n, WEB), *(("c", row) for row in rows))
    log.run(spark, each)
    for number in (1, 2):
        log.commit((ID, n, WEB), ("u", {"id": 1, "n": number, "channel": str(number)}))
    log.commit((ID, n), ("u", {"id": 1, "n": 3}))

    def die(_: str, versions: int) -> None:
        if versions == 1:
            raise CrashError

    with before_each_version(monkeypatch, die), pytest.raises(CrashError):
        log.run(spark, each)
    log.run(spark, each)
    tables = [snapshot.table(TABLE) for snapshot in log.lake(spark).snapshots()]
    values = [{row["id"]: row["channel"] for row in frame.collect()} for frame in tables]
    assert values == [{1: channel, 2: None} for channel in ("0", "1", "2", "2")]


@FORMATS
def test_a_dropped_column_keeps_its_values_and_is_null_in_later_rows(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    log, of_format = Log(tmp_path, "json"), {"target.format": format_}
    log.commit(OLD, *(("c", {"id": id_, "note": "a"}) for id_ in (1, 2, 3)))
    warnings = [*log.run(spark, of_format).warnings]
    # In the last batch that has it, its value changes.
    log.commit(OLD, ("u", {"id": 2, "note": "b"}))
    log.commit((ID,), ("u", {"id": 1}), ("u", {"id": 2}), ("c", {"id": 4}), ("u", {"id": 5}))
    warnings += log.run(spark, of_format).warnings
    kept = {1: ("a",), 2: ("b",), 3: ("a",), 4: (None,), 5: (None,)}
    assert log.rows(spark, "note") == kept
    log.commit(BARE, ("u", {"id": 2, "n": 2}), ("d", {"id": 3, "n": None}))
    log.commit(BARE, ("c", {"id": 3, "n": 3}), ("c", {"id": 6, "n": 6}), ("u", {"id": 1, "n": 1}))
    warnings += log.run(spark, of_format, apart=True).warnings
    assert log.rows(spark, "note") == {**kept, 3: (None,), 6: (None,)}
    numbers = {1: 1, 2: 2, 3: 3, 4: None, 5: None, 6: 6}
    assert log.rows(spark, "n") == {id_: (n,) for id_, n in numbers.items()}
    assert ["no longer sends column 'note'" in text for text in warnings].count(True) == 1


def test_types_order_nullability_and_defaults_evolve_and_another_type_stops_the_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = Log(tmp_path, "json-schema")
    small = column("n", "int32", optional=False, default=7)
    log.commit((ID, NOTE, small), ("c", {"id": 1, "note": "a", "n": 1}))
    wide = column("n", "int64", default=8)
    log.commit((ID, wide, NOTE), ("c", {"id": 2, "n": None, "note": "b"}))
    log.commit((ID, small, NOTE), ("c", {"id": 3, "n": 3, "note": "c"}))
    assert said(log.run(spark, apart=True)) == []
    evolved = {1: (1, "a"), 2: (None, "b"), 3: (3, "c")}
    assert log.rows(spark, "n", "note") == evolved
    table = log.lake(spark).table(TABLE)
    assert (table.columns, dict(table.dtypes)["n"]) == (["id", "note", "n"], "bigint")
    rows = log.lake(spark).schemas(TABLE).collect()
    assert [row["columns"] for row in reversed(rows)] == [
        "`id` BIGINT NOT NULL, `note` STRING, `n` INT NOT NULL DEFAULT 7",
        "`id` BIGINT NOT NULL, `n` BIGINT DEFAULT 8, `note` STRING",
        "`id` BIGINT NOT NULL, `n` INT NOT NULL DEFAULT 7, `note` STRING",
    ]
    # A wider type, too, comes in the commit of its transaction.
    assert len(list(commits(spark, str(tmp_path / "lake" / TABLE)))) == 3
    text = (ID, column("n", "string"), NOTE)
    log.commit(text, ("c", {"id": 4, "n": "4", "note": "d"}))
    with pytest.raises(DataError, match=r"'public.items': column 'n' was retyped, from bigint .*"):
        log.run(spark)
    assert log.rows(spark, "n", "note") == evolved
    log.run(spark, {f"table.{TABLE}.schema.retyped": "ignore"})
    assert log.rows(spark, "n", "note") == {**evolved, 4: (4, "d")}
    log.commit(text, ("c", {"id": 5, "n": "five", "note": "e"}))
    told = "column 'n': a value is not a bigint, its type in the lake"
    with pytest.raises(DataError, match=told):
        log.run(spark, {"schema.retyped": "ignore"})
    assert log.rows(spark, "n", "note") == {**evolved, 4: (4, "d")}


@pytest.mark.soak
def test_each_kind_of_change_can_be_made_to_stop(spark: SparkSession, tmp_path: Path) -> None:
    n = column("n", "int32")
    stopping: dict[str, tuple[dict[str, object], ...]] = {
        "added": (ID, NOTE, n, column("more")),
        "dropped": (ID, NOTE),
        "widened": (ID, NOTE, column("n", "int64")),
        "reordered": (ID, n, NOTE),
        "nullability": (ID, column("note", optional=False), n),
        "default": (ID, column("note", default="x"), n),
    }
    log = Log(tmp_path, "json-schema")
    log.commit((ID, NOTE, n), ("c", {"id": 1, "note": "a", "n": 1}))
    log.run(spark)
    values = {"id": 2, "note": "b", "n": 2, "more": "c"}
    for kind, now in stopping.items():
        changed = deepcopy(log)
        changed.commit(now, ("c", {str(item["field"]): values[str(item["field"])] for item in now}))
        with pytest.raises(DataError, match=rf"lakeingest\.schema\.{kind}\) to evolve or ignore"):
            changed.run(spark, {f"schema.{kind}": "stop"})
    assert list(log.rows(spark)) == [1]


def cents(unscaled: int) -> bytes:
    return unscaled.to_bytes(3, "big")


def price(precision: int, scale: int, default: int) -> dict[str, object]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    name = "org.apache.kafka.connect.data.Decimal"
    return column("price", "bytes", name=name, parameters=parameters, default=cents(default))


@pytest.mark.parametrize("form", ["json-schema", further("avro")])
def test_a_batch_with_two_scales_and_units_reads_each_record_and_default_by_its_own(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    log = Log(tmp_path, form)
    log.commit((ID,), ("c", {"id": 1}))
    log.run(spark)
    millis, micros = (
        column("at", "int64", name=f"io.debezium.time.{name}")
        for name in ("Timestamp", "MicroTimestamp")
    )
    first, later = (ID, price(5, 2, 150), millis), (ID, price(7, 4, 20_000), micros)
    log.commit((ID,), ("c", {"id": 2}))
    log.commit(first, ("c", {"id": 3, "price": cents(250), "at": 1_767_357_000_500}))
    log.commit(later, ("c", {"id": 4, "price": cents(25_001), "at": 1_767_357_000_500_001}))
    log.run(spark)
    log.commit(first, ("u", {"id": 4, "price": cents(350), "at": 1_767_357_000_500}))
    log.commit(later, ("u", {"id": 3, "price": cents(35_001), "at": 1_767_357_000_500_001}))
    log.commit(first, ("c", {"id": 5, "price": cents(450), "at": 1_767_357_000_500}))
    log.run(spark)
    shown = {
        id_: (str(amount), str(at)) for id_, (amount, at) in log.rows(spark, "price", "at").items()
    }
    assert shown == {
        1: ("1.5000", "None"),
        2: ("1.5000", "None"),
        3: ("3.5001", "2026-01-02 12:30:00.500001"),
        4: ("3.5000", "2026-01-02 12:30:00.500000"),
        5: ("4.5000", "2026-01-02 12:30:00.500000"),
    }
