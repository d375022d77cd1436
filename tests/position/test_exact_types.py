"""LSN, SCN, binlog place, GTID and GTID set: parsed, shown and compared exactly, or refused."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.position.binlog import BinlogPosition, Gtid, GtidSet
from tests.position.incomparable import IncomparableError
from tests.position.lsn import BlockLsn, Lsn, Scn

UUID = "0e4d5dcd-a33b-11ea-80f1-02010a22a99e"
OTHER = "7c1de3f2-3fd2-11e6-9cdc-42010af000bc"

NUMBERS = st.integers(1, 2**63 - 1)
LSNS = st.integers(0, 2**64 - 1).map(Lsn)
BLOCKS = st.builds(
    BlockLsn, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
)
PLACES = st.builds(
    BinlogPosition,
    st.just("mysql-bin"),
    st.integers(0, 2_000_000) | st.sampled_from([999_999, 1_000_000]),
    st.integers(0, 2**32),
    st.integers(0, 300),
)
GTIDS = st.builds(Gtid, st.sampled_from([UUID, f"{UUID}:billing", OTHER]), NUMBERS) | st.builds(
    Gtid, st.sampled_from(["0", "7"]), NUMBERS, st.integers(1, 9)
)
INTERVALS = st.tuples(st.integers(1, 30), st.integers(0, 8)).map(lambda p: (p[0], p[0] + p[1]))
SETS = st.dictionaries(
    st.sampled_from([UUID, f"{UUID}:billing", OTHER]), st.lists(INTERVALS, max_size=4)
).map(GtidSet.of)


@given(LSNS)
def test_an_lsn_is_read_in_both_of_its_forms(lsn: Lsn) -> None:
    assert Lsn.parse(str(lsn)) == lsn
    assert Lsn.parse(str(lsn.value)) == lsn


@given(BLOCKS)
def test_an_lsn_of_blocks_is_read_as_it_is_shown(lsn: BlockLsn) -> None:
    assert BlockLsn.parse(str(lsn)) == lsn
    assert BlockLsn.parse(str(lsn).upper()) == lsn


@given(PLACES)
def test_a_binlog_place_is_read_as_it_is_shown(place: BinlogPosition) -> None:
    assert BinlogPosition.parse(str(place)) == place


@given(GTIDS)
def test_a_gtid_is_read_as_it_is_shown(gtid: Gtid) -> None:
    assert Gtid.parse(str(gtid)) == gtid


@given(SETS)
def test_a_gtid_set_is_read_as_it_is_shown(found: GtidSet) -> None:
    assert GtidSet.parse(str(found)) == found


NOT_ONE: list[tuple[Callable[[str], object], str]] = [
    (Lsn.parse, ""),
    (Lsn.parse, "-1"),
    (Lsn.parse, "1_0"),
    (Lsn.parse, "٣"),
    (Lsn.parse, "16/B374D848F"),
    (Lsn.parse, "16/"),
    (Lsn.parse, str(2**64)),
    (Scn.parse, "13 234"),
    (Scn.parse, "0x10"),
    (Scn.parse, str(2**64)),
    (BlockLsn.parse, "27:ac0:2"),
    (BlockLsn.parse, "00000027:00000ac0"),
    (BlockLsn.parse, "00000027:00000ac0:000g"),
    (BlockLsn.parse, "NULL"),
    (BinlogPosition.parse, "mysql-bin:4"),
    (BinlogPosition.parse, "mysql-bin.000001"),
    (BinlogPosition.parse, ".000001:4"),
    (BinlogPosition.parse, "mysql-bin.000001:-4"),
    (Gtid.parse, UUID),
    (Gtid.parse, f"{UUID}:1-5"),
    (Gtid.parse, "0-1"),
    (Gtid.parse, ":5"),
    (GtidSet.parse, f"{UUID}:5-1"),
    (GtidSet.parse, f"{UUID}:0"),
    (GtidSet.parse, f"{UUID}:1-2-3"),
    (GtidSet.parse, f"{UUID}:"),
]


@pytest.mark.parametrize(("parse", "text"), NOT_ONE)
def test_what_is_no_place_is_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(text)


def test_numbers_compare_as_numbers() -> None:
    assert Lsn.parse("9") < Lsn.parse("10")
    assert Scn.parse("999") < Scn.parse("1000")
    assert BinlogPosition.parse("b.999999:9") < BinlogPosition.parse("b.1000000:4")
    assert BinlogPosition.parse("b.000001:9") < BinlogPosition.parse("b.000001:10")
    assert BinlogPosition.parse("b.000001:9:2") < BinlogPosition.parse("b.000001:9:10")
    assert Gtid.parse(f"{UUID}:9") < Gtid.parse(f"{UUID}:10")
    assert Gtid.parse("0-2-9") < Gtid.parse("0-1-10")
    assert BlockLsn.parse("00000027:00000ac0:0002") < BlockLsn.parse("00000027:00000ac0:000a")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Gtid.parse(f"{UUID}:1"), Gtid.parse(f"{OTHER}:2")),
        (Gtid.parse(f"{UUID}:1"), Gtid.parse(f"{UUID}:billing:2")),
        (Gtid.parse("0-1-1"), Gtid.parse("1-1-2")),
        (Gtid.parse("0-1-5"), Gtid.parse("0-2-5")),
        (BinlogPosition.parse("a.000001:4"), BinlogPosition.parse("b.000002:4")),
        (GtidSet.parse(f"{UUID}:1-5"), GtidSet.parse(f"{OTHER}:1-5")),
        (GtidSet.parse(f"{UUID}:1-5"), GtidSet.parse(f"{UUID}:2-6")),
    ],
)
def test_what_has_no_order_raises_whatever_is_asked(one: Gtid, other: Gtid) -> None:
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises(IncomparableError):
            compare(one, other)
    assert one != other


def numbers(found: GtidSet) -> set[tuple[str, int]]:
    return {
        (domain, number)
        for domain, intervals in found.intervals.items()
        for first, last in intervals
        for number in range(first, last + 1)
    }


@given(SETS, SETS)
def test_gtid_sets_compare_as_the_sets_of_their_transactions_do(
    one: GtidSet, other: GtidSet
) -> None:
    mine, theirs = numbers(one), numbers(other)
    assert numbers(one.union(other)) == mine | theirs
    assert one.issubset(other) == (mine <= theirs)
    assert (one == other) == (mine == theirs)
    assert all(Gtid(*place) in one for place in mine)
    assert not any(Gtid(*place) in one for place in theirs - mine)
    if mine <= theirs or theirs <= mine:
        assert (one <= other) == (mine <= theirs)
        assert (one < other) == (mine < theirs)
        assert (one >= other) == (mine >= theirs)
        assert (one > other) == (mine > theirs)
    else:
        with pytest.raises(IncomparableError):
            _ = one <= other
    if one == other:
        assert hash(one) == hash(other)


def test_a_set_is_read_with_tags_blanks_and_line_ends() -> None:
    text = f"{UUID.upper()}:1-3:5:billing:1-9,\n {OTHER}:7"
    assert str(GtidSet.parse(text)) == f"{UUID}:1-3:5,{UUID}:billing:1-9,{OTHER}:7"
    assert GtidSet.parse("") == GtidSet()
    assert GtidSet.parse(f"{UUID}:1-3:4-5") == GtidSet.parse(f"{UUID}:1-5")
