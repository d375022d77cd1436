"""What a source does to its schema, found by comparison."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql.types import DataType, IntegerType, LongType, StringType

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.types.logical import PRIMITIVES
from lakeingest.plan.evolution import DEFAULTS, Change, Kind, Policy, SourceSchema, changes

LAKE: dict[str, DataType] = {"id": LongType(), "note": StringType(), "n": IntegerType()}


def column(
    name: str, kind: str = "string", nullable: bool | None = True, default: str | None = None
) -> SourceColumn:
    return SourceColumn(name, PRIMITIVES[kind], nullable, default)


WAS = (column("id", "int64", nullable=False), column("note"), column("n", "int32"))
BEFORE = SourceSchema.of(WAS)


def changes_of(*now: SourceColumn, before: SourceSchema | None = BEFORE) -> list[tuple[str, str]]:
    return [(change.kind.value, change.column) for change in changes(LAKE, before, now)]


def test_the_same_table_has_no_changes() -> None:
    assert changes_of(*WAS) == []
    assert changes_of(*WAS, before=None) == []


@pytest.mark.parametrize(
    ("now", "kinds"),
    [
        ((*WAS, column("more")), [("added", "more")]),
        (WAS[:2], [("dropped", "n")]),
        ((*WAS[:2], column("m", "int32")), [("added", "m"), ("dropped", "n")]),
        ((*WAS[:2], column("n", "int64")), [("widened", "n")]),
        ((*WAS[:2], column("n", "int16")), [("narrowed", "n")]),
        ((*WAS[:2], column("n", "string")), [("retyped", "n")]),
        ((WAS[1], WAS[0], WAS[2]), [("reordered", "")]),
        ((WAS[0], column("note", nullable=False), WAS[2]), [("nullability", "note")]),
        ((WAS[0], column("note", default='"x"'), WAS[2]), [("default", "note")]),
    ],
    ids=lambda value: value[0][0] if isinstance(value, list) else "",
)
def test_each_kind_of_change_is_told(
    now: Sequence[SourceColumn], kinds: list[tuple[str, str]]
) -> None:
    assert changes_of(*now) == kinds


def test_a_change_is_told_once_and_not_of_a_column_that_went_long_ago() -> None:
    assert changes_of(*WAS[:2], before=SourceSchema.of(WAS[:2])) == []
    narrow = (*WAS[:2], column("n", "int16"))
    assert changes_of(*narrow, before=SourceSchema.of(narrow)) == []


def test_a_column_that_comes_again_is_an_added_one() -> None:
    assert changes_of(*WAS, before=SourceSchema.of(WAS[:2])) == [("added", "n")]


def test_where_nothing_tells_nullability_and_default_these_do_not_change() -> None:
    untold = [SourceColumn(c.name, c.type) for c in WAS]
    assert changes_of(*untold) == []
    assert changes_of(*WAS, before=SourceSchema.of(untold)) == []


def test_a_schema_is_written_down_and_read_again() -> None:
    schema = SourceSchema.of((*WAS, column("quo`ted", default='"it\'s"')))
    assert SourceSchema.from_json(schema.to_json()) == schema
    assert SourceSchema.from_json("") is None
    assert schema.ddl() == (
        '`id` BIGINT NOT NULL, `note` STRING, `n` INT, `quo``ted` STRING DEFAULT "it\'s"'
    )


def test_what_loses_nothing_evolves_and_the_rest_stops() -> None:
    assert [kind for kind, policy in DEFAULTS.items() if policy is Policy.STOP] == [Kind.RETYPED]
    assert set(DEFAULTS) == set(Kind)


def test_a_change_names_its_column_and_both_types() -> None:
    change = Change(Kind.RETYPED, "n", "int", "string")
    assert str(change) == "column 'n' was retyped, from int in the lake to string at the source"
