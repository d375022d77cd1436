"""RFC-39's columns of an event, as Hudi's streamer flattens it; nothing of them unless wanted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakeingest.connectors import CONNECTORS
from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.envelope.change import FAMILIES
from lakeingest.event_columns import BINLOG, EVENT, POSTGRESQL
from lakeingest.frame_schemas import CHANGE, INSIDE
from tests.envelope.records import binlog_event, changed, logged, postgresql_event, recorded
from tests.recordings import flattened

RECORDINGS = Path(__file__).parents[1] / "recordings" / "data"


def event_rows(spark: SparkSession, values: Iterable[Any], connector: str) -> list[dict[str, Any]]:
    return [row[EVENT].asDict() for row in changed(spark, connector, values, event=True)]


@pytest.mark.parametrize(
    ("folder", "topic", "connector"),
    [
        ("pg-shop-small/json-schema", "t3.public.documents", "postgresql"),
        ("pg-shop-small/json-schema", "t3.public.carts", "postgresql"),
        ("mariadb-kill/json", "killmariadb.killmariadb.orders", "mariadb"),
    ],
)
def test_real_events_are_told_as_hudis_streamer_does(
    spark: SparkSession, folder: str, topic: str, connector: str
) -> None:
    lines = islice(recorded(RECORDINGS / folder, topic), 300)
    values = [line["v"] for line in lines if line["v"] is not None]
    bodies = [json.loads(value) for value in values]
    expected = [flattened.flattened(body.get("payload", body)) for body in bodies]
    assert len(expected) > 50
    assert event_rows(spark, values, connector) == expected


def test_names_order_and_types_are_those_of_hudis_streamer() -> None:
    assert POSTGRESQL.fieldNames() == list(flattened.POSTGRESQL)
    assert BINLOG.fieldNames() == [*flattened.BINLOG, flattened.SEQUENCE]
    kinds = {item.name: item.dataType.simpleString() for item in [*POSTGRESQL, *BINLOG]}
    assert {name for name, kind in kinds.items() if kind == "string"} == {
        *("_change_operation_type", "db_shard_source_partition", "db_schema_source_partition"),
        *("_event_bin_file", "_event_seq"),
    }
    assert [name for name, kind in kinds.items() if kind == "int"] == ["_event_row"]


def test_what_debezium_left_out_stays_null(spark: SparkSession) -> None:
    (snapshot,) = event_rows(spark, [postgresql_event(op="r", lsn=None)], "postgresql")
    assert (snapshot["_change_operation_type"], snapshot["_event_lsn"]) == ("r", None)
    (gtid,) = event_rows(spark, [binlog_event("0-1-2", file=None, gtid="0-1-2")], "mariadb")
    assert (gtid["_event_bin_file"], gtid["_event_seq"], gtid["_event_pos"]) == (None, None, 4)


def test_the_order_key_of_mysql_is_the_files_number_and_the_offset(spark: SparkSession) -> None:
    file = "mysql.bin.000012"
    (row,) = event_rows(spark, [binlog_event("u:1", file=file, pos=345, row=2)], "mysql")
    assert row["_event_seq"] == "000012.345"
    assert (row["_event_bin_file"], row["_event_pos"], row["_event_row"]) == (file, 345, 2)


def explained(built: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    built.explain(extended=True)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "connector", [name for name, one in CONNECTORS.items() if one.streamer_source]
)
def test_nothing_of_them_is_read_or_carried_where_they_are_not_wanted(
    spark: SparkSession, connector: str, capsys: pytest.CaptureFixture[str]
) -> None:
    records = logged(spark, [postgresql_event()])
    source = FAMILIES[connector].source
    own = changes(decode_envelope(records, source=source), ChangeSpec(connector))
    columns = [*CHANGE.fieldNames(), *([INSIDE] if connector == "mysql" else [])]
    assert own.columns == columns
    plan = explained(own, capsys)
    assert "from_json" in plan
    assert not [word for word in ("txId", "xmin", "_change_operation_type") if word in plan]
    envelopes = decode_envelope(records, event=True, source=source)
    with_event = changes(envelopes, ChangeSpec(connector, event=True))
    assert with_event.columns == [*columns, EVENT]
    assert "xmin" in explained(with_event, capsys)
