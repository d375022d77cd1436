"""What a table's settings make of the changes of its schema, and of which a user is told."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from pyspark.sql.types import DataType, IntegerType, LongType, StringType

from lakeingest.apply.table.schema_policy import SchemaPolicy
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.defaults import Default
from lakeingest.decode.types.logical import PRIMITIVES
from lakeingest.errors import DataError
from lakeingest.plan.evolution import DEFAULTS, Kind, Policy, SourceSchema
from lakeingest.plan.presence import Presence

ID = SourceColumn("id", PRIMITIVES["int64"])
N = SourceColumn("n", PRIMITIVES["int32"])
WEB = SourceColumn("web", PRIMITIVES["string"], True)
LAKE: dict[str, DataType] = {"id": LongType(), "n": IntegerType()}
NOTHING = Presence()
IGNORES = {**DEFAULTS, Kind.ADDED: Policy.IGNORE}


def policy(
    lake: dict[str, DataType] | None = LAKE,
    before: Sequence[SourceColumn] = (ID, N),
    declared: Collection[str] = (),
    policies: dict[Kind, Policy] | None = None,
) -> SchemaPolicy:
    source = SourceSchema.of(before) if before else None
    return SchemaPolicy("public.a", lake, source, policies or dict(DEFAULTS), declared)


def warnings(
    of: SchemaPolicy,
    now: Sequence[SourceColumn] = (ID, N, WEB),
    present: Presence = NOTHING,
    *,
    described: bool = True,
) -> list[str]:
    texts: list[str] = []
    of.judge(now, present, texts.append, described=described)
    return texts


def test_a_new_column_whose_schema_tells_its_default_needs_no_word() -> None:
    assert warnings(policy()) == []
    assert [column.name for column in policy().columns((ID, N, WEB), ())] == ["id", "n", "web"]


def test_without_schemas_a_default_cannot_be_known() -> None:
    (text,) = warnings(policy(), described=False)
    assert text.startswith("Table 'public.a': column 'web' is new.")
    assert "NULL in the lake" in text


def test_the_default_of_an_expression_is_not_taken_for_a_value() -> None:
    (text,) = warnings(policy(), present=Presence(stand_ins=("web",)))
    assert "DEFAULT that is an expression" in text


def test_a_column_that_may_be_renamed_is_told_also_where_the_table_is_new() -> None:
    for lake in (LAKE, None):
        (text,) = warnings(policy(lake), present=Presence(renamed=("web",)))
        assert "may have been renamed" in text


def test_a_column_that_is_ignored_is_left_out_and_gets_no_default() -> None:
    ignoring = policy(policies=IGNORES)
    assert ignoring.taken(["id", "web"]) == ["id"]
    assert [column.name for column in ignoring.columns((ID, N, WEB), ())] == ["id", "n"]
    assert ignoring.fills(Presence(fills={"web": Default('"x"', b"2")})) == {}
    (text,) = warnings(ignoring)
    assert "is not taken in" in text


def test_a_column_that_was_ignored_is_taken_in_later_without_a_guess() -> None:
    (text,) = warnings(policy(before=(ID, N, WEB)), now=(ID, N, WEB))
    assert "taken in now, but was there before" in text


def test_a_declared_column_is_under_no_policy() -> None:
    declared = policy(declared=("web",), policies=IGNORES)
    assert declared.taken(["web"]) == ["web"]
    (text,) = warnings(declared, described=False)
    assert "is new" in text


def test_a_column_that_goes_is_told_and_one_that_comes_back_is_too() -> None:
    (gone,) = warnings(policy(), now=(ID,))
    assert "the source no longer sends column 'n'" in gone
    # Nor is it told again with each later batch.
    assert warnings(policy(before=(ID,)), now=(ID,)) == []
    (back,) = warnings(policy(before=(ID,)), now=(ID, N))
    assert "column 'n' is sent again" in back


def test_another_type_stops_and_names_table_column_and_ways_on() -> None:
    text = SourceColumn("n", PRIMITIVES["string"])
    said = (
        r"'public\.a': column 'n' was retyped, from int .*schema\.retyped.*to ignore.* declare the "
        r"new type with lakeingest\.table\.public\.a\.schema and load the table anew"
    )
    with pytest.raises(DataError, match=said):
        warnings(policy(), now=(ID, text))
    ignoring = policy(policies={**DEFAULTS, Kind.RETYPED: Policy.IGNORE})
    assert warnings(ignoring, now=(ID, text)) == []
    (_, column) = ignoring.columns((ID, text), ())
    assert column.type.spark == IntegerType()
    declared = policy(lake={**LAKE, "n": StringType()}, declared=("n",))
    assert warnings(declared, now=(ID, text)) == []
