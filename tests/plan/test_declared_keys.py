"""Keys that a user declares and the record key has not: an update may change them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.decode.types.logical import PRIMITIVES
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.errors import DataError
from lakeingest.plan.spec import PipelineSpec, TableSpec
from lakeingest.plan.table import decoded_rows, payload_of_partial_rows
from tests.envelope.records import Record, frame, postgresql_event

SPEC = PipelineSpec("postgresql", Encodings())
COLUMNS = tuple(SourceColumn(name, PRIMITIVES["string"]) for name in ("code", "t"))
TABLE = TableSpec("public.a", COLUMNS, ("code",), True)
PLACEHOLDER = SPEC.encodings.placeholder


def event(op: str, after: Any, before: Any = None, *, lsn: int = 110) -> Any:
    return {**postgresql_event(op=op, lsn=lsn, before=100), "before": before, "after": after}


def decoded(spark: SparkSession, events: Sequence[Any]) -> DataFrame:
    records = [Record("t.public.a", one, None, 0, number) for number, one in enumerate(events)]
    window = changes(decode_envelope(frame(spark, records)), ChangeSpec("postgresql"))
    return decoded_rows(local_checkpoint(window), TABLE, SPEC)


def payloads(spark: SparkSession, events: Sequence[Any]) -> list[tuple[Any, ...]]:
    payload = payload_of_partial_rows(decoded(spark, events), TABLE, SPEC)
    return sorted(tuple(row) for row in payload.select("code", "t", SPEC.names.deleted).collect())


def row(code: str | None, text: str | None = "x") -> dict[str, Any]:
    return {"code": code, "t": text}


def test_an_update_that_changes_a_declared_key_takes_the_row_under_its_old_key_away(
    spark: SparkSession,
) -> None:
    """One that keeps the key is one change."""
    events = [
        event("c", row("A")),
        event("u", row("B"), row("A"), lsn=120),
        event("u", row("C", "y"), row("C")),
    ]
    assert payloads(spark, events) == [("A", None, True), ("B", "x", False), ("C", "y", False)]


def test_values_that_a_change_of_a_declared_key_leaves_out_are_those_of_the_old_key(
    spark: SparkSession,
) -> None:
    (gone, come) = decoded(spark, [event("u", row("B", PLACEHOLDER), row("A"))]).collect()
    assert (gone["op"], gone["key_row"]["code"], gone["row"]) == ("d", "A", None)
    assert (come["op"], come["key_row"]["code"]) == ("c", "B")
    assert (come["unavailable"], come["moved_from_row"]["code"]) == (["t"], "A")
    assert gone["position"] == come["position"]


def test_null_in_a_declared_key_is_refused(spark: SparkSession) -> None:
    expected = "Table 'public.a', column 'code': NULL in a column of the key finds no row.*NOT NULL"
    with pytest.raises(DataError, match=expected), spark_errors_of("public.a"):
        decoded(spark, [event("c", row(None))]).collect()


@pytest.mark.parametrize(
    ("one", "what"),
    [
        (event("u", row("A")), "an update does not say what this column of the key was"),
        (event("d", None, row(None, None)), "a delete does not say what this column"),
    ],
)
def test_a_change_that_does_not_say_what_the_key_was_is_refused(
    spark: SparkSession, one: Any, what: str
) -> None:
    expected = f"Table 'public.a', column 'code': {what}.*REPLICA IDENTITY FULL"
    with pytest.raises(DataError, match=expected), spark_errors_of("public.a"):
        decoded(spark, [one]).collect()
