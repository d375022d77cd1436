"""Raw events of a real connector leave the state that their SQL statements imply, commit by commit.

The statements are those that the events' recorder ran; what they leave is written here by hand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from lakeingest.errors import ConfigError, DataError
from tests.vectors.conftest import Lake, check_avro

pytestmark = pytest.mark.slow

LONG = "".join(hashlib.md5(str(number).encode()).hexdigest() for number in range(1, 201))
"""``string_agg(md5(i::text), '')`` over 1 to 200: long enough to lie out of line."""

A, TFULL = "id INT, v STRING", "id INT, n INT, txt STRING"
B = "id INT, v STRING, n DECIMAL(10,2), d DATE, ts TIMESTAMP_NTZ, tz TIMESTAMP, nn INT"


@pytest.fixture(scope="module")
def statements(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Snapshot, key change, filtered table, messages, truncate, COPY, interleaving."""
    # The columns of e are guessed.
    declared = {"a": A, "b": B, "tfull": TFULL}
    settings = {f"lakeingest.table.public.{name}.schema": ddl for name, ddl in declared.items()}
    return Lake(spark, tmp_path_factory.mktemp("statements")).of("statements", settings=settings)


NOPK = "lakeingest.table.public.nopk.keyless"


def test_each_commit_of_a_table_is_seen_with_key_change_truncate_and_copy(statements: Lake) -> None:
    before = {1: ("s1",), 2: ("s2",)}
    copied = {100: ("cp1",), 101: ("cp2",), 102: ("cp3",)}
    assert statements.history("a", "id", "v") == [
        before,
        {**before, 3: ("c3",), 4: ("c4",)},
        {**before, 1: ("u1",), 3: ("c3",), 4: ("c4",)},
        {1: ("u1",), 2: ("s2",), 30: ("c3",), 4: ("c4",)},
        {1: ("u1",), 2: ("s2",), 30: ("c3",), 4: ("c4",), 5: ("c5",)},
        {},
        copied,
        # T2 commits before T1, though T1 wrote first.
        {**copied, 201: ("T2-1",)},
        {**copied, 200: ("T1-1",), 201: ("T2-1",), 202: ("T1-2",), 203: ("T1-3",)},
    ]
    # A delete and an insert of one transaction.
    placed = datetime.fromisoformat("2026-01-02T03:04:05.123456")
    assert statements.history("b", "id", "v", "n", "d", "ts", "nn") == [
        {1: ("x", Decimal("1.50"), date(2026, 1, 2), placed, 9)},
        {2: ("y", None, None, None, 7)},
    ]


def test_a_truncate_of_two_tables_reaches_both_and_an_insert_after_it_stays(
    statements: Lake,
) -> None:
    # k was inserted as NULL: replace.null.with.default made it 5 before it reached a topic.
    assert statements.rows("e", "id", "m", "k") == {1: ("q", 5)}


def test_rows_of_a_table_with_full_identity_are_whole(statements: Lake) -> None:
    assert statements.history("tfull", "id", "n", "txt") == [{1: (1, LONG)}, {1: (2, LONG)}]


def test_a_transaction_that_was_cut_by_a_kill_is_whole_however_end_counts(
    lake: Callable[..., Lake],
) -> None:
    ten = dict.fromkeys(range(1001, 1011), ("x",))
    assert lake("killed", "restarted").history("a", "id", "v") == [
        {900: ("pre",)},
        {900: ("pre",), **ten},
        {900: ("pre",), **ten, 901: ("post",)},
    ]
    # A connector with another slot.
    with pytest.raises(DataError, match="780:.* began without its offsets"):
        lake("killed", "restarted", "signals")


@pytest.mark.soak
def test_interleaved_transactions_are_whole_after_a_kill_in_the_later_one(
    lake: Callable[..., Lake],
) -> None:
    states = lake("interleaved_killed", "interleaved_restarted").history("a", "id", "v")
    second = {301: ("T2-1",), 303: ("T2-2",)}
    assert states == [second, {300: ("T1-1",), 302: ("T1-2",), 304: ("T1-3",), **second}]


@pytest.mark.soak
def test_a_snapshot_by_signal_amid_updates_and_a_column_added_later_are_right(
    lake: Callable[..., Lake],
) -> None:
    # The rows without a key commit by commit, what comes behind them in batches of several.
    lake("signals", settings={NOPK: "full-row"}, batches=3)
    later = lake("signals", settings={NOPK: "full-row", "lakeingest.commit.max.transactions": "6"})
    inc = {1: ("v1",), 2: ("v2",), 3: ("upd6",), 4: ("v4",), 5: ("v5",)}
    assert later.rows("inc", "id", "v") == inc
    assert later.rows("e", "id", "m", "k", "z") == {50: ("w", None, "zz")}
    assert later.rows("tfull", "id", "n", "txt") == {77: (2, LONG)}
    assert len(later.rows("sig", "id")) == 9
    assert later.history("nopk", "x", "y") == [{1: ("a",)}, {1: ("b",)}, {}]


@pytest.mark.soak
def test_a_table_without_a_key_stops_the_run_until_it_is_said_what_a_row_is(
    lake: Callable[..., Lake],
) -> None:
    with pytest.raises(ConfigError, match=NOPK):
        lake("signals")
    with pytest.raises(DataError, match=f"{NOPK}=full-row"):
        lake("signals", settings={NOPK: "append"})
    with pytest.raises(ConfigError, match="load the table anew"):
        lake("signals", settings={NOPK: "full-row"})


@pytest.mark.soak
def test_avro_events_with_adjusted_names_leave_what_was_in_the_tables(
    lake: Callable[..., Lake],
) -> None:
    avro = lake("avro", settings={"lakeingest.source.format": "avro"})
    check_avro(avro)
    assert avro.rows("tfull", "id", "n", "txt") == {1: (2, LONG)}


ARRAYS = "ta ARRAY<STRING>, ia ARRAY<INT>, ba ARRAY<BIGINT>, da ARRAY<DATE>, ua ARRAY<STRING>"
SEEN = ("txt", "nntxt", "js", "by", "ta", "ia", "ba", "da", "fa", "hs", "xm")
KEPT = {"lakeingest.ambiguous.nulls": "keep"}
"""float8[], and bytea in mode base64, come as NULL where they did not change."""

FORMS = {
    "toast_bytes": ("STRING", {}),
    "toast_base64": ("MAP<STRING, STRING>", {"lakeingest.source.binary.handling.mode": "base64"}),
    "toast_hex": ("STRING", {"lakeingest.source.binary.handling.mode": "hex"}),
}

CHANGES = 4
"""A truncate, an insert, an update and a key change; a delete would follow."""


# CI has the masks of these events in tests/decode/test_placeholders.py and fills such in tests/law.
@pytest.mark.soak
@pytest.mark.parametrize("run", FORMS)
def test_values_left_out_by_an_update_and_by_a_key_change_are_those_that_were_inserted(
    lake: Callable[..., Lake], run: str
) -> None:
    hstore, settings = FORMS[run]
    ddl = (
        f"id INT, n INT, txt STRING, nntxt STRING, js STRING, by BINARY, {ARRAYS}, "
        f"fa ARRAY<DOUBLE>, hs {hstore}, xm STRING"
    )
    whole = {**KEPT, **settings, "lakeingest.table.public.tst.schema": ddl}
    states = lake(run, settings=whole, batches=CHANGES).history("tst", "id", "n", *SEEN)
    inserted, updated, moved = states
    (number, *values) = inserted[1]
    words = [LONG[at : at + 32] for at in range(0, len(LONG), 32)]
    one_to = list(range(1, 2001))
    assert number == 1
    assert values[:3] == [LONG, LONG, f'"{LONG}"']
    assert bytes(values[3]) == bytes.fromhex(LONG)
    assert values[4:9] == [words, one_to, one_to, [date(2026, 1, 1)] * 2000, one_to]
    assert values[10] == f"<a>{LONG}</a>"
    assert updated == {1: (2, *values)}
    assert moved == {10: (2, *values)}
