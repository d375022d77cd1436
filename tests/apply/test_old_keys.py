"""Values that a key change leaves out, where the header's text does not tell the old key."""

from __future__ import annotations

import base64
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.batch.changeset import changeset
from lakeingest.apply.batch.table_part import Fold, TablePart
from lakeingest.apply.batch_stats import batch_stats
from lakeingest.apply.window.summary import summarise
from lakeingest.decode.columns import declared_columns
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.plan.spec import PipelineSpec, TableSpec
from tests.envelope.records import Record, frame, postgresql_event

SPEC = PipelineSpec("postgresql", Encodings())
OTHER = int.from_bytes(base64.b64decode("1234"), "big", signed=True)
"""What the header of 1234 would say if it were base64."""


def octets(number: int) -> str:
    return base64.b64encode(number.to_bytes(3, "big", signed=True)).decode()


def sent(op: str, number: int, lsn: int, text: str | None = None, **headers: Any) -> Record:
    row = {"id": octets(number), "t": text}
    event = postgresql_event(op=op, lsn=lsn, before=100)
    sides = {"before": row if op == "d" else None, "after": None if op == "d" else row}
    return Record("t.public.a", {**event, **sides}, {"id": octets(number)}, 0, lsn, headers)


def test_a_key_change_of_a_decimal_key_finds_its_values_by_the_delete_beside_it(
    spark: SparkSession,
) -> None:
    left_out = SPEC.encodings.placeholder
    records = [
        sent("c", 1234, 110, "of 1234"),
        sent("c", OTHER, 120, "of another"),
        sent("c", 1235, 125, "of 1235"),
        sent("d", 1234, 130, **{"__debezium.newkey": '{"id":7}'}),
        sent("c", 7, 130, left_out, **{"__debezium.oldkey": '{"id":1234}'}),
        # As JsonConverter writes headers.
        sent("d", 1235, 140, **{"__debezium.newkey": '{"id":8}'}),
        sent("c", 8, 140, left_out, **{"__debezium.oldkey": f'{{"id":"{octets(1235)}"}}'}),
    ]
    marks = tuple(mark.encode() for mark in SPEC.encodings.json_marks())
    events = changes(decode_envelope(frame(spark, records)), ChangeSpec("postgresql", marks=marks))
    events = local_checkpoint(events.withColumn("batch", F.lit(1)))
    schema = spark.createDataFrame([], "id DECIMAL(20,0), t STRING").schema
    table = TableSpec("public.a", declared_columns(schema, SPEC.encodings), ("id",))
    stats = tuple(batch_stats(summarise(events, SPEC.format)))
    part = TablePart(table, stats, events, "", Fold.PARTIAL_ROWS, foreseen=False)
    made, _ = changeset(part, SPEC, None)
    rows = made.frame.where(f"NOT {SPEC.names.deleted}").select("id", "t").collect()
    shown = {int(row["id"]): row["t"] for row in rows}
    assert shown == {OTHER: "of another", 7: "of 1234", 8: "of 1235"}
