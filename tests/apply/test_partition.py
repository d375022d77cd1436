"""Which columns a table is partitioned by, and what is refused."""

from __future__ import annotations

import pytest

from lakeingest.apply.table.partition import resolve_partition
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.types.logical import PRIMITIVES
from lakeingest.errors import ConfigError
from lakeingest.plan.spec import TableSpec
from lakeingest.sink.contract import TableState
from tests.notes import commit_note

COLUMNS = tuple(SourceColumn(name, PRIMITIVES["int32"]) for name in ("id", "n", "m"))
ORDERS = TableSpec("public.orders", COLUMNS, ("id",))


def lake_state(*partition: str) -> TableState:
    return TableState(1, commit_note("public.orders", key=("id",), partition=partition))


def test_a_new_table_is_partitioned_as_declared() -> None:
    assert resolve_partition(ORDERS, (), None) == ()
    assert resolve_partition(ORDERS, ("n", "m"), None) == ("n", "m")


def test_a_table_keeps_its_partitions_where_nothing_is_declared_any_more() -> None:
    assert resolve_partition(ORDERS, (), lake_state("n")) == ("n",)
    assert resolve_partition(ORDERS, ("n",), lake_state("n")) == ("n",)


@pytest.mark.parametrize("was", [(), ("m",), ("m", "n")])
def test_other_partitions_than_the_tables_are_refused(was: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=r"by \((m|m, n|)\) in the lake.*says \(n\).*load the"):
        resolve_partition(ORDERS, ("n",), lake_state(*was))


def test_a_partition_that_is_no_column_is_refused_with_the_columns_that_are() -> None:
    with pytest.raises(ConfigError, match=r"x of table 'public.orders'.*\(id, m, n\)"):
        resolve_partition(ORDERS, ("n", "x"), None)
