"""Values out of their cells, and the columns that an update has no cell of; JSON and Avro."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.avro.format import AvroFormat
from lakeingest.decode.cells import are_cells, without_cells
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.defaults import Default
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.flattened.json_format import FlattenedFormat
from lakeingest.decode.json.envelope import add_tag, decode_envelope
from lakeingest.decode.json.format import CarriedSchema, JsonFormat
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.row import Absences, AddedColumn, RowSpec, with_key, with_row
from lakeingest.decode.types.logical import JSON, PRIMITIVES, SEMANTIC
from lakeingest.decode.wire import Samples
from tests.decode.avro import (
    envelope_schema,
    event,
    field,
    in_avro,
    parsed,
    record,
    record_schema,
    tag,
)
from tests.decode.connect import DATE
from tests.envelope.records import logged

COLUMNS = (
    SourceColumn("pk", PRIMITIVES["int32"]),
    SourceColumn("day", SEMANTIC["io.debezium.time.Date"]),
    SourceColumn("bb", PRIMITIVES["string"]),
)
GONE = "__debezium_unavailable_value"


def cell(value: object) -> dict[str, object]:
    return {"value": value, "set": True}


def row(pk: int, **named: object) -> dict[str, Any]:
    rest = {name: cell(named[name]) if name in named else None for name in ("day", "bb")}
    return {"pk": cell(pk), **rest}


EVENTS = [
    ("c", None, row(1, day=20_455, bb="x"), (1, "2026-01-02", "x"), None),
    # An insert has all there is: what it has no cell of is NULL.
    ("c", None, row(2, bb="x"), (2, None, "x"), None),
    ("u", None, row(1, day=None), (1, None, None), {"bb"}),
    ("u", None, row(1, bb=None), (1, None, None), {"day"}),
    ("u", None, row(1), (1, None, None), {"day", "bb"}),
    # Who has such a text means it: a cell that is there has a value.
    ("u", None, row(1, day=None, bb=GONE), (1, None, GONE), None),
    ("u", row(1, bb="old"), row(1, bb="new"), (1, None, "new"), {"day"}),
    ("d", row(1, day=None, bb=None), None, None, None),
    ("r", None, row(3, day=0, bb=""), (3, "1970-01-01", ""), None),
]


def read(decoded: DataFrame) -> list[tuple[Any, Any]]:
    rows = decoded.select("row", "unavailable").collect()
    return [(_values(one["row"]), set(one["unavailable"] or ()) or None) for one in rows]


def _values(decoded_row: Row | None) -> tuple[Any, ...] | None:
    if decoded_row is None:
        return None
    pk, day, bb = decoded_row
    return (pk, None if day is None else str(day), bb)


def test_json_rows_are_taken_out_of_their_cells(spark: SparkSession) -> None:
    texts = [
        (op, json.dumps({"before": before, "after": after, "op": op}).encode())
        for op, before, after, *_ in EVENTS
    ]
    changes = spark.createDataFrame(texts, "op string, value binary").coalesce(1)
    decoded = with_row(changes, RowSpec(COLUMNS, Encodings(), JsonRows(cells=True)), masked=True)
    assert read(decoded) == [(values, left_out) for *_, values, left_out in EVENTS]


def test_an_update_from_before_a_column_has_its_default_and_does_not_leave_it_out(
    spark: SparkSession,
) -> None:
    old, new = "A" * 16, "B" * 16
    texts = [
        ("u", json.dumps({"schema": name, "after": after}, separators=(",", ":")).encode())
        for name, after in [(old, {"pk": cell(1), "day": cell(0)}), (new, row(1, day=0))]
    ]
    changes = spark.createDataFrame(texts, "op string, value binary").coalesce(1)
    early = Absences(added={"bb": AddedColumn(frozenset({old.encode()}), Default('"web"'))})
    reader = JsonRows(cells=True)
    decoded = with_row(changes, RowSpec(COLUMNS, Encodings(), reader, absences=early), masked=True)
    day = "1970-01-01"
    assert read(decoded) == [((1, day, "web"), None), ((1, day, None), {"bb"})]


def _cell_schema(name: str, kind: Any, *, optional: bool = True) -> dict[str, Any]:
    value = field("value", ["null", kind] if optional else kind)
    described = record_schema(name, value, field("set", "boolean"), namespace="")
    return field(name, ["null", described] if optional else described)


PK = _cell_schema("pk", "int", optional=False)
AVRO_ROW = envelope_schema(PK, _cell_schema("day", in_avro(DATE)), _cell_schema("bb", "string"))
AVRO_KEY = record_schema("Key", PK, namespace="shop.public.orders")


def test_avro_rows_and_keys_are_taken_out_of_their_cells(spark: SparkSession) -> None:
    form = AvroFormat(parsed({1: AVRO_KEY, 2: AVRO_ROW}))
    changed = [
        (op, record(2, AVRO_ROW, event(after, op=op, before=before)))
        for op, before, after, *_ in EVENTS
    ]
    keys = [record(1, AVRO_KEY, {"pk": cell(number)}) for number in range(len(EVENTS))]
    records = [(*change, key) for change, key in zip(changed, keys, strict=True)]
    shown = form.table_shape(Samples(value_tags=frozenset({tag(2)}), key_tags=frozenset({tag(1)})))
    columns = [(c.name, c.nullable, c.type.spark.simpleString()) for c in shown.columns]
    assert columns == [("pk", False, "int"), ("day", True, "date"), ("bb", True, "string")]
    assert (shown.reader.cells, shown.mixed, shown.key) == (True, False, ("pk",))
    changes = spark.createDataFrame(records, "op string, value binary, key binary").coalesce(1)
    decoded = with_row(changes, RowSpec(shown.columns, Encodings(), shown.reader), masked=True)
    assert read(decoded) == [(values, left_out) for *_, values, left_out in EVENTS]
    keyed = with_key(changes, shown.columns[:1], "k", shown.reader).select("k.pk").collect()
    assert [one["pk"] for one in keyed] == list(range(len(EVENTS)))
    hint = changes.select(form.may_omit(F.col("value"))).distinct().collect()
    assert [one[0] for one in hint] == [True]


def test_json_keys_are_taken_out_of_their_cells(spark: SparkSession) -> None:
    keys = [('{"pk":{"value":7,"set":true}}',), (None,)]
    changes = spark.createDataFrame(keys, "key string").select(F.col("key").cast("binary"))
    keyed = with_key(changes.coalesce(1), COLUMNS[:1], "k", JsonRows(cells=True)).select("k")
    assert [one["k"] and tuple(one["k"]) for one in keyed.collect()] == [(7,), None]


def _field(name: str, kind: Mapping[str, Any], *, optional: bool = True) -> dict[str, Any]:
    value = {**kind, "optional": optional, "field": "value"}
    parts = [value, {"type": "boolean", "optional": False, "field": "set"}]
    return {"type": "struct", "fields": parts, "optional": optional, "name": name, "field": name}


FIELDS = [
    _field("pk", {"type": "int32"}, optional=False),
    _field("day", DATE),
    _field("bb", {"type": "string", "default": "web"}),
]


def test_a_schema_in_json_shows_the_columns_in_the_cells() -> None:
    side = {"type": "struct", "fields": FIELDS, "optional": True, "field": "before"}
    text = json.dumps({"type": "struct", "fields": [side, {**side, "field": "after"}]})
    schema = JsonFormat().carried_schema(0, text, JSON)
    columns = schema.columns
    assert columns == COLUMNS
    assert [c.nullable for c in columns] == [False, True, True]
    assert [c.default for c in columns] == [None, None, '"web"']
    schemas = {b"1": schema, b"2": CarriedSchema(1, columns)}
    assert JsonFormat(schemas).nullable_defaults({b"1"}) == ("bb",)
    one = JsonFormat(schemas).table_shape(Samples(value_tags=frozenset({b"1"})))
    assert (one.reader.cells, one.mixed) == (True, False)
    assert JsonFormat(schemas).table_shape(Samples(value_tags=frozenset(schemas))).mixed


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [{"type": "int32", "field": "pk"}],
        [*FIELDS, {"type": "int32", "field": "n"}],
        # VariableScaleDecimal, and a column named as a cell's part.
        [{"type": "struct", "field": "n", "fields": [{"type": "int32", "field": "scale"}]}],
        [{"type": "int32", "field": "value"}, {"type": "boolean", "field": "set"}],
        [{**FIELDS[0], "fields": [*FIELDS[0]["fields"], {"type": "int32", "field": "more"}]}],
    ],
)
def test_fields_that_are_not_all_cells_are_left_as_they_are(fields: list[dict[str, Any]]) -> None:
    assert without_cells(fields) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (row(1), True),
        (row(1, bb="x"), True),
        ({"pk": 1, "bb": cell("x")}, False),
        ({"pk": {"value": "1", "set": "true"}}, False),
        ({"pk": {**cell(1), "more": 1}}, False),
        ({"pk": None}, None),
        ({}, None),
    ],
)
def test_a_row_in_json_tells_whether_it_comes_in_cells(
    values: dict[str, Any], expected: bool | None
) -> None:
    assert are_cells(values, list(values)) is expected


def test_rows_without_their_envelopes_may_come_in_cells_too() -> None:
    values = (json.dumps({"after": {**row(1), "__op": "u", "__lsn": 7}}).encode(),)
    shown = FlattenedFormat().table_shape(Samples(values=values))
    assert (shown.reader.cells, shown.mixed, shown.fields) == (True, False, ("pk", "day", "bb"))


NAMES = ("before", "after", "value", "set", 'a"value', "n:null")
TEXTS = (None, "", "null", ':null,"', '{"value":null,"set":true}', '"before":null,', "\\")


def _random(draw: Random) -> tuple[dict[str, Any], bool]:
    """Return an envelope with its columns in cells, and whether one is missing."""
    sent = {name: cell(draw.choice(TEXTS)) for name in draw.sample(NAMES, draw.randint(1, 5))}
    missing = draw.sample(list(sent), draw.randint(0, 1))
    after = {name: None if name in missing else of for name, of in sent.items()}
    before = draw.choice([None, None, sent])
    return {"before": before, "after": {"pk": cell(1), **after}}, bool(missing)


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_the_hint_misses_no_cell_that_is_not_there(
    spark: SparkSession, separators: tuple[str, str]
) -> None:
    draw = Random(20261123)
    made = [_random(draw) for _ in range(2_000)]
    texts = [(json.dumps(of, separators=separators), missing) for of, missing in made]
    shown = spark.createDataFrame(texts, "text string, missing boolean").coalesce(1)
    text = F.col("text")
    for value in (text, add_tag(text, F.lit("{}"))):
        hint = JsonFormat().may_omit(value.cast("binary"))
        assert shown.where(F.col("missing") & ~F.coalesce(hint, F.lit(False))).isEmpty()


def _hints(spark: SparkSession, afters: Sequence[Any]) -> list[bool]:
    source = {"version": "2.5.2.ybpg", "sequence": None}
    envelopes = [{"before": None, "after": after, "source": source, "op": "u"} for after in afters]
    decoded = decode_envelope(logged(spark, envelopes)).orderBy("offset")
    return [bool(one[0]) for one in decoded.select(JsonFormat().may_omit(F.col("value"))).collect()]


def test_the_hint_lets_whole_rows_and_plain_ones_be_folded_undecoded(spark: SparkSession) -> None:
    whole = [row(1, day=None, bb="x"), row(1, day=1, bb=None)]
    plain = [{"pk": 1, "bb": None}, {"pk": 1, "bb": "x"}]
    assert _hints(spark, [*whole, *plain, row(1, bb=None)]) == [False] * 4 + [True]
