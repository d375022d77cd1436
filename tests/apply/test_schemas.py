"""Schemas are learned as records name them; a record of an unknown one is never skipped."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType

import lakeingest
from lakeingest.apply.run import run_pipeline
from lakeingest.apply.table.record_schemas import CarriedSchemas, RegistrySchemas
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.resolve import learn_schemas
from lakeingest.config import load_config
from lakeingest.decode.columns import SourceColumn, from_connect
from lakeingest.decode.json.envelope import carried_schemas
from lakeingest.decode.types.logical import Form
from lakeingest.decode.wire import Samples
from lakeingest.errors import DataError
from lakeingest.source.bounds import checked_ranges
from lakeingest.source.contract import OffsetRange, TopicPartition, Watermarks
from lakeingest.source.registry.recorded import RecordedRegistry
from tests.config.settings import recorded
from tests.decode.avro import METADATA, envelope_schema, event, record
from tests.envelope.records import Record, frame, postgresql_event
from tests.logs.folder import Line, line, write_log, write_schemas
from tests.logs.written import b64, mark_of

KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
OLD = envelope_schema({"name": "id", "type": "long"}, {"name": "n", "type": "int"})
NEW = envelope_schema(
    {"name": "id", "type": "long"},
    {"name": "n", "type": "long"},
    {"name": "channel", "type": ["string", "null"], "default": "web"},
)
SCHEMAS = {1: KEY, 2: OLD, 3: METADATA, 4: NEW, 99: NEW}


@dataclass
class Log:
    """A recorded folder that grows by one transaction of one row at a time."""

    folder: Path
    rows: list[Line] = field(default_factory=list)
    ends: list[Line] = field(default_factory=list)

    def commit(self, schema_id: int, schema: Any, after: Any, named: int | None = None) -> None:
        lsn = 10 * (len(self.rows) + 1)
        change = event(after, lsn=lsn)
        change["source"]["sequence"] = json.dumps([str(lsn - 5), str(lsn)], separators=(",", ":"))
        value = record(schema_id, schema, change)
        if named is not None:
            value = b"\0" + named.to_bytes(4, "big") + value[5:]
        key = record(1, KEY, {"id": after["id"]})
        self.rows.append(line(0, len(self.rows), b64(value), b64(key)))
        for status, at, count in (("BEGIN", lsn, None), ("END", lsn + 1, 1)):
            block = mark_of(status, f"3:{at}", "public.orders", count, 5)
            self.ends.append(line(0, len(self.ends), b64(record(3, METADATA, block)), None))

    def write(self, *schema_ids: int) -> None:
        write_log(self.folder, {"shop.public.orders": self.rows, "shop.transaction": self.ends})
        write_schemas(self.folder, {number: SCHEMAS[number] for number in schema_ids})

    def run(self, spark: SparkSession, lake: Path) -> list[tuple[Any, ...]]:
        settings = {**recorded(self.folder, lake), "lakeingest.source.format": "avro"}
        run_pipeline(spark, load_config(settings))
        return shown(spark, lake)


def shown(spark: SparkSession, lake: Path) -> list[tuple[Any, ...]]:
    table = lakeingest.open(spark, str(lake)).snapshot().table("public.orders").orderBy("id")
    return [tuple(row) for row in table.collect()]


@pytest.mark.slow
def test_rows_of_several_schemas_are_one_table_also_where_only_the_middle_of_the_log_names_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, lake = Log(tmp_path / "log"), tmp_path / "lake"
    log.commit(2, OLD, {"id": 1, "n": 1})
    log.commit(4, NEW, {"id": 2, "n": 2**40, "channel": None})
    log.commit(2, OLD, {"id": 3, "n": 3})
    log.commit(4, NEW, {"id": 4, "n": 4, "channel": "shop"}, named=99)
    log.commit(4, NEW, {"id": 5, "n": 5, "channel": "shop"})
    log.write(1, 2, 3, 4, 99)
    # Rows from before the column have its default, as in the database.
    rows = [(1, 1, "web"), (2, 2**40, None), (3, 3, "web"), (4, 4, "shop"), (5, 5, "shop")]
    assert log.run(spark, lake) == rows


def test_a_record_of_a_schema_that_is_unknown_stops_the_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "registry.json").write_text('{"1": {"schema": "long"}}', "utf-8")
    schemas = RegistrySchemas(RecordedRegistry(str(tmp_path)))
    with pytest.raises(DataError, match=r"'t' were written with schema 99, .* Nothing was skipped"):
        schemas.learn(log_of(spark, [record(99, NEW, event({"id": 1, "n": 1, "channel": None}))]))


class Asked:
    """A registry that remembers what it was asked for."""

    def __init__(self) -> None:
        self.ids: list[int] = []

    def schema(self, schema_id: int) -> str:
        self.ids.append(schema_id)
        return json.dumps(SCHEMAS[schema_id])

    def check(self) -> None:
        pass

    def close(self) -> None:
        pass


def log_of(spark: SparkSession, values: Sequence[bytes]) -> DataFrame:
    key = record(1, KEY, {"id": 1})
    return frame(spark, [Record("t", value, key, 0, at) for at, value in enumerate(values)])


def test_a_registry_is_asked_once_for_each_schema_of_keys_and_values(spark: SparkSession) -> None:
    registry = Asked()
    schemas = RegistrySchemas(registry)
    assert not schemas.readable
    values = [record(2, OLD, event({"id": 1, "n": 1}))] * 3
    assert schemas.learn(log_of(spark, values))
    assert registry.ids == [1, 2]
    assert not schemas.learn(log_of(spark, values))
    assert registry.ids == [1, 2]


@dataclass(frozen=True)
class Kept:
    """A source of one topic that notes how many records it was asked for."""

    records: DataFrame
    record_counts: list[int] = field(default_factory=list)

    def read(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        self.record_counts.append(sum(span.end - span.start for span in checked_ranges(ranges)))
        offset = F.col("offset")
        spans = [(offset >= span.start) & (offset < span.end) for span in ranges]
        return self.records.where(reduce(operator.or_, spans))

    def topics(self) -> tuple[str, ...]:
        return ("t",)

    def watermarks(self, _: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        raise AssertionError

    def close(self) -> None:
        pass


def test_the_middle_of_a_window_is_looked_at_only_for_schemas_that_its_edges_do_not_name(
    spark: SparkSession,
) -> None:
    old = record(2, OLD, event({"id": 1, "n": 1}))
    new = record(4, NEW, event({"id": 1, "n": 1, "channel": None}))
    source = Kept(log_of(spark, [old, old, new, old]))
    ranges = WindowRanges(None, (OffsetRange("t", 0, 0, 4),), frozenset())
    schemas = RegistrySchemas(Asked())
    tags = [value[:5] for value in (old, new)]
    assert learn_schemas(schemas, tags[:1], source, ranges)
    assert source.record_counts == [1, 1]
    assert learn_schemas(schemas, tags, source, ranges)
    assert source.record_counts == [1, 1, 1, 1, 4]
    assert not learn_schemas(schemas, tags, source, ranges)
    assert source.record_counts == [1, 1, 1, 1, 4]


def connect_schema(*columns: tuple[str, str]) -> dict[str, Any]:
    fields = [{"field": name, "type": kind, "optional": True} for name, kind in columns]
    row = {"type": "struct", "fields": fields, "optional": True, "field": "after"}
    return {"type": "struct", "fields": [row], "name": "shop.Envelope"}


def test_a_schema_that_records_carry_is_read_once_whatever_their_number(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    field_lists: list[str] = []

    def counted(fields: list[Any], form: Form) -> tuple[SourceColumn, ...]:
        field_lists.append(json.dumps(fields))
        return from_connect(fields, form)

    monkeypatch.setattr("lakeingest.decode.json.format.from_connect", counted)
    plain = postgresql_event()
    narrow = {"schema": connect_schema(("id", "int32")), "payload": plain}
    wide = {"schema": connect_schema(("id", "int64"), ("n", "int32")), "payload": plain}
    values = [narrow, plain, narrow, wide, wide]
    log = frame(spark, [Record("t", value, None, 0, at) for at, value in enumerate(values)])
    schemas = CarriedSchemas()
    assert not schemas.needed
    assert schemas.learn(log)
    assert not schemas.learn(log)
    # Once under each policy for numbers that are too large.
    assert (len(field_lists), len(set(field_lists))) == (4, 2)
    tags = [bytes(row["tag"]) for row in carried_schemas(log).collect()]
    assert not schemas.lacks(tags)
    shown = schemas.format.table_shape(Samples((json.dumps(plain).encode(),), (), frozenset(tags)))
    assert {column.name: column.type.spark for column in shown.columns} == {
        "id": LongType(),
        "n": IntegerType(),
    }


def test_a_schema_that_a_windows_edge_shows_late_is_as_old_as_its_first_record(
    spark: SparkSession,
) -> None:
    schemas = CarriedSchemas()
    of = [{"schema": connect_schema(("n", kind)), "payload": {}} for kind in ("int32", "int64")]
    records = [Record("t", of[number], None, 0, at) for at, number in enumerate((0, 1, 0))]
    log = frame(spark, records).withColumn("timestamp", F.timestamp_seconds("offset"))
    assert schemas.learn(log.where("offset = 2"))
    assert schemas.learn(log)
    shown = schemas.format.schemas.values()
    assert {str(one.columns[0].type.spark): one.since for one in shown} == {
        str(IntegerType()): 0,
        str(LongType()): 1_000,
    }


def test_what_names_no_schema_is_not_asked_for(spark: SparkSession) -> None:
    registry = Asked()
    broken = [b"", b"\0\0", b'{"op":"c"}', b"\1\0\0\0\2x"]
    assert RegistrySchemas(registry).learn(log_of(spark, broken))
    assert registry.ids == [1]
