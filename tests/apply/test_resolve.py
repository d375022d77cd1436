"""The columns and the key of a table: what is declared, what the records show, what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.types import (
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.table.resolve import table_spec
from lakeingest.apply.table.settings import TableBefore, TableSettings
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.defaults import Default
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.format import CarriedSchema, JsonFormat
from lakeingest.decode.types.composed import array, mapping
from lakeingest.decode.types.logical import JSON, PRIMITIVES, SEMANTIC
from lakeingest.decode.types.logical_type import LogicalType
from lakeingest.errors import ConfigError, DataError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.plan.evolution import DEFAULTS, Kind, Policies, Policy, SourceSchema
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec
from lakeingest.source.contract import TopicPartition

ORDERS = "public.orders"
SPEC = PipelineSpec("postgresql", Encodings())
DDL = StructType().add("id", LongType()).add("note", StringType())


def stats(after: Mapping[str, Any] | None, key: Mapping[str, Any] | None) -> BatchStats:
    return BatchStats(
        batch=1,
        where=TopicPartition("shop.public.orders", 0),
        collection=ORDERS,
        rows=1,
        first_offset=0,
        low="",
        high="",
        floor="",
        source_ms=0,
        masked=0,
        moved=0,
        unpaired=0,
        deletes=False,
        keyless=key is None,
        size=0,
        sample=None if after is None else json.dumps({"op": "c", "after": after}).encode(),
        sample_key=None if key is None else json.dumps(key).encode(),
    )


@pytest.mark.parametrize("order", [1, -1], ids=["widened", "narrowed"])
def test_a_primary_key_that_changes_within_a_batch_is_refused_or_read_from_the_row(
    order: int,
) -> None:
    """Read as one, a row's key would hold a NULL, or two keys be one."""
    row = {"id": 1, "n": 2, "note": "x"}
    first, last = ({"id": 1}, {"id": 1, "n": 2})[::order]
    one = replace(stats(row, last), first_key=json.dumps(first).encode())
    apart = (stats(row, first), replace(stats(row, last), where=TopicPartition("t", 1)))
    ddl = StructType().add("id", LongType()).add("n", LongType()).add("note", StringType())
    for batch_stats in ((one,), apart):
        with pytest.raises(ConfigError, match=r"key of table .* changed: .*Declare the key .* now"):
            resolution(*batch_stats, ddl=ddl)
        assert resolution(*batch_stats, ddl=ddl, key=("id", "n")).key_in_value
        by_part = resolution(*batch_stats, ddl=ddl, key=("id",))
        assert (by_part.key_in_value, by_part.key_is_part) == (False, True)


def resolution(
    *batch_stats: BatchStats,
    ddl: StructType | None = DDL,
    key: Sequence[str] = (),
    lake: StructType | None = None,
    warnings: list[str] | None = None,
    spec: PipelineSpec = SPEC,
    before: SourceSchema | None = None,
    partition: Sequence[str] = (),
    policies: Policies = DEFAULTS,
    keyless: Keyless | None = None,
    high: str = "",
) -> TableSpec:
    def infer(names: Sequence[str], _: bool) -> Mapping[str, str]:
        return dict.fromkeys(names, "int32")

    warn = (warnings if warnings is not None else []).append
    settings = TableSettings(ORDERS, ddl, tuple(key), policies, keyless)
    table_before = TableBefore(lake, before, tuple(partition), high=high)
    return table_spec(settings, table_before, batch_stats, spec, infer, warn)


def types(table: TableSpec) -> dict[str, object]:
    return {column.name: column.type.spark for column in table.columns}


def test_the_record_key_is_the_tables_key() -> None:
    table = resolution(stats({"id": 1, "note": "x"}, {"id": 1}))
    assert (table.key, table.key_in_value) == (("id",), False)
    assert types(table) == {"id": LongType(), "note": StringType()}


def test_a_declared_key_that_the_record_key_lacks_is_read_from_the_row() -> None:
    table = resolution(stats({"id": 1, "note": "x"}, {"id": 1}), key=("note",))
    assert (table.key, table.key_in_value) == (("note",), True)


def test_a_field_that_the_declaration_does_not_name_is_taken_in_with_a_warning() -> None:
    warnings: list[str] = []
    table = resolution(stats({"id": 1, "note": "x", "n": 5}, {"id": 1}), warnings=warnings)
    assert types(table)["n"] == IntegerType()
    assert ["n int" in text and ORDERS in text for text in warnings] == [True]


def test_a_column_of_the_lake_that_the_source_no_longer_sends_stays() -> None:
    lake = StructType().add("id", LongType()).add("old", StringType()).add("_position", "string")
    table = resolution(stats({"id": 1, "note": "x"}, {"id": 1}), lake=lake)
    assert table.names() == ("id", "note", "old")


def test_a_table_without_a_key_is_refused_with_the_setting_that_helps() -> None:
    with pytest.raises(ConfigError, match=r"no key.*lakeingest\.table\.public\.orders\.key"):
        resolution(stats({"id": 1, "note": "x"}, None))


def test_a_key_that_is_no_column_is_refused() -> None:
    with pytest.raises(ConfigError, match="Key column nr of table"):
        resolution(stats({"id": 1}, {"id": 1}), key=("nr",))


def test_a_column_with_a_name_of_ours_is_refused_with_the_setting_that_helps() -> None:
    with pytest.raises(ConfigError, match=r"_deleted.*lakeingest\.metadata\.prefix"):
        resolution(stats({"id": 1, "_deleted": 5}, {"id": 1}))


def test_a_column_with_a_name_of_rfc_39_is_refused_where_the_table_has_those() -> None:
    row = stats({"id": 1, "_event_lsn": 5}, {"id": 1})
    assert "_event_lsn" in resolution(row).names()
    spec = replace(SPEC, names=MetadataColumns(event=["_event_lsn"]))
    with pytest.raises(ConfigError, match=r"_event_lsn.*lakeingest\.metadata\.columns=own"):
        resolution(row, spec=spec)


def test_rfc_39s_columns_of_the_lake_are_none_of_the_source() -> None:
    lake = StructType().add("_event_lsn", LongType()).add("id", LongType())
    spec = replace(SPEC, names=MetadataColumns(event=["_event_lsn"]))
    table = resolution(stats({"id": 1, "note": "x"}, {"id": 1}), lake=lake, spec=spec)
    assert table.names() == ("id", "note")


@pytest.mark.parametrize("name", ["unit price", "a,b", "a=b"])
def test_a_column_name_that_delta_refuses_is_refused_before_anything_is_written(name: str) -> None:
    with pytest.raises(ConfigError, match="Rename it on the way"):
        resolution(stats({"id": 1, name: 5}, {"id": 1}))


def test_columns_that_differ_by_case_only_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="differ by case only: NOTE, note"):
        resolution(stats({"id": 1, "note": "a", "NOTE": "b"}, {"id": 1}), ddl=None)


def test_a_column_of_ours_in_another_case_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"_Deleted.*lakeingest\.metadata\.prefix"):
        resolution(stats({"id": 1, "_Deleted": 5}, {"id": 1}))


def test_columns_that_differ_by_case_only_are_refused_before_their_types_are_looked_for() -> None:
    looked_for: list[str] = []

    def infer(names: Sequence[str], _: bool) -> Mapping[str, str]:
        looked_for.extend(names)
        return dict.fromkeys(names, "int32")

    row = stats({"id": 1, "Id": 2}, {"id": 1})
    with pytest.raises(ConfigError, match="differ by case only: Id, id"):
        table_spec(TableSettings(ORDERS), TableBefore(), [row], SPEC, infer, looked_for.append)
    assert looked_for == []


def test_a_column_that_is_renamed_by_case_only_is_refused_where_the_lake_has_the_old_name() -> None:
    row = stats({"id": 1, "Note": "x"}, {"id": 1})
    with pytest.raises(ConfigError, match="differ by case only: Note, note"):
        resolution(row, ddl=None, lake=LAKE, before=KNOWN)
    kinds = {"id": "int64", "Note": "string"}
    columns = tuple(SourceColumn(name, PRIMITIVES[kind]) for name, kind in kinds.items())
    spec = replace(SPEC, format=JsonFormat({b"1": CarriedSchema(0, columns)}))
    described = replace(row, value_tags=frozenset({b"1"}))
    with pytest.raises(ConfigError, match="differ by case only: Note, note"):
        resolution(described, ddl=None, lake=LAKE, before=KNOWN, spec=spec)
    ignore = {**DEFAULTS, Kind.ADDED: Policy.IGNORE}
    table = resolution(row, ddl=None, lake=LAKE, before=KNOWN, policies=ignore)
    assert table.names() == ("id", "note")


@pytest.mark.parametrize("carried", [JSON.decimal(12, 4), PRIMITIVES["string"]])
def test_decimals_in_a_map_are_refused_where_the_records_write_them_otherwise(
    carried: LogicalType,
) -> None:
    columns = (SourceColumn("id", PRIMITIVES["int64"]), SourceColumn("n", mapping(carried)))
    spec = replace(SPEC, format=JsonFormat({b"1": CarriedSchema(0, columns)}))
    row = replace(stats({"id": 1, "n": {}}, {"id": 1}), value_tags=frozenset({b"1"}))
    declared = StructType().add("n", MapType(StringType(), DecimalType(10, 2)))
    with pytest.raises(ConfigError, match=r"'n' .* is declared map<string,decimal\(10,2\)>"):
        resolution(row, ddl=declared, spec=spec)


def test_an_array_that_hudi_streamer_stored_as_text_says_so() -> None:
    columns = tuple(SourceColumn(name, array(PRIMITIVES["int32"])) for name in DDL.names)
    spec = replace(SPEC, format=JsonFormat({b"1": CarriedSchema(0, columns)}))
    row = replace(stats({"id": [], "note": []}, {"id": 1}), value_tags=frozenset({b"1"}))
    of_streamer = TableSettings(ORDERS, StructType([DDL["note"]]), adopted=True)
    with pytest.raises(ConfigError, match=r"'note' of .* is an array .* Take .*\.adopt out"):
        table_spec(of_streamer, TableBefore(), [row], spec, lambda *_: {}, print)


def test_a_declared_type_that_one_version_does_not_fit_is_refused_with_the_type_of_each() -> None:
    kinds = (PRIMITIVES["string"], SEMANTIC["io.debezium.time.MicroTimestamp"])
    columns = [(SourceColumn("note", kind),) for kind in kinds]
    schemas = {b"1": CarriedSchema(1, columns[0]), b"2": CarriedSchema(2, columns[1])}
    row = replace(stats({"id": 1, "note": 1}, {"id": 1}), value_tags=frozenset(schemas))
    with pytest.raises(ConfigError, match="declared string, .* carry timestamp_ntz and string by"):
        resolution(row, spec=replace(SPEC, format=JsonFormat(schemas)))


OLD = (SourceColumn("a", JSON.decimal(10, 2)), SourceColumn("b", PRIMITIVES["string"]))


@pytest.mark.parametrize(
    ("new", "change"),
    [
        (OLD[:1], "its column 'b' was dropped"),
        ((*OLD, SourceColumn("z", PRIMITIVES["int32"], default="1")), "'z' came with a default"),
        ((SourceColumn("a", JSON.decimal(10, 4)), OLD[1]), "column 'a'"),
        (OLD[::-1], "its columns have another order"),
        ((*OLD, SourceColumn("z", PRIMITIVES["int32"])), ""),
        ((SourceColumn("a", JSON.decimal(12, 2)), OLD[1]), ""),
    ],
)
@pytest.mark.parametrize("in_one_batch", [False, True])
def test_a_row_that_is_all_of_its_values_keeps_its_columns(
    new: tuple[SourceColumn, ...], change: str, *, in_one_batch: bool
) -> None:
    """By another hash, its delete would not find it."""
    versions = {b"1": CarriedSchema(0, OLD), b"2": CarriedSchema(1, new)}
    spec = replace(SPEC, format=JsonFormat(versions))
    tags = frozenset(versions if in_one_batch else {b"2"})
    row = replace(stats({"a": "AQ==", "b": "x"}, None), value_tags=tags)
    lake = StructType().add("a", DecimalType(10, 2)).add("b", StringType())
    state: dict[str, Any] = {} if in_one_batch else {"lake": lake, "before": SourceSchema.of(OLD)}
    refused = pytest.raises(DataError, match=change) if change else nullcontext()
    with refused:
        resolution(row, ddl=None, spec=spec, keyless=Keyless.FULL_ROW, **state)


@pytest.mark.parametrize("keyless", [None, Keyless.FULL_ROW])
def test_what_the_source_has_now_is_shown_by_the_highest_new_row(keyless: Keyless | None) -> None:
    """Not by a schema's number, which may come again, nor by rows that were sent again."""
    versions = {b"1": CarriedSchema(0, OLD), b"2": CarriedSchema(1, OLD[:1])}
    spec = replace(SPEC, format=JsonFormat(versions))
    key = None if keyless else {"b": "x"}
    one, two = (
        replace(stats({"a": "AQ==", "b": "x"}, key), value_tags=frozenset({tag}), high=high)
        for tag, high in ((b"1", "8"), (b"2", "7"))
    )
    options: dict[str, Any] = {"before": SourceSchema.of(OLD), "spec": spec, "keyless": keyless}
    lake = StructType().add("a", DecimalType(10, 2)).add("b", StringType())
    table = resolution(one, two, ddl=None, lake=lake, high="7", **options)
    assert table.source == SourceSchema.of(OLD).to_json()
    assert resolution(two, ddl=None, lake=lake, high="7", **options).source == ""


def test_keys_whose_columns_come_in_two_orders_are_not_compared_by_their_octets() -> None:
    row, keys = {"a": 1, "b": 2}, ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    for first, bare in zip(keys, (True, False), strict=True):
        one = replace(stats(row, keys[0]), first_key=json.dumps(first).encode())
        assert resolution(one, ddl=None).reader.bare_keys is bare


def test_a_table_with_a_row_key_of_ours_needs_its_policy() -> None:
    with pytest.raises(ConfigError, match=r"public\.orders\.keyless"):
        resolution(stats({"id": 1}, None), key=("_row_key",))


LAKE = StructType().add("id", LongType()).add("note", StringType())
KNOWN = SourceSchema.of(resolution(stats({"id": 1, "note": "x"}, {"id": 1})).columns)


def test_a_change_that_is_to_stop_stops_with_the_setting_that_helps() -> None:
    stop = {**DEFAULTS, Kind.ADDED: Policy.STOP}
    row = stats({"id": 1, "note": "x", "n": 5}, {"id": 1})
    with pytest.raises(DataError, match=r"column 'n' was added as int.*schema\.added"):
        resolution(row, ddl=None, lake=LAKE, before=KNOWN, policies=stop)


def test_a_declared_column_needs_no_policy() -> None:
    stop = {**DEFAULTS, Kind.ADDED: Policy.STOP}
    row = stats({"id": 1, "note": "x", "n": 5}, {"id": 1})
    ddl = StructType([*DDL, StructField("n", LongType())])
    table = resolution(row, ddl=ddl, lake=LAKE, before=KNOWN, policies=stop)
    assert types(table)["n"] == LongType()


def test_a_column_that_is_ignored_is_no_column_and_its_type_is_not_looked_for() -> None:
    ignore = {**DEFAULTS, Kind.ADDED: Policy.IGNORE}
    row = stats({"id": 1, "note": "x", "n": 5}, {"id": 1})
    table = resolution(row, ddl=None, lake=LAKE, before=KNOWN, policies=ignore)
    assert table.names() == ("id", "note")


def test_a_column_that_went_long_ago_is_left_out_and_costs_no_look_into_records() -> None:
    row = stats({"id": 1}, {"id": 1})
    gone = resolution(row, ddl=None, lake=LAKE, before=SourceSchema(KNOWN.columns[:1]))
    assert (gone.names(), gone.partial) == (("id",), False)
    going = resolution(row, ddl=None, lake=LAKE, before=KNOWN)
    assert (going.names(), going.partial) == (("id", "note"), True)
    assert going.fillable(Encodings()) == ("note",)


def test_a_partition_column_is_never_left_out_and_an_update_without_it_has_no_value_of_it() -> None:
    row = stats({"id": 1}, {"id": 1})
    before = SourceSchema(KNOWN.columns[:1])
    table = resolution(row, ddl=None, lake=LAKE, before=before, partition=("note",))
    assert table.names() == ("id", "note")
    assert (table.partial, table.fillable(Encodings())) == (True, ("note",))


def test_mysql_fills_a_column_that_is_added_not_null_and_each_database_says_so() -> None:
    columns = (
        SourceColumn("id", PRIMITIVES["int64"], nullable=False),
        SourceColumn("note", PRIMITIVES["string"]),
        SourceColumn("n", PRIMITIVES["int32"], nullable=False),
        SourceColumn("at", SEMANTIC["io.debezium.time.Date"], nullable=False),
    )
    format_ = JsonFormat({b"1": CarriedSchema(0, columns)})
    row = stats({"id": 1, "note": "x", "n": 5, "at": 1}, {"id": 1})
    sent = replace(row, value_tags=frozenset({b"1"}))
    by_connector = {
        "mysql": ({"n": Default("0", b"1")}, ["'n'", "'at'"]),
        "postgresql": ({}, ["'n', 'at'"]),
    }
    for connector, (fills, names) in by_connector.items():
        notices: list[str] = []
        spec = replace(SPEC, connector=connector, format=format_)
        table = resolution(sent, ddl=None, lake=LAKE, before=KNOWN, spec=spec, warnings=notices)
        assert table.fills == fills
        assert len(notices) == len(names)
        for text, name in zip(notices, names, strict=True):
            assert f"{name} was added NOT NULL" in text
