"""Unavailable values are recognised per declared type, in real events and in written ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.placeholder import ambiguous, can_be_unavailable
from lakeingest.decode.row import RowSpec, with_row
from lakeingest.decode.types.composed import array, mapping
from lakeingest.decode.types.decimals import decimal
from lakeingest.decode.types.logical import PRIMITIVES, SEMANTIC, text
from lakeingest.decode.types.logical_type import LogicalType
from lakeingest.decode.types.octets import binary
from tests.decode.wire import event

DATA = Path(__file__).parent / "data"
TEXT = PRIMITIVES["string"]
FAILED = (PySparkException, Py4JJavaError)

TABLE: dict[str, LogicalType] = {
    "id": PRIMITIVES["int32"],
    "n": PRIMITIVES["int32"],
    "txt": TEXT,
    "nntxt": TEXT,
    "js": TEXT,
    "by": binary(),
    "ta": array(TEXT),
    "ia": array(PRIMITIVES["int32"]),
    "ba": array(PRIMITIVES["int64"]),
    "da": array(SEMANTIC["io.debezium.time.Date"]),
    "ua": array(TEXT),
    "fa": array(PRIMITIVES["float64"]),
    "na": array(decimal(38, 0)),
    "hs": TEXT,
    "xm": TEXT,
    "num": decimal(38, 0),
}
"""The table of the recorded vectors."""

RECOGNISED = {"txt", "nntxt", "js", "by", "ta", "ia", "ba", "da", "ua", "hs", "xm"}


def masks(
    spark: SparkSession,
    texts: Iterable[str],
    types: dict[str, LogicalType],
    encodings: Encodings,
    moved: list[str | None] | None = None,
) -> list[tuple[dict[str, Any], set[str] | None]]:
    """Decode events; return their rows with the names of their unavailable columns."""
    columns = [SourceColumn(name, kind) for name, kind in types.items()]
    records = [
        (i, text.encode(), json.loads(text).get("op"), moved[i] if moved else None)
        for i, text in enumerate(texts)
    ]
    schema = "_index int, value binary, op string, moved_from string"
    changes = spark.createDataFrame(records, schema)
    rows = with_row(changes.coalesce(1), RowSpec(columns, encodings, JsonRows()), masked=True)
    return [
        (row["row"].asDict(), None if row["unavailable"] is None else set(row["unavailable"]))
        for row in rows.orderBy("_index").select("row", "unavailable").collect()
    ]


FORMS: dict[str, tuple[Encodings, dict[str, LogicalType], set[str]]] = {
    "bytes": (Encodings(), {}, RECOGNISED),
    # The recorder also had decimal.handling.mode=string here, and hstore as a map in base64.
    "hex": (
        Encodings(decimal="string", binary="hex"),
        {"by": binary("hex"), "num": decimal(38, 0, "string")},
        RECOGNISED | {"num"},
    ),
    "base64": (
        Encodings(binary="base64"),
        {"by": binary("base64"), "hs": mapping(TEXT)},
        RECOGNISED - {"by"},
    ),
}


def compact(value: Any, *, ensure_ascii: bool = True) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=ensure_ascii)


def unchanged(form: str) -> list[dict[str, Any]]:
    """Return the recorded events: an update, and the create half of a primary-key change."""
    lines = (DATA / f"unchanged_{form}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["v"] for line in lines]


@pytest.mark.parametrize("form", FORMS)
def test_unchanged_values_of_real_events_are_masked_and_null(
    spark: SparkSession, form: str
) -> None:
    encodings, other, expected = FORMS[form]
    for row, unavailable in masks(spark, map(compact, unchanged(form)), TABLE | other, encodings):
        assert unavailable == expected
        assert row["n"] == 2
        assert {name for name, value in row.items() if value is not None} == {"id", "n"}


@pytest.mark.parametrize("form", FORMS)
def test_nulls_that_say_nothing_are_unavailable_where_the_user_keeps_them(
    spark: SparkSession, form: str
) -> None:
    encodings, other, recognised = FORMS[form]
    values = unchanged(form)
    moved = ["{}" if value["op"] == "c" else None for value in values]
    encodings = replace(encodings, ambiguous="keep")
    unclear = {"fa", "na", "by"} if form == "base64" else {"fa", "na"}
    for _, unavailable in masks(spark, map(compact, values), TABLE | other, encodings, moved):
        assert unavailable == recognised | unclear


DOUBTED = {"id": PRIMITIVES["int32"], "fa": array(PRIMITIVES["float64"])}


def with_null(op: str, before: Any = None) -> str:
    return compact({"before": before, "after": {"id": 1, "fa": None}, "op": op})


def test_a_null_is_a_null_wherever_the_change_says_all(spark: SparkSession) -> None:
    texts = [with_null("c"), with_null("r"), with_null("u", {"id": 1, "fa": [0.5]}), with_null("u")]
    rows = masks(spark, texts, DOUBTED, Encodings(ambiguous="keep"))
    assert [unavailable for _, unavailable in rows] == [None, None, None, {"fa"}]
    rows = masks(spark, texts[:3], DOUBTED, Encodings(ambiguous="fail"))
    assert [unavailable for _, unavailable in rows] == [None, None, None]


def test_an_ambiguous_null_stops_the_run_where_the_user_says_so(spark: SparkSession) -> None:
    with pytest.raises(FAILED, match="column 'fa'.*REPLICA IDENTITY FULL"):
        masks(spark, [with_null("u")], DOUBTED, Encodings(ambiguous="fail"))


PLAIN = (array(TEXT), array(PRIMITIVES["int32"]), array(SEMANTIC["io.debezium.time.Date"]), TEXT)
AMBIGUOUS_NULL = (
    array(PRIMITIVES["float64"]),
    array(PRIMITIVES["int16"]),
    array(PRIMITIVES["boolean"]),
    array(SEMANTIC["io.debezium.time.MicroTimestamp"]),
    array(SEMANTIC["io.debezium.time.StructuredDate"]),
    array(SEMANTIC["io.debezium.time.MicroTime"]),
    array(decimal(10, 2)),
    array(text("io.debezium.data.Enum")),
    binary("base64"),
    binary("base64-url-safe"),
)


def test_only_types_without_a_placeholder_are_in_doubt() -> None:
    keep = Encodings(ambiguous="keep")
    assert all(ambiguous(SourceColumn("c", kind), keep) for kind in AMBIGUOUS_NULL)
    assert not any(ambiguous(SourceColumn("c", kind), keep) for kind in (*PLAIN, binary()))
    assert not any(ambiguous(SourceColumn("c", kind), Encodings()) for kind in AMBIGUOUS_NULL)


def test_every_recognised_form_carries_one_of_the_marks() -> None:
    for form, (encodings, _, _) in FORMS.items():
        for value in unchanged(form):
            assert any(mark in compact(value) for mark in encodings.json_marks())


def test_types_that_debezium_never_marks_cannot_be_unavailable() -> None:
    for kind in (
        PRIMITIVES["int32"],
        PRIMITIVES["boolean"],
        PRIMITIVES["float64"],
        SEMANTIC["io.debezium.time.MicroTimestamp"],
        array(PRIMITIVES["float64"]),
        decimal(10, 2, "double"),
    ):
        assert not can_be_unavailable(SourceColumn("c", kind), Encodings())


def placeholder_event(text: str) -> str:
    # Java's bytes have a sign.
    codes = [code - 256 if code > 127 else code for code in text.encode()]
    hstore = compact({text: text}, ensure_ascii=False)
    return event({"t": text, "ta": [text], "ia": codes, "m": {text: text}, "h": hstore, "n": 1})


CUSTOM: dict[str, LogicalType] = {
    "t": TEXT,
    "ta": array(TEXT),
    "ia": array(PRIMITIVES["int32"]),
    "m": mapping(TEXT),
    "h": TEXT,
    "n": PRIMITIVES["int32"],
}


@pytest.mark.parametrize("setting", ["no value", "hex:2a2b2c", "ünïcode", 'a "quoted" word'])
def test_a_configured_placeholder_is_recognised_in_every_type(
    spark: SparkSession, setting: str
) -> None:
    encodings = Encodings(placeholder=setting)
    text = placeholder_event(encodings.placeholder_bytes().decode())
    ((_, unavailable),) = masks(spark, [text], CUSTOM, encodings)
    assert unavailable == {"t", "ta", "ia", "m", "h"}


def test_the_default_placeholder_is_data_when_another_one_is_configured(
    spark: SparkSession,
) -> None:
    text = placeholder_event("__debezium_unavailable_value")
    ((row, unavailable),) = masks(spark, [text], CUSTOM, Encodings(placeholder="other"))
    assert unavailable is None
    assert row["t"] == "__debezium_unavailable_value"


def test_values_that_only_resemble_a_placeholder_are_data(spark: SparkSession) -> None:
    word = "__debezium_unavailable_value"
    values: list[dict[str, Any]] = [
        {"t": word + " ", "ta": [word, word], "ia": [*word.encode(), 1], "m": {"k": word}},
        {"t": word.upper(), "ta": ["x", word], "ia": [95], "m": {word: "x"}},
        {"t": "", "ta": [], "ia": [], "m": {}},
        {"t": None, "ta": None, "ia": None, "m": None},
        {"t": f'{{"{word}":1}}', "ta": [None], "ia": [None], "m": {"k": None}},
    ]
    rows = masks(spark, map(event, values), CUSTOM, Encodings())
    for value, (row, unavailable) in zip(values, rows, strict=True):
        assert unavailable is None
        assert {name: row[name] for name in value} == value


def test_a_row_decoded_without_looking_for_placeholders_has_no_mask(spark: SparkSession) -> None:
    changes = spark.createDataFrame([(event({"t": "x"}).encode(),)], "value binary")
    spec = RowSpec([SourceColumn("t", TEXT)], Encodings(), JsonRows())
    assert "unavailable" not in with_row(changes, spec, masked=False).columns


@pytest.mark.parametrize("setting", ["hex:0001ff41", 'a "quoted" word', "back\\slash"])
def test_a_placeholder_that_json_escapes_is_still_hinted_at(setting: str) -> None:
    encodings = Encodings(placeholder=setting)
    # Debezium decodes the octets as UTF-8, and Jackson escapes what JSON demands.
    word = encodings.placeholder_bytes().decode(errors="replace")
    text = compact({"after": {"t": word}}, ensure_ascii=False)
    assert any(mark in text for mark in encodings.json_marks())
