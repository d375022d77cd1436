"""Places and the encoded column sort alike, for each connector over thousands of places.

One Spark job per connector; a job per value would take hours.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.envelope.records import (
    as_signed,
    binlog_event,
    changed,
    commit_lsn_event,
    grpc_event,
    oracle_event,
    postgresql_event,
)

COUNT = 1_000
UUID = "0e4d5dcd-a33b-11ea-80f1-02010a22a99e"
EDGES = [0, 1, 9, 10, 15, 16, 99, 100, 255, 256, 65_535, 65_536, 999_999, 1_000_000, 2**31, 2**32]

Drawn = tuple[Any, Any]
"""A place as numbers that Python compares, and its event."""


def number(draw: random.Random, below: int) -> int:
    edge = draw.choice([*EDGES, below - 1]) % below
    return draw.choice([edge, draw.randrange(below), draw.randrange(min(below, 40))])


def postgresql(draw: random.Random) -> Drawn:
    before, lsn = number(draw, 2**62), number(draw, 2**63)
    return (before, lsn), postgresql_event(before=before, lsn=lsn)


def postgresql_below_hybrid_times(draw: random.Random) -> Drawn:
    before, lsn = number(draw, 2**60), number(draw, 2**60)
    return (before, lsn), postgresql_event(before=before, lsn=lsn)


def gtid_of(before_number: str, draw: random.Random) -> Drawn:
    nth = 1 + number(draw, 2**62)
    text, pos, row = f"{before_number}{nth}", number(draw, 2**32), number(draw, 1_000)
    return (nth, pos, row), binlog_event(text, gtid=text, pos=pos, row=row)


def mariadb(draw: random.Random) -> Drawn:
    return gtid_of(f"0-{draw.randrange(1, 5)}-", draw)


def binlog(draw: random.Random) -> Drawn:
    file, pos, row = number(draw, 2_000_000), number(draw, 2**31), number(draw, 1_000)
    return (file, pos, row), binlog_event(None, file=f"mysql-bin.{file:06d}", pos=pos, row=row)


def lsn_of_blocks(draw: random.Random, digits: int) -> tuple[tuple[int, int, int], str]:
    """Return file, block and slot, and how SQL Server (4 digits) or Db2 (16) writes them."""
    file, block, slot = number(draw, 2**32), number(draw, 2**32), number(draw, 16**digits)
    return (file, block, slot), f"{file:08x}:{block:08x}:{slot:0{digits}x}"


def sqlserver(draw: random.Random) -> Drawn:
    (commit, commit_lsn), (change, change_lsn) = (lsn_of_blocks(draw, 4) for _ in "ab")
    serial, shown = number(draw, 2**31), draw.random() < 0.9
    event = commit_lsn_event(
        commit_lsn, change_lsn if shown else None, db="shop", event_serial_no=serial
    )
    return (commit, change if shown else (0, 0, 0), serial), event


def db2(draw: random.Random) -> Drawn:
    (commit, commit_lsn), (change, change_lsn) = (lsn_of_blocks(draw, 16) for _ in "ab")
    return (commit, change), commit_lsn_event(commit_lsn, change_lsn)


def oracle(draw: random.Random) -> Drawn:
    scn, nth = number(draw, 2**63), number(draw, 2**40)
    return (scn, nth), oracle_event(str(scn), txSeq=nth)


def oracle_by_redo(draw: random.Random) -> Drawn:
    scn, ssn = number(draw, 2**63), number(draw, 1_000)
    record = (number(draw, 2**24), number(draw, 2**32), number(draw, 2**16))
    file, block, offset = record
    rs_id = f" 0x{file:06x}.{block:08x}.{offset:04x} "
    return (scn, record, ssn), oracle_event(str(scn), rs_id=rs_id, ssn=ssn)


def hybrid_slot(draw: random.Random) -> Drawn:
    before, lsn = (2**60 + number(draw, 2**62) for _ in "ab")
    order = 1 + number(draw, 2**31)
    event = postgresql_event(before=before, lsn=lsn)
    event["transaction"]["total_order"] = order
    return (before, lsn, order), event


def grpc(draw: random.Random) -> Drawn:
    commit, written = number(draw, 2**64), number(draw, 2**64)
    return (commit, written), grpc_event(as_signed(commit), as_signed(written))


DRAWN: dict[str, tuple[str, Callable[[random.Random], Drawn]]] = {
    "postgresql": ("postgresql", postgresql),
    "mysql with GTIDs": ("mysql", partial(gtid_of, f"{UUID}:")),
    "mysql with tagged GTIDs": ("mysql", partial(gtid_of, f"{UUID}:billing_2:")),
    "mysql without GTIDs": ("mysql", binlog),
    "mariadb": ("mariadb", mariadb),
    "sqlserver": ("sqlserver", sqlserver),
    "db2": ("db2", db2),
    "oracle": ("oracle", oracle),
    "yugabytedb, LSNs in sequence": ("yugabytedb", postgresql_below_hybrid_times),
    "yugabytedb, LSNs by hybrid time": ("yugabytedb", hybrid_slot),
    "yugabytedb by gRPC": ("yugabytedb-grpc", grpc),
    "oracle before txSeq": ("oracle", oracle_by_redo),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_encoded_column_sorts_as_the_places_do(spark: SparkSession, name: str) -> None:
    connector, drawn = DRAWN[name]
    draw = random.Random(20261123)
    places = [drawn(draw) for _ in range(COUNT)]
    encoded = [row["position"] for row in changed(spark, connector, (event for _, event in places))]
    assert None not in encoded
    assert len({len(text) for text in encoded}) == 1
    by_text = sorted(range(COUNT), key=lambda n: (encoded[n].encode(), n))
    by_place = sorted(range(COUNT), key=lambda n: (places[n][0], n))
    assert by_text == by_place
