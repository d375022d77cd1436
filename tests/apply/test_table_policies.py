"""Policies for values: those of a table hold for it, and for no other."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, StringType

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.reader import open_lake
from tests.decode.wire import unscaled
from tests.source.folder import line, write_topic

pytestmark = pytest.mark.slow

PREFIX = "shop"
INFINITE = 9223372036825200000
LARGE = 10**45
ORDERS, BILLS = "public.orders", "public.bills"

ROW = {
    "type": "struct",
    "optional": True,
    "field": "after",
    "fields": [
        {"field": "id", "type": "int64", "optional": False},
        {
            "field": "amount",
            "type": "bytes",
            "optional": True,
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "0", "connect.decimal.precision": "60"},
        },
        {
            "field": "until",
            "type": "int64",
            "optional": True,
            "name": "io.debezium.time.MicroTimestamp",
        },
        {
            "field": "tags",
            "type": "array",
            "optional": True,
            "items": {"type": "double", "optional": True},
        },
    ],
}


def sent(collection: str, lsn: int, op: str, **row: Any) -> Any:
    """Return a record of a table, in JSON with its schema."""
    table = collection.partition(".")[2]
    payload = {
        "before": None,
        "after": {"id": 1, **row},
        "source": {
            "version": "3.4.1.Final",
            "snapshot": "false",
            "schema": "public",
            "table": table,
            "lsn": lsn,
            "sequence": f'["{lsn - 1}","{lsn}"]',
        },
        "transaction": {"id": f"{lsn}:{lsn}", "total_order": 1},
        "op": op,
    }
    schema = {"type": "struct", "name": f"{collection}.Envelope", "fields": [ROW]}
    return json.dumps({"schema": schema, "payload": payload}, separators=(",", ":"))


def written(folder: Path, **rows: list[tuple[str, int, dict[str, Any]]]) -> Path:
    """Write a log: per table, what was done, at which LSN, to which values."""
    marks = []
    for name, changes in rows.items():
        collection = f"public.{name}"
        lines = [
            line(0, n, sent(collection, lsn, op, **row), json.dumps({"id": 1}))
            for n, (op, lsn, row) in enumerate(changes)
        ]
        write_topic(folder, f"{PREFIX}.{collection}", lines)
        marks += [(lsn, collection) for _, lsn, _ in changes]
    ends = []
    for lsn, collection in sorted(marks):
        counts = [{"data_collection": collection, "event_count": 1}]
        begin = {"status": "BEGIN", "id": f"{lsn}:{lsn}", "ts_ms": lsn}
        end = {**begin, "status": "END", "event_count": 1, "data_collections": counts}
        ends += [begin, end]
    lines = [line(0, n, json.dumps(mark)) for n, mark in enumerate(ends)]
    write_topic(folder, f"{PREFIX}.transaction", lines)
    (folder / "manifest.json").write_text(json.dumps({"topics": {}}), "utf-8")
    return folder


def ingested(spark: SparkSession, log: Path, lake: Path, **settings: str) -> Any:
    run_pipeline(
        spark,
        load_config(
            {
                "lakeingest.pipeline.name": "policies",
                "lakeingest.source.path": str(log),
                "lakeingest.source.connector": "postgresql",
                "lakeingest.source.topic.prefix": PREFIX,
                "lakeingest.target.path": str(lake),
                **{f"lakeingest.{key}": value for key, value in settings.items()},
            }
        ),
    )
    return open_lake(spark, str(lake)).snapshot()


def test_a_table_has_its_own_policy_for_numbers_times_and_nulls_that_may_be_unchanged_values(
    spark: SparkSession, tmp_path: Path
) -> None:
    large, small = unscaled(LARGE), unscaled(7)
    log = written(
        tmp_path / "log",
        orders=[
            ("c", 10, {"amount": large, "until": 1, "tags": [1.5]}),
            ("u", 30, {"amount": large, "until": INFINITE, "tags": None}),
        ],
        bills=[
            ("c", 11, {"amount": small, "until": 1, "tags": [1.5]}),
            ("u", 31, {"amount": small, "until": 2, "tags": None}),
        ],
    )
    policies = {"decimal.too.large": "string", "infinite.times": "edge", "ambiguous.nulls": "keep"}
    own = {f"table.{ORDERS}.{key}": policy for key, policy in policies.items()}
    snapshot = ingested(spark, log, tmp_path / "lake", **own)
    orders, bills = snapshot.table(ORDERS), snapshot.table(BILLS)
    assert orders.schema["amount"].dataType == StringType()
    assert bills.schema["amount"].dataType == DecimalType(38, 0)
    (row,) = orders.collect()
    last = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
    assert (row["amount"], row["until"], row["tags"]) == (str(LARGE), last, [1.5])
    assert [row["tags"] for row in bills.collect()] == [None]
