"""The same orders of arrival through Hudi's own Debezium payload classes, as Hudi Streamer does.

Flattened as its Debezium sources flatten: ``after``, of a delete ``before`` (the key alone, as
REPLICA IDENTITY DEFAULT has it), and the fields of the event that the payload class orders by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakeingest.engine.hudi.table import READ_OPTIONS
from tests.vectors.arrival import COLUMNS, Event, Left, Vector
from tests.vectors.judged import Rows
from tests.vectors.wording import left_out

_PACKAGE = "org.apache.hudi.common.model.debezium"
_OPTIONS = {
    "hoodie.table.name": "own",
    "hoodie.datasource.write.recordkey.field": "key",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.metadata.enable": "false",
}


@dataclass(frozen=True)
class Payload:
    """One payload class, and the column that it orders by."""

    name: str
    ordering: str
    kind: str

    def place(self, event: Event) -> Any:
        """Return what Hudi's source makes of an event's place."""
        if isinstance(event.at, int):
            return event.at
        return f"{event.at[0]:05d}.{event.at[1]}"


POSTGRESQL = Payload("PostgresDebeziumAvroPayload", "_event_lsn", "BIGINT")
MYSQL = Payload("MySqlDebeziumAvroPayload", "_event_seq", "STRING")


def rows_of(
    spark: SparkSession, path: Path, payload: Payload, table_type: str, vectors: Sequence[Vector]
) -> Rows:
    """Upsert batch after batch and return what is in the table then."""
    ddl = (
        f"key STRING, h BIGINT, id BIGINT, {COLUMNS}, _change_operation_type STRING, "
        f"{payload.ordering} {payload.kind}"
    )
    options = {
        **_OPTIONS,
        "hoodie.datasource.write.payload.class": f"{_PACKAGE}.{payload.name}",
        "hoodie.table.ordering.fields": payload.ordering,
        "hoodie.datasource.write.table.type": table_type,
    }
    for number in range(max(len(vector.rounds) for vector in vectors)):
        rows = [
            _row(case, event, payload)
            for case, vector in enumerate(vectors)
            if number < len(vector.rounds)
            for event in vector.rounds[number]
            if event.op in "crud"
        ]
        writer = spark.createDataFrame(rows, ddl).write.format("hudi").options(**options)
        writer.mode("append").save(str(path))
    rows_by_case: dict[int, dict[int, dict[str, Any]]] = {}
    for row in spark.read.format("hudi").options(**READ_OPTIONS).load(str(path)).collect():
        values = {**row.asDict(), "blob": row["blob"] and bytes(row["blob"])}
        rows_by_case.setdefault(row["h"], {})[row["id"]] = values
    return rows_by_case


def _row(case: int, event: Event, payload: Payload) -> tuple[Any, ...]:
    names = [part.split()[0] for part in COLUMNS.split(", ")]
    values = [_value(name, event.values.get(name)) for name in names]
    return (f"{case}/{event.id}", case, event.id, *values, event.op, payload.place(event))


def _value(name: str, value: Any) -> Any:
    return left_out(name) if value is Left.OUT else value
