"""Unavailable values are recognised per declared type, in real events and in written ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.decode.columns import Encodings, SourceColumn
from lakeingest.decode.json_rows import JsonRows
from lakeingest.decode.logical import (
    PRIMITIVES,
    SEMANTIC,
    LogicalType,
    array,
    binary,
    decimal,
    mapping,
)
from lakeingest.decode.placeholder import can_be_unavailable
from lakeingest.decode.row import with_row
from tests.decode.wire import event

DATA = Path(__file__).parent / "data"
TEXT = PRIMITIVES["string"]

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
    spark: SparkSession, texts: list[str], types: dict[str, LogicalType], encodings: Encodings
) -> list[tuple[dict[str, Any], set[str] | None]]:
    """Decode events; return their rows with the names of their unavailable columns."""
    columns = [SourceColumn(name, kind) for name, kind in types.items()]
    changes = spark.createDataFrame(
        [(i, text.encode()) for i, text in enumerate(texts)], "_index int, value binary"
    )
    rows = with_row(changes.coalesce(1), columns, encodings, JsonRows(), masked=True)
    found = rows.orderBy("_index").select("row", "unavailable").collect()
    return [
        (row["row"].asDict(), None if row["unavailable"] is None else set(row["unavailable"]))
        for row in found
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


@pytest.mark.parametrize("form", FORMS)
def test_unchanged_values_of_real_events_are_masked_and_null(
    spark: SparkSession, form: str
) -> None:
    encodings, other, expected = FORMS[form]
    lines = (DATA / f"unchanged_{form}.jsonl").read_text("utf-8").splitlines()
    texts = [json.dumps(json.loads(line)["v"], separators=(",", ":")) for line in lines]
    # An update, and the create half of a primary-key change.
    for row, unavailable in masks(spark, texts, TABLE | other, encodings):
        assert unavailable == expected
        assert row["n"] == 2
        assert {name for name, value in row.items() if value is not None} == {"id", "n"}


def test_every_recognised_form_carries_one_of_the_marks() -> None:
    for form, (encodings, _, _) in FORMS.items():
        for line in (DATA / f"unchanged_{form}.jsonl").read_text("utf-8").splitlines():
            text = json.dumps(json.loads(line)["v"], separators=(",", ":"))
            assert any(mark in text for mark in encodings.json_marks())


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
    codes = list(text.encode())
    return event({"t": text, "ta": [text], "ia": codes, "m": {text: text}, "n": 1})


CUSTOM: dict[str, LogicalType] = {
    "t": TEXT,
    "ta": array(TEXT),
    "ia": array(PRIMITIVES["int32"]),
    "m": mapping(TEXT),
    "n": PRIMITIVES["int32"],
}


@pytest.mark.parametrize("setting", ["no value", "hex:2a2b2c", "ünïcode"])
def test_a_configured_placeholder_is_recognised_in_every_type(
    spark: SparkSession, setting: str
) -> None:
    encodings = Encodings(placeholder=setting)
    ((_, unavailable),) = masks(
        spark, [placeholder_event(encodings.placeholder_bytes().decode())], CUSTOM, encodings
    )
    assert unavailable == {"t", "ta", "ia", "m"}


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
    for value, (row, unavailable) in zip(
        values, masks(spark, [event(value) for value in values], CUSTOM, Encodings()), strict=True
    ):
        assert unavailable is None
        assert {name: row[name] for name in value} == value


def test_a_row_decoded_without_looking_for_placeholders_has_no_mask(spark: SparkSession) -> None:
    changes = spark.createDataFrame([(event({"t": "x"}).encode(),)], "value binary")
    decoded = with_row(changes, [SourceColumn("t", TEXT)], Encodings(), JsonRows(), masked=False)
    assert "unavailable" not in decoded.columns


@pytest.mark.parametrize("setting", ["hex:0001ff41", 'a "quoted" word', "back\\slash"])
def test_a_placeholder_that_json_escapes_is_still_hinted_at(setting: str) -> None:
    encodings = Encodings(placeholder=setting)
    # Debezium decodes the octets as UTF-8, and Jackson escapes what JSON demands.
    word = encodings.placeholder_bytes().decode(errors="replace")
    text = json.dumps({"after": {"t": word}}, separators=(",", ":"), ensure_ascii=False)
    assert any(mark in text for mark in encodings.json_marks())
