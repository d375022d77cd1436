"""Policies for values: those of a table hold for it, and for no other."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, StringType

from lakeingest.reader import open_lake
from tests.decode.wire import unscaled
from tests.logs.changing import ID, column
from tests.logs.written import WrittenLog, place_of

pytestmark = pytest.mark.slow

INFINITE = 9223372036825200000
LARGE = 10**45
ORDERS, BILLS = "public.orders", "public.bills"

LARGE_DECIMAL = {
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "0", "connect.decimal.precision": "60"},
}
COLUMNS = [
    ID,
    column("amount", "bytes", **LARGE_DECIMAL),
    column("until", "int64", name="io.debezium.time.MicroTimestamp"),
    column("tags", "array", items={"type": "double", "optional": True}),
]
ROW = column("after", "struct", fields=COLUMNS)


def sent(log: WrittenLog, collection: str, lsn: int, op: str, **row: Any) -> None:
    """Write a transaction of one change, in JSON with its schema; ``m``: of the key, to 2."""
    place = place_of(collection, lsn, lsn - 1, version="3.4.1.Final", snapshot="false")
    changes = [("d", 1, None), ("c", 2, row)] if op == "m" else [(op, 1, row)]
    log.begin(f"{lsn}:{lsn}")
    for number, (part, id_, values) in enumerate(changes, 1):
        payload = {
            "before": None,
            "after": None if values is None else {"id": id_, **values},
            "source": place,
            "transaction": {"id": f"{lsn}:{lsn}", "total_order": number},
            "op": part,
        }
        schema = {"type": "struct", "name": f"{collection}.Envelope", "fields": [ROW]}
        record = json.dumps({"schema": schema, "payload": payload}, separators=(",", ":"))
        log.raw(collection, {"id": id_}, record)
    log.end(f"{lsn}:{lsn}", {collection: len(changes)})


def test_a_table_has_its_own_policy_for_numbers_times_and_nulls_that_may_be_unchanged_values(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    """Also in a key change without headers."""
    large, small = unscaled(LARGE), unscaled(7)
    sent(log, ORDERS, 10, "c", amount=large, until=1, tags=[1.5])
    sent(log, BILLS, 11, "c", amount=small, until=1, tags=[1.5])
    sent(log, ORDERS, 30, "u", amount=large, until=INFINITE, tags=None)
    sent(log, BILLS, 31, "u", amount=small, until=2, tags=None)
    sent(log, ORDERS, 50, "m", amount=large, until=INFINITE, tags=None)
    policies = {"decimal.too.large": "string", "infinite.times": "edge", "ambiguous.nulls": "keep"}
    own = {f"table.{ORDERS}.{key}": policy for key, policy in policies.items()}
    log.ingest(spark, lake, types_guess="stop", **own)
    snapshot = open_lake(spark, str(lake)).snapshot()
    orders, bills = snapshot.table(ORDERS), snapshot.table(BILLS)
    assert orders.schema["amount"].dataType == StringType()
    assert bills.schema["amount"].dataType == DecimalType(38, 0)
    (row,) = orders.collect()
    last = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
    assert [*row] == [2, str(LARGE), last, [1.5]]
    assert [row["tags"] for row in bills.collect()] == [None]
