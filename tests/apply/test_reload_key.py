"""The source gave a table another primary key: the lake gets it with a load of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply.table.key import resolve_key
from lakeingest.apply.table.settings import TableSettings
from lakeingest.decode.wire import TableShape
from lakeingest.errors import ConfigError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.reader import open_lake
from tests.apply.published import table
from tests.forms import further
from tests.logs.shop import Shop, row
from tests.logs.written import WrittenLog

A = "public.a"


def commit(shop: Shop, id_: int, v: int, key: tuple[str, ...], op: str = "c") -> None:
    """Commit one row of a table whose primary key has these columns at that time."""
    shop.number += 1
    end, was = f"{shop.number}:{1000 * shop.number + 100}", {"id": id_, "v": v}
    sent = replace(row(A, shop.number, 1, id_, None if op == "d" else v), op=op)
    shop.log.begin(end)
    block = {"id": end, "total_order": 1, "data_collection_order": 1}
    value = replace(sent, before=was if op == "d" else None).value(block)
    shop.log.raw(A, {name: was[name] for name in key}, value)
    shop.log.end(end, {A: 1})


def rows_of(shop: Shop) -> list[tuple[int, int]]:
    """Return the rows of the newest publication."""
    rows = open_lake(shop.spark, str(shop.lake)).table(A).collect()
    return sorted((r["id"], r["v"]) for r in rows)


def test_records_with_keys_of_two_kinds_make_no_table_until_its_key_is_declared() -> None:
    """As the topic of a table has them whose key changed, and which is loaded anew from it."""
    names = MetadataColumns("_")
    keys = frozenset({frozenset({"id"}), frozenset({"id", "v"})})
    # What reads the records is asked for nothing.
    shown = TableShape((), ("id", "v"), ("id",), cast(Any, None), keys=keys)
    message = (
        r"some records have the key \(id, v\), others \(id\)\. Declare the key that its rows have"
    )
    with pytest.raises(ConfigError, match=message):
        resolve_key(TableSettings(A), (), shown, [], names)
    declared = resolve_key(TableSettings(A, key=("id", "v")), (), shown, [], names)
    assert (declared.columns, declared.in_value) == (("id", "v"), True)


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["delta", further("hudi")])
def test_a_table_whose_primary_key_changed_is_loaded_anew_by_its_new_key(
    spark: SparkSession, log: WrittenLog, lake: Path, format_: str
) -> None:
    shop = Shop(spark, log, lake, {"target_format": format_})
    commit(shop, 1, 10, ("id",))
    commit(shop, 2, 20, ("id",))
    shop.run()
    # By the lake's key the second row would be the first one, changed.
    commit(shop, 1, 11, ("id", "v"))
    commit(shop, 2, 20, ("id", "v"), "d")
    with pytest.raises(ConfigError, match=r"kept by key \(id\) .* now have the key \(id, v\)"):
        shop.run()
    assert table(spark, shop.lake, A) == {1: 10, 2: 20}
    lakeingest.reload(spark, shop.configured(), A)
    shop.settings["table.public.a.key"] = "id,v"
    shop.run()
    assert rows_of(shop) == [(1, 10), (1, 11)]
