"""Rows in cells whose key is read from the row: what an update leaves out must not become NULL."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.types.logical import PRIMITIVES
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.plan.inference import narrowest, readable_counts
from lakeingest.plan.keyless import NO_ROW_BEFORE
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec
from lakeingest.plan.table import decoded_rows, payload_of_partial_rows
from tests.envelope.records import Record, frame, postgresql_event

SPEC = PipelineSpec("yugabytedb", Encodings())
COLUMNS = tuple(SourceColumn(name, PRIMITIVES["int32"]) for name in ("a", "b"))


def cells(**named: Any) -> dict[str, Any]:
    return {
        name: {"value": named[name], "set": True} if name in named else None for name in ("a", "b")
    }


UPDATES = (
    (cells(a=1, b=2), cells(a=0, b=2)),
    (cells(a=1), cells(a=0, b=2)),
    (cells(a=1, b=2), cells(a=0)),
)
"""The row after and before: whole, the later one in part, the earlier one in part."""
WHOLE, PART_AFTER, PART_BEFORE = range(3)


@pytest.fixture(scope="module")
def updates(spark: SparkSession) -> DataFrame:
    """The updates; the offset of each is its number."""
    events = (
        {**postgresql_event(op="u"), "before": before, "after": after} for after, before in UPDATES
    )
    records = (Record("t", event, offset=number) for number, event in enumerate(events))
    return local_checkpoint(
        changes(decode_envelope(frame(spark, records)), ChangeSpec("yugabytedb"))
    )


def decoded(updates: DataFrame, table: TableSpec, number: int) -> DataFrame:
    return decoded_rows(updates.where(f"offset = {number}"), table, SPEC)


def test_a_declared_key_that_an_update_leaves_out_fails(updates: DataFrame) -> None:
    table = TableSpec("public.a", COLUMNS, ("b",), True, JsonRows(cells=True))
    (payload,) = payload_of_partial_rows(decoded(updates, table, WHOLE), table, SPEC).collect()
    assert (payload["a"], payload["b"]) == (1, 2)
    with pytest.raises(Exception, match=r"column 'b': an update leaves this column of the key out"):
        decoded(updates, table, PART_AFTER).collect()
    with pytest.raises(Exception, match=r"column 'b': an update does not say what this column"):
        decoded(updates, table, PART_BEFORE).collect()


def test_a_table_without_a_key_takes_no_part_of_a_row_for_the_row(updates: DataFrame) -> None:
    key = (SPEC.names.row_key,)
    table = TableSpec(
        "public.a", COLUMNS, key, True, JsonRows(cells=True), keyless=Keyless.FULL_ROW
    )
    assert len(decoded(updates, table, WHOLE).collect()) == 2
    for number in (PART_AFTER, PART_BEFORE):
        with pytest.raises(Exception, match=NO_ROW_BEFORE):
            decoded(updates, table, number).collect()


def test_types_are_taken_from_the_values_in_the_cells(spark: SparkSession) -> None:
    afters = [cells(a=1), cells(a=None, b="x"), cells(a=2, b="1")]
    rows = [(json.dumps({"after": after}).encode(),) for after in afters]
    shown = readable_counts(spark.createDataFrame(rows, "value binary"), ["a", "b"], cells=True)
    counts = shown.collect()[0].asDict()
    assert [narrowest(counts, index).kind for index in (0, 1)] == ["int64", "string"]
