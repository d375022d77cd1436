"""Rows that a transform took out of their envelopes, in Avro: header, row, and what is neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from lakeingest.decode.encodings import Encodings
from lakeingest.decode.flattened.avro_format import FlattenedAvroFormat
from lakeingest.decode.row import RowSpec, with_row
from lakeingest.decode.wire import Samples
from lakeingest.frame_schemas import ENVELOPE
from tests.decode.avro import field, optional, parsed, record, record_schema, tag
from tests.envelope.records import frame, logged

ADDED = {
    "__op": "string",
    "__source_ts_ms": "long",
    "__source_snapshot": "string",
    "__source_schema": "string",
    "__source_table": "string",
    "__source_sequence": "string",
    "__source_lsn": "long",
    "__transaction_id": "string",
    "__transaction_total_order": "long",
    "__deleted": "string",
}
SEQUENCE = '["5","7"]'


def schema(*fields: Mapping[str, Any], without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the schema of rows with these columns and the transform's fields."""
    added = [optional(name, kind) for name, kind in ADDED.items() if name not in without]
    return record_schema("Value", *fields, *added, namespace="shop.public.orders")


def row(kind: str = "c", /, **columns: Any) -> dict[str, Any]:
    return {
        "__op": kind,
        "__source_ts_ms": 1,
        "__source_snapshot": "false",
        "__source_schema": "public",
        "__source_table": "orders",
        "__source_sequence": SEQUENCE,
        "__source_lsn": 7,
        "__transaction_id": "3:7",
        "__transaction_total_order": 2,
        "__deleted": "true" if kind == "d" else "false",
        **columns,
    }


# A column may be called ``op``, and be no text.
OLD = schema(field("id", "int"), field("op", ["null", "int"]))
NEW = schema(
    field("id", "long"),
    field("op", ["null", "int"]),
    field("added", ["string", "null"], default="web"),
)
MUTE = schema(field("id", "int"), without=("__op",))
NOWHERE = schema(field("id", "int"), without=("__source_sequence",))
MESSAGE = record_schema(
    "Envelope", field("op", "string"), field("ts_ms", "long"), namespace="shop.message"
)
SCHEMAS = {9: OLD, 12: NEW, 13: MUTE, 14: NOWHERE, 15: MESSAGE}


@pytest.fixture(scope="module")
def form() -> FlattenedAvroFormat:
    """Know all schemas of the module."""
    return FlattenedAvroFormat(parsed(SCHEMAS))


def envelopes(spark: SparkSession, form: FlattenedAvroFormat, *values: bytes | None) -> list[Row]:
    return form.envelopes(logged(spark, values)).orderBy("offset").collect()


def test_a_row_tells_what_it_is_and_where_it_stands(
    spark: SparkSession, form: FlattenedAvroFormat
) -> None:
    octets = record(9, OLD, row(id=1, op=4))
    (changed, null_record) = envelopes(spark, form, octets, None)
    assert changed["op"] == "c"
    assert changed["source"].asDict() == {
        **dict.fromkeys(ENVELOPE["source"].dataType.fieldNames()),  # type: ignore[attr-defined]
        "ts_ms": 1,
        "snapshot": "false",
        "schema": "public",
        "table": "orders",
        "sequence": SEQUENCE,
        "lsn": 7,
    }
    assert changed["transaction"].asDict() == {"id": "3:7", "total_order": 2}
    assert bytes(changed["value"]) == octets
    assert (changed["malformed"], null_record["malformed"]) == (False, False)
    assert null_record["value"] is None
    assert form.envelopes(frame(spark, [])).columns == ENVELOPE.fieldNames()


def test_a_row_that_does_not_say_what_it_is_or_where_is_broken_and_a_message_is_not(
    spark: SparkSession, form: FlattenedAvroFormat
) -> None:
    mute, nowhere = row(id=1), row(id=1)
    del mute["__op"], nowhere["__source_sequence"]
    rows = envelopes(
        spark,
        form,
        record(13, MUTE, mute),
        record(14, NOWHERE, nowhere),
        record(14, NOWHERE, {**nowhere, "__transaction_id": None}),
        record(15, MESSAGE, {"op": "m", "ts_ms": 1}),
        record(99, OLD, row(id=1, op=None)),
    )
    assert [one["malformed"] for one in rows] == [True, True, False, False, True]
    # A row of a snapshot is in no transaction.
    assert rows[2]["transaction"] is None
    assert rows[3]["op"] == "m"


def test_rows_of_old_and_new_schemas_are_after_a_change_or_before_a_delete(
    spark: SparkSession, form: FlattenedAvroFormat
) -> None:
    octets = [
        record(9, OLD, row(id=1, op=7)),
        record(12, NEW, row(id=2**40, op=None, added="shop")),
        record(12, NEW, row("d", id=3, op=None, added="web")),
    ]
    shown = form.table_shape(Samples(value_tags=frozenset(value[:5] for value in octets)))
    assert shown.fields == ("id", "op", "added")
    changes = spark.createDataFrame(list(enumerate(octets)), "at int, value binary").coalesce(1)

    def read(*sides: str) -> list[dict[str, Any] | None]:
        spec = RowSpec(shown.columns, Encodings(), shown.reader)
        rows = with_row(changes, spec, masked=False, sides=sides).orderBy("at").collect()
        return [one["row"] and one["row"].asDict() for one in rows]

    live = [{"id": 1, "op": 7, "added": None}, {"id": 2**40, "op": None, "added": "shop"}]
    gone = {"id": 3, "op": None, "added": "web"}
    assert read("after") == [*live, None]
    assert read("before") == [None, None, gone]
    assert read("after", "before") == [*live, gone]


def test_a_column_whose_nulls_may_have_been_replaced_is_named(form: FlattenedAvroFormat) -> None:
    assert form.nullable_defaults({tag(9), tag(12)}) == ("added",)
