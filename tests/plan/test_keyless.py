"""Rows of tables without a key: what is one row and what are two, however often they come."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructType, TimestampNTZType

from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.decode.columns import declared_columns
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.errors import DataError
from lakeingest.event_columns import OPERATION, POSTGRESQL
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.payload.net_zero import NET_ZERO, resolve_net_zero
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec
from lakeingest.plan.table import decoded_rows, payload_of_partial_rows
from lakeingest.position import after
from tests.envelope.records import Record, frame, postgresql_event

SPEC = PipelineSpec("postgresql", Encodings())
SCHEMA = StructType().add("n", LongType()).add("at", TimestampNTZType()).add("t", StringType())
GONE = (None, None, True)
ROW: dict[str, Any] = {"n": 1, "at": 1_700_000_000_000_001, "t": None}


def event(op: str, row: Any, before: Any = None, *, lsn: int = 110, order: int = 1) -> Any:
    whole = postgresql_event(op=op, lsn=lsn, before=100)
    whole["source"]["snapshot"] = "incremental" if op == "r" else "false"
    whole["transaction"]["total_order"] = order
    return {**whole, "before": before, "after": row}


def in_transaction(one: Any, xid: int) -> Any:
    return {**one, "transaction": {**one["transaction"], "id": f"{xid}:1"}}


def numbered(number: int) -> dict[str, Any]:
    return {**ROW, "n": number}


def keyless(policy: Keyless) -> TableSpec:
    columns = declared_columns(SCHEMA, SPEC.encodings)
    return TableSpec("public.a", columns, (SPEC.names.row_key,), True, keyless=policy)


def decoded(
    spark: SparkSession, sent: Sequence[tuple[str, Any]], policy: Keyless = Keyless.FULL_ROW
) -> DataFrame:
    """Decode events, each with the life of the connector that sent it."""
    records = [
        Record("t.public.a", one, None, 0, number, {"__debezium.context.runId": life})
        for number, (life, one) in enumerate(sent)
    ]
    return decoded_rows(window(spark, records), keyless(policy), SPEC)


def window(spark: SparkSession, records: Iterable[Record], *, event: bool = False) -> DataFrame:
    envelopes = decode_envelope(frame(spark, records), event=event)
    return local_checkpoint(changes(envelopes, ChangeSpec("postgresql", event=event)))


def once(events: Sequence[Any]) -> list[tuple[str, Any]]:
    return [("one", one) for one in events]


def payload(
    rows: DataFrame, policy: Keyless, lake: DataFrame | None = None, tombstones_to: str = ""
) -> list[Row]:
    table = keyless(policy)
    rows = resolve_net_zero(rows, lake, table.key, tombstones_to, SPEC.names)
    names = SPEC.names
    return (
        payload_of_partial_rows(rows, table, SPEC)
        .select("n", "t", names.deleted, names.position)
        .collect()
    )


@dataclass(frozen=True)
class Case:
    """Events that come once in each life of the connector, and what they leave.

    That is the values of each row, and whether it is deleted.
    """

    events: Sequence[Any]
    expected: Sequence[tuple[Any, ...]]
    lives: Sequence[str] = ("one",)
    policy: Keyless = Keyless.FULL_ROW


SPAN = 1_000
"""By so much the places, transactions and numbers of two cases differ."""


def moved(one: Any, by: int) -> Any:
    """Return an event at another place, of another transaction and with another number."""
    xid, _, lsn = one["transaction"]["id"].partition(":")
    source = one["source"]
    sequence = [str(int(part) + by) for part in json.loads(source["sequence"])]
    rows = {side: one[side] for side in ("before", "after") if one[side]}
    return {
        **one,
        **{side: {**row, "n": row["n"] + by} for side, row in rows.items()},
        "source": {**source, "lsn": source["lsn"] + by, "sequence": json.dumps(sequence)},
        "transaction": {**one["transaction"], "id": f"{int(xid) + by}:{lsn}"},
    }


def history(one: Any, two: Any) -> list[Any]:
    return [
        event("c", one, lsn=110),
        event("u", two, one, lsn=120),
        event("u", one, two, lsn=130),
        event("d", None, one, lsn=140),
    ]


COPIED = [event("c", ROW, order=number) for number in (1, 2, 3)]
LATER = {**ROW, "at": ROW["at"] + 1}
INSERTED = event("c", numbered(2), lsn=105)
PASSED_ON = [
    # UPDATE t SET n = n + 1 over 1 and 2: there is a 2 before and after it.
    event("u", numbered(2), numbered(1), lsn=110, order=1),
    event("u", numbered(3), numbered(2), lsn=120, order=2),
]
OWN, OTHERS = [INSERTED, *PASSED_ON], [in_transaction(INSERTED, 6), *PASSED_ON]
STAY = [(2, None, False), (3, None, False), GONE]
MORE, AS_OFTEN, LAST = ROW, numbered(5), numbered(7)
AGAIN = ("one", "two", "one")

CASES: Mapping[str, Case] = {
    "equal rows of one copy are as many rows": Case(
        COPIED, [(1, None, False)] * 3, policy=Keyless.APPEND
    ),
    "equal rows are as many rows however often they are repeated": Case(
        COPIED, [(1, None, False)] * 3, AGAIN, policy=Keyless.APPEND
    ),
    **{
        f"rows that differ by a microsecond are two rows ({policy.value})": Case(
            [event("c", ROW), event("c", LATER)], [(1, None, False)] * 2, policy=policy
        )
        for policy in Keyless
    },
    "an update takes the row away that was, brings the one that is, and may change nothing": Case(
        [
            event("u", numbered(2), ROW, order=1),
            event("u", numbered(5), numbered(5), lsn=120, order=2),
        ],
        [(2, None, False), (5, None, False), GONE],
    ),
    "what is inserted, changed back and forth and deleted by one is nobody's row and is gone": Case(
        history(ROW, numbered(2)), [GONE, GONE]
    ),
    "what four transactions do so is gone, too": Case(
        [in_transaction(one, xid) for xid, one in enumerate(history(ROW, numbered(2)))],
        [GONE, GONE],
    ),
    "rows that a statement passes on to one another stay": Case(OTHERS, STAY),
    "and however often it is repeated": Case(OTHERS, STAY, AGAIN),
    "rows of its own transaction stay, too": Case(OWN, STAY),
    "and however often that is repeated": Case(OWN, STAY, AGAIN),
    "a row that its transaction makes once more or last is there": Case(
        [
            event("c", MORE, lsn=110, order=1),
            event("c", MORE, lsn=110, order=2),
            event("d", None, MORE, lsn=120, order=3),
            event("c", AS_OFTEN, lsn=110, order=4),
            event("d", None, AS_OFTEN, lsn=120, order=5),
            event("d", None, LAST, lsn=110, order=6),
            event("d", None, LAST, lsn=120, order=7),
            event("c", LAST, lsn=130, order=8),
        ],
        [(1, None, False), (7, None, False), GONE],
    ),
}


@pytest.fixture(scope="module")
def left(spark: SparkSession) -> Mapping[str, list[tuple[Any, ...]]]:
    """What each case leaves; all cases of a policy are folded at once."""
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in CASES}
    for policy in Keyless:
        sent = [
            (life, moved(one, SPAN * at))
            for at, case in enumerate(CASES.values())
            if case.policy is policy
            for life in case.lives
            for one in case.events
        ]
        for n, t, deleted, position in payload(decoded(spark, sent, policy), policy):
            # Also the place of a deleted row, which has no values, says of which case it is.
            (at,) = (
                at
                for at in range(len(CASES))
                if after(0, SPAN * at) < position < after(0, SPAN * (at + 1))
            )
            rows[[*CASES][at]].append((None if n is None else n - SPAN * at, t, deleted))
    return rows


@pytest.mark.parametrize("name", CASES)
def test_a_table_without_a_key_has_the_rows_that_its_changes_leave(
    left: Mapping[str, list[tuple[Any, ...]]], name: str
) -> None:
    assert sorted(left[name], key=str) == CASES[name].expected


@pytest.mark.parametrize("hard", [False, True])
def test_a_row_that_its_transaction_makes_and_takes_away_is_as_the_lake_has_it(
    spark: SparkSession, hard: bool
) -> None:
    """Also where an older change of it comes again, without the one that the lake has."""
    live, dead, again = ROW, numbered(5), numbered(7)
    stored = [event("c", row, lsn=105) for row in (live, dead, again)]
    rows = decoded(spark, once(stored)).select("key_row.*", "row.n", "position").collect()
    names = SPEC.names
    gone = (dead["n"], again["n"])
    lake = spark.createDataFrame(
        [(row[0], row[1] in gone, row[2]) for row in rows],
        f"{names.row_key} string, {names.deleted} boolean, {names.position} string",
    )
    changed = [
        in_transaction(event("d", None, live, lsn=102), 4),
        in_transaction(event("c", dead, lsn=102), 4),
        in_transaction(event("c", again, lsn=107), 6),
        *(event("c", row, lsn=110, order=1) for row in (live, dead, again)),
        *(event("d", None, row, lsn=120, order=2) for row in (live, dead, again)),
    ]
    lake, tombstones_to = (lake.where(f"NOT {names.deleted}"), rows[0][2]) if hard else (lake, "")
    shown = payload(decoded(spark, once(changed)), Keyless.FULL_ROW, lake, tombstones_to)
    left = sorted((row[:3] for row in shown), key=str)
    assert left == [(1, None, False), (7, None, False), GONE]


def test_what_a_transaction_left_as_it_was_has_its_last_place(spark: SparkSession) -> None:
    # So that a part of it that comes again finds the row there.
    events = [event("c", ROW, lsn=110, order=1), event("d", None, ROW, lsn=120, order=2)]
    # In transactions of their own they are a create and a delete.
    apart = [in_transaction(one, xid) for xid, one in enumerate(events)]
    rows = decoded(spark, once([*events, *apart])).select("op", "position").collect()
    assert sorted(row["op"] for row in rows) == ["c", "d", NET_ZERO]
    places = {row["op"]: row["position"] for row in rows}
    assert places["c"] < places["d"] == places[NET_ZERO]


def test_the_operation_of_a_row_without_a_key_says_whether_the_row_is_there(
    spark: SparkSession,
) -> None:
    events = [
        in_transaction(event("c", AS_OFTEN, lsn=105), 6),
        *(event("c", MORE, lsn=110, order=order) for order in (1, 2)),
        event("d", None, MORE, lsn=120, order=3),
        event("u", numbered(3), numbered(2), lsn=130, order=4),
        event("c", AS_OFTEN, lsn=140, order=5),
        event("d", None, AS_OFTEN, lsn=150, order=6),
    ]
    records = [Record("t.public.a", one, None, 0, number) for number, one in enumerate(events)]
    spec = replace(SPEC, names=MetadataColumns(event=POSTGRESQL.fieldNames()))
    table = keyless(Keyless.FULL_ROW)
    rows = decoded_rows(window(spark, records, event=True), table, spec)
    rows = resolve_net_zero(rows, None, table.key, "", spec.names)
    payloads = payload_of_partial_rows(rows, table, spec).select("n", OPERATION).collect()
    assert sorted(map(tuple, payloads), key=str) == [(1, "c"), (3, "u"), (5, "c"), (None, "d")]


OLD, NEW = {**ROW, "t": "old"}, {**ROW, "t": "new"}
LEFT_OUT = {**ROW, "t": SPEC.encodings.placeholder}
A_PART = "Table 'public.a', column 't': a change leaves a value out.*Give the table a primary"
NO_ROW = (
    "Table 'public.a' has no key, and an update or a delete of it does not say what the row was"
)
NO_INSERT = (
    "Table 'public.a' has no key and is only appended to, .* updated, deleted or sent again by"
)
REFUSED = {
    # Oracle's LOBs, SQL Server's (max) types.
    "a placeholder is no part of the row before": (Keyless.FULL_ROW, "u", NEW, LEFT_OUT, A_PART),
    "a placeholder is no part of the row after": (Keyless.FULL_ROW, "u", LEFT_OUT, OLD, A_PART),
    "an update says what the row was": (Keyless.FULL_ROW, "u", ROW, None, NO_ROW),
    "a delete says what the row was": (Keyless.FULL_ROW, "d", None, None, NO_ROW),
    "no update comes where rows are appended": (Keyless.APPEND, "u", ROW, ROW, NO_INSERT),
    "no delete comes where rows are appended": (Keyless.APPEND, "d", None, ROW, NO_INSERT),
    "no row comes again where rows are appended": (Keyless.APPEND, "r", ROW, None, NO_INSERT),
}
"""Policy, operation, row after and before, and what is said of it."""


@pytest.fixture(scope="module")
def refused(spark: SparkSession) -> DataFrame:
    """Changes that are refused; the offset of each is its number."""
    events = (event(op, row, before) for _, op, row, before, _ in REFUSED.values())
    return window(spark, (Record("t", one, offset=number) for number, one in enumerate(events)))


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_that_does_not_tell_the_rows_of_a_table_without_a_key_fails(
    refused: DataFrame, name: str
) -> None:
    policy, *_, message = REFUSED[name]
    change = refused.where(F.col("offset") == [*REFUSED].index(name))
    with pytest.raises(DataError, match=message), spark_errors_of("public.a"):
        decoded_rows(change, keyless(policy), SPEC).collect()
