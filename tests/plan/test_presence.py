"""Which columns the records of a batch have, as far as their schemas or newest rows tell."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.defaults import Default
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.row import Absences, AddedColumn
from lakeingest.decode.types.logical import PRIMITIVES, SEMANTIC
from lakeingest.decode.wire import TableShape
from lakeingest.plan.evolution import SourceSchema
from lakeingest.plan.presence import Presence, Zero, presence

ID, A, B = (SourceColumn(name, PRIMITIVES["string"]) for name in ("id", "a", "b"))
WEB = SourceColumn("web", PRIMITIVES["string"], True, '"web"')
ALL = (ID, A, B, WEB)
V1, V2, V3 = b"1", b"2", b"3"
NOTHING = Presence()
DEFAULT = Default('"web"', V2)


def described(**versions: Sequence[SourceColumn]) -> TableShape:
    schemas = {name[1:].encode(): tuple(columns) for name, columns in versions.items()}
    return TableShape(ALL, (), ("id",), JsonRows(), versions=schemas)


def bare(*rows: Sequence[str]) -> TableShape:
    fields = tuple(dict.fromkeys(name for row in rows for name in row))
    everywhere = frozenset.intersection(*map(frozenset, rows)) if rows else frozenset[str]()
    return TableShape((), fields, ("id",), JsonRows(), everywhere=everywhere, rows=bool(rows))


def decide(
    shown: TableShape,
    lake: Sequence[str] | None,
    before: Sequence[SourceColumn] | None = None,
    columns: Sequence[SourceColumn] = ALL,
    zero: Zero | None = None,
    partition: Sequence[str] = (),
) -> Presence:
    schema = SourceSchema.of(before) if before is not None else None
    others = [column for column in columns if column is not ID]
    return presence(shown, others, lake, schema, partition, zero)


def test_columns_that_all_records_have_cost_nothing() -> None:
    assert decide(described(v1=(ID, A, B)), ["id", "a", "b"], (ID, A, B), (ID, A, B)) == NOTHING
    assert decide(bare(["id", "a"]), ["id", "a"], (ID, A), (ID, A)) == NOTHING


def test_a_column_that_no_record_has_is_left_out() -> None:
    shown = described(v1=(ID, A))
    assert decide(shown, ["id", "a", "b"], (ID, A, B), (ID, A, B)) == Presence(frozenset({"b"}))
    gone = decide(bare(["id", "a"]), ["id", "a", "b"], (ID, A), (ID, A, B))
    assert gone == Presence(frozenset({"b"}))


def test_a_column_that_some_schemas_lack_is_dropped_in_their_records() -> None:
    outcome = decide(described(v1=(ID, A, B), v2=(ID, A)), ["id", "a", "b"], (ID, A, B), (ID, A, B))
    assert outcome == Presence(absences=Absences({"b": frozenset({V2})}))


def test_without_schemas_a_column_that_just_went_is_looked_for_in_each_record() -> None:
    lake = ["id", "a", "b"]
    for before in ((ID, A, B), None):
        outcome = decide(bare(["id", "a"]), lake, before, (ID, A, B))
        assert outcome == Presence(absences=Absences({"b": ()}))
    # One partition's newest record is older than the change.
    outcome = decide(bare(["id", "a"], ["id", "a", "b"]), lake, (ID, A, B), (ID, A, B))
    assert outcome == Presence(absences=Absences({"b": ()}))


@pytest.mark.parametrize("before", [(ID, A, B), (ID, A), None])
def test_a_partition_column_stays_as_it_is_in_each_record_that_lacks_it_however_long(
    before: Sequence[SourceColumn] | None,
) -> None:
    web = SourceColumn("b", PRIMITIVES["string"], True, '"web"')
    for shown, tags in (
        (described(v1=(ID, A)), frozenset({V1})),
        (described(v1=(ID, A), v2=(ID, A, web)), frozenset({V1})),
        (bare(["id", "a"]), ()),
    ):
        outcome = decide(shown, ["id", "a", "b"], before, (ID, A, B), partition=["b"])
        assert outcome == Presence(absences=Absences({"b": tags}))


def test_deletes_alone_tell_nothing_of_columns() -> None:
    assert decide(bare(), ["id", "a", "b"], (ID, A, B)) == NOTHING


def test_a_new_column_has_its_first_default_in_old_rows_and_in_older_records() -> None:
    other = SourceColumn("web", PRIMITIVES["string"], True, '"other"')
    shown = described(v1=(ID, A), v2=(ID, A, WEB), v3=(ID, A, other))
    outcome = decide(shown, ["id", "a"], (ID, A), (ID, A, WEB))
    early = {"web": AddedColumn(frozenset({V1}), DEFAULT)}
    assert outcome == Presence(absences=Absences(added=early), fills={"web": DEFAULT})
    # There is no table yet, so no old row; but there may be older records.
    assert decide(shown, None, None, (ID, A, WEB)) == Presence(absences=Absences(added=early))
    assert decide(described(v2=(ID, A, WEB)), None, None, (ID, A, WEB)) == NOTHING


def test_a_column_that_comes_and_goes_in_one_batch_is_dropped_in_the_later_records() -> None:
    shown = described(v1=(ID, A), v2=(ID, A, WEB), v3=(ID, A))
    outcome = decide(shown, ["id", "a"], (ID, A), (ID, A, WEB))
    assert outcome.absences.dropped == {"web": frozenset({V3})}
    assert outcome.absences.added == {"web": AddedColumn(frozenset({V1}), DEFAULT)}


def test_a_column_that_was_declared_before_it_came_gets_its_default_too() -> None:
    outcome = decide(described(v2=(ID, WEB)), ["id", "web"], (ID,), (ID, WEB))
    assert outcome == Presence(fills={"web": DEFAULT})


def test_a_column_that_was_there_and_not_taken_in_gets_no_default() -> None:
    assert decide(described(v2=(ID, WEB)), ["id"], (ID, WEB), (ID, WEB)) == NOTHING


def test_the_default_of_an_expression_is_none() -> None:
    made = SourceColumn("made", SEMANTIC["io.debezium.time.MicroTimestamp"], True, "0")
    outcome = decide(described(v2=(ID, made)), ["id"], (ID,), (ID, made))
    assert outcome == Presence(stand_ins=("made",))


COUNT = SourceColumn("count", PRIMITIVES["int32"], nullable=False)
DAY = SourceColumn("day", SEMANTIC["io.debezium.time.Date"], nullable=False)


def test_a_column_that_mysql_adds_not_null_has_its_zero_in_old_rows() -> None:
    def zero(column: SourceColumn) -> str | None:
        return "0" if column is COUNT else None

    now = (ID, A, COUNT, DAY)
    outcome = decide(described(v1=(ID, A), v2=now), ["id", "a"], (ID, A), now, zero)
    nought = Default("0", V2)
    early = {"count": AddedColumn(frozenset({V1}), nought)}
    assert outcome == Presence(
        absences=Absences(added=early), fills={"count": nought}, zeros=("count",), unfilled=("day",)
    )
    # One that may be NULL has none.
    loose = SourceColumn("loose", PRIMITIVES["int32"], nullable=True)
    assert decide(described(v2=(ID, loose)), ["id"], (ID,), (ID, loose), zero) == NOTHING


def test_a_not_null_column_has_an_unknown_value_in_old_rows_where_its_schema_names_none() -> None:
    """Other databases refuse such a column on a table with rows, unless it has a DEFAULT."""
    now = (ID, A, COUNT, DAY)
    outcome = decide(described(v2=now), ["id", "a"], (ID, A), now)
    assert outcome == Presence(unfilled=("count", "day"))


def test_a_column_that_comes_when_another_goes_may_be_renamed_and_gets_no_value() -> None:
    def zero(_: SourceColumn) -> str | None:
        return "0"

    for new in (COUNT, WEB):
        now = (ID, new)
        for shown in (described(v1=(ID, A), v2=now), described(v2=now)):
            for before in ((ID, A), None):
                outcome = decide(shown, ["id", "a"], before, (ID, A, new), zero)
                assert (outcome.renamed, outcome.fills, outcome.zeros) == ((new.name,), {}, ())
                assert outcome.absences.added == {}
    # In another step of the batch it is no matter.
    shown = described(v1=(ID, A), v2=(ID, A, WEB), v3=(ID, WEB))
    assert decide(shown, ["id", "a"], (ID, A), ALL).fills == {"web": DEFAULT}
