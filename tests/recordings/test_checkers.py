"""The checkers must be able to fail: each is shown something wrong and has to see it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.recordings.compare import Accepted, compare_table
from tests.recordings.configure import RecordedRun, key_of, recorded_run
from tests.recordings.known import ACCEPTED
from tests.recordings.oracle import NULL, Rows, Totals, parse_csv
from tests.recordings.prefix import PrefixChecker, shop_violations

DATA = Path(__file__).parent / "data"

SCHEMA = {
    "id": "BIGINT",
    "active": "BOOLEAN",
    "amount": "DECIMAL(12,2)",
    "at": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
    "note": "STRING",
}
HEADER = tuple(SCHEMA)
SOURCE = Rows(
    HEADER,
    (
        ("1", "t", "7.50", "2026-01-02 03:04:05.6789+00", "2026-01-02 03:04:05", 'say "hi"'),
        ("2", "f", "-0.10", NULL, "2026-01-02 03:04:05.000001", ""),
        ("3", NULL, NULL, "2026-01-02 00:00:00+00", NULL, NULL),
    ),
)
LAKE = Rows(
    HEADER,
    (
        ("1", "true", "7.50", "2026-01-02T03:04:05.678900Z", "2026-01-02T03:04:05", 'say "hi"'),
        ("2", "false", "-0.10", NULL, "2026-01-02T03:04:05.000001", ""),
        ("3", NULL, NULL, "2026-01-02T00:00:00Z", NULL, NULL),
    ),
)


def differences(lake: Rows, *accepted: Accepted) -> tuple[str, ...]:
    return compare_table(
        "t", SOURCE, lake, schema=SCHEMA, key=("id",), accepted=accepted
    ).differences


def with_value(row: int, column: str, value: str) -> Rows:
    rows = [list(values) for values in LAKE.rows]
    rows[row][HEADER.index(column)] = value
    return Rows(HEADER, tuple(tuple(values) for values in rows))


def test_the_same_rows_written_by_two_programs_are_equal() -> None:
    assert differences(LAKE) == ()


def test_columns_may_stand_in_another_order() -> None:
    turned = Rows(HEADER[::-1], tuple(row[::-1] for row in LAKE.rows))
    assert differences(turned) == ()


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        (0, "active", "false"),
        (0, "active", NULL),
        (2, "active", "false"),
        (0, "amount", "7.51"),
        (0, "amount", "75"),
        (0, "at", "2026-01-02T03:04:05.678901Z"),
        (0, "at", "2026-01-02T04:04:05.678900+01:00"),
        (1, "at", "1970-01-01T00:00:00Z"),
        # A wall-clock time has no zone: a Z says that somebody converted it.
        (0, "local", "2026-01-02T03:04:05Z"),
        (1, "note", NULL),
        (2, "note", ""),
        (2, "note", "null"),
        (0, "note", "say hi"),
        (0, "note", "__debezium_unavailable_value"),
    ],
)
def test_one_wrong_value_is_found_and_named(row: int, column: str, value: str) -> None:
    (said,) = differences(with_value(row, column, value))
    assert said.startswith(f"column {column} wrong in 1 rows, first id={row + 1}")


def test_a_missing_an_extra_and_a_repeated_row_are_found() -> None:
    assert "1 rows missing, first id=3" in differences(Rows(HEADER, LAKE.rows[:2]))
    extra = ("4", *LAKE.rows[0][1:])
    assert "1 rows the source does not have, first id=4" in differences(
        Rows(HEADER, (*LAKE.rows, extra))
    )
    assert "1 keys more than once in the lake, first id=2" in differences(
        Rows(HEADER, (*LAKE.rows, LAKE.rows[1]))
    )


def test_rows_out_of_order_are_found() -> None:
    assert differences(Rows(HEADER, LAKE.rows[::-1])) == ("rows are equal but not ordered by id",)


def test_a_missing_column_is_found() -> None:
    (said,) = differences(Rows(HEADER[:-1], tuple(row[:-1] for row in LAKE.rows)))
    assert said.startswith("columns id, active, amount")


def test_an_accepted_difference_excuses_only_its_own_two_values() -> None:
    known = Accepted("t", "note", NULL, "x", "because")
    assert differences(with_value(2, "note", "x"), known) == ()
    assert differences(with_value(2, "note", "y"), known)
    assert differences(with_value(1, "note", "x"), known)


def test_a_message_does_not_print_whole_values() -> None:
    (said,) = differences(with_value(0, "note", "x" * 10_000))
    assert len(said) < 200


def test_a_line_break_of_any_sort_stays_inside_its_value() -> None:
    assert parse_csv('a,b\n1,"x\ny"\n2,"x\r\ny"\n').rows == (("1", "x\ny"), ("2", "x\r\ny"))


def test_every_accepted_difference_has_a_reason() -> None:
    assert all(known.reason for runs in ACCEPTED.values() for known in runs)


@pytest.fixture(scope="module")
def run() -> RecordedRun:
    return recorded_run(DATA / "pg-shop-small", "json-schema")


@pytest.fixture(scope="module")
def commits(run: RecordedRun) -> Sequence[Totals]:
    found = run.oracle.commits
    assert found is not None
    return found


def test_the_truth_compared_with_itself_is_equal(run: RecordedRun) -> None:
    for table in run.oracle.tables:
        rows = run.oracle.final(table)
        assert rows.rows
        compared = compare_table(table, rows, rows, schema=run.schemas[table], key=key_of(table))
        assert compared.differences == ()


def test_every_commit_of_the_source_is_found_in_order(commits: Sequence[Totals]) -> None:
    checker = PrefixChecker(commits, most=1)
    for n, totals in enumerate(commits):
        place = checker.check(str(n), totals)
        assert place is not None
        assert place.first <= n <= place.last
    assert checker.violations == []


def test_a_snapshot_that_mixes_two_commits_is_always_found(commits: Sequence[Totals]) -> None:
    # Torn on purpose: one table that a commit changed is left at the commit before.
    torn = 0
    for n in range(1, len(commits)):
        changed = [t for t in commits[n] if commits[n][t] != commits[n - 1].get(t)]
        for table in changed:
            if len(changed) > 1 and table in commits[n - 1]:
                checker = PrefixChecker(commits[max(0, n - 3) : n + 3])
                mixed = {**commits[n], table: commits[n - 1][table]}
                assert checker.check("torn", mixed) is None, (n, table)
                torn += 1
    assert torn > 1000


def test_a_random_mix_of_two_commits_is_found(commits: Sequence[Totals]) -> None:
    choose = random.Random(7)
    checker = PrefixChecker(commits)
    for _ in range(60):
        early, late = sorted(choose.sample(range(len(commits)), 2))
        table = choose.choice(sorted(commits[early]))
        mixed = {**commits[late], table: commits[early][table]}
        if mixed not in commits:
            checker.check("mixed", mixed)
            assert checker.violations.pop().startswith("mixed: no commit has these totals")


def test_one_row_too_few_or_one_changed_text_is_found(commits: Sequence[Totals]) -> None:
    for measure, table in (("count", "bulk"), ("crc_note", "orders"), ("sum_id", "customers")):
        wrong = {**commits[-1], table: {**commits[-1][table]}}
        wrong[table][measure] -= 1  # type: ignore[index]
        checker = PrefixChecker(commits)
        assert checker.check("wrong", wrong) is None
        assert f"{table}.{measure}" in checker.violations[0]


def test_a_missing_table_is_found(commits: Sequence[Totals]) -> None:
    without = {table: totals for table, totals in commits[-1].items() if table != "carts"}
    assert PrefixChecker(commits).check("without", without) is None


def test_going_back_is_found_and_the_last_place_is_kept(commits: Sequence[Totals]) -> None:
    checker = PrefixChecker(commits)
    checker.check("late", commits[500])
    assert checker.check("early", commits[400]) is None
    assert checker.violations == ["early: went back to commit 400 from 500"]
    assert checker.check("again", commits[500]) is not None


def test_more_commits_in_one_step_than_allowed_are_found(commits: Sequence[Totals]) -> None:
    checker = PrefixChecker(commits, most=7)
    checker.check("first", commits[0])
    checker.check("second", commits[20])
    assert "commits in one step, at most 7" in checker.violations[0]


def test_an_ignored_measure_is_not_compared_and_the_others_are(commits: Sequence[Totals]) -> None:
    ignored = frozenset({"customers.sum_tier"})
    other = {**commits[-1], "customers": {**commits[-1]["customers"], "sum_tier": 0}}
    assert PrefixChecker(commits).check("all", other) is None
    assert PrefixChecker(commits, ignored).check("ignored", other) is not None


def test_the_shops_invariants_see_a_missing_line() -> None:
    good: Totals = {
        "orders": {"count": 2, "sum_line_count": 3, "sum_total_cents": 70},
        "order_lines": {"count": 3, "worth": 70},
        "customers": {"sum_spent_cents": 70},
        "ledger": {"sum_revenue_cents": 70},
    }
    assert list(shop_violations("good", good)) == []
    for table, measure in (("order_lines", "count"), ("ledger", "sum_revenue_cents")):
        (violation,) = shop_violations("bad", {**good, table: {**good[table], measure: 2}})
        assert violation.startswith("bad: ")
