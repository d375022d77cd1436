"""The exact types and the encoded column sort alike, for each connector over thousands of places.

One Spark job per connector; a job per value would take hours.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.envelope.change import FAMILIES
from tests.envelope.records import (
    Record,
    binlog_event,
    commit_lsn_event,
    frame,
    grpc_event,
    oracle_event,
    postgresql_event,
)
from tests.position.binlog import BinlogPosition, Gtid
from tests.position.hybrid_time import HybridTime
from tests.position.lsn import BlockLsn, Lsn, Scn

COUNT = 1_000
UUID = "0e4d5dcd-a33b-11ea-80f1-02010a22a99e"
EDGES = [0, 1, 9, 10, 15, 16, 99, 100, 255, 256, 65_535, 65_536, 999_999, 1_000_000, 2**31, 2**32]

Drawn = tuple[Any, Any]
"""What the exact types make of a place, and its event."""


def number(draw: random.Random, below: int) -> int:
    edge = draw.choice([*EDGES, below - 1]) % below
    return draw.choice([edge, draw.randrange(below), draw.randrange(min(below, 40))])


def postgresql(draw: random.Random) -> Drawn:
    before, lsn = Lsn(number(draw, 2**62)), Lsn(number(draw, 2**63))
    return (before, lsn), postgresql_event(before=before.value, lsn=lsn.value)


def postgresql_below_hybrid_times(draw: random.Random) -> Drawn:
    before, lsn = Lsn(number(draw, 2**60)), Lsn(number(draw, 2**60))
    return (before, lsn), postgresql_event(before=before.value, lsn=lsn.value)


def gtid_of(text: str, draw: random.Random) -> Drawn:
    pos, row = number(draw, 2**32), number(draw, 1_000)
    event = binlog_event(text, gtid=text, pos=pos, row=row)
    return (Gtid.parse(text).number, pos, row), event


def mysql(draw: random.Random) -> Drawn:
    return gtid_of(f"{UUID}:{1 + number(draw, 2**62)}", draw)


def tagged(draw: random.Random) -> Drawn:
    return gtid_of(f"{UUID}:billing_2:{1 + number(draw, 2**62)}", draw)


def mariadb(draw: random.Random) -> Drawn:
    return gtid_of(f"0-{draw.randrange(1, 5)}-{1 + number(draw, 2**62)}", draw)


def binlog(draw: random.Random) -> Drawn:
    file, pos, row = number(draw, 2_000_000), number(draw, 2**31), number(draw, 1_000)
    place = BinlogPosition("mysql-bin", file, pos, row)
    event = binlog_event(None, file=f"mysql-bin.{file:06d}", pos=pos, row=row)
    return place, event


def block(draw: random.Random, slot: int) -> BlockLsn:
    return BlockLsn(number(draw, 2**32), number(draw, 2**32), number(draw, slot))


def sqlserver(draw: random.Random) -> Drawn:
    commit, change, serial = block(draw, 2**16), block(draw, 2**16), number(draw, 2**31)
    lowest = BlockLsn(0, 0, 0)
    shown = draw.random() < 0.9
    event = commit_lsn_event(
        str(commit), str(change) if shown else None, db="shop", event_serial_no=serial
    )
    return (commit, change if shown else lowest, serial), event


def db2(draw: random.Random) -> Drawn:
    commit, change = block(draw, 2**64), block(draw, 2**64)
    return (commit, change), commit_lsn_event(str(commit), str(change))


def oracle(draw: random.Random) -> Drawn:
    scn, number_ = Scn(number(draw, 2**63)), number(draw, 2**40)
    return (scn, number_), oracle_event(str(scn), txSeq=number_)


def oracle_by_redo(draw: random.Random) -> Drawn:
    scn, ssn = Scn(number(draw, 2**63)), number(draw, 1_000)
    record = (number(draw, 2**24), number(draw, 2**32), number(draw, 2**16))
    file, block, offset = record
    rs_id = f" 0x{file:06x}.{block:08x}.{offset:04x} "
    return (scn, record, ssn), oracle_event(str(scn), rs_id=rs_id, ssn=ssn)


def hybrid_slot(draw: random.Random) -> Drawn:
    before, lsn = (HybridTime(2**60 + number(draw, 2**62)) for _ in "ab")
    order = 1 + number(draw, 2**31)
    event = postgresql_event(before=before.value, lsn=lsn.value)
    event["transaction"]["total_order"] = order
    return (before, lsn, order), event


def grpc(draw: random.Random) -> Drawn:
    commit, written = HybridTime(number(draw, 2**64)), HybridTime(number(draw, 2**64))
    return (commit, written), grpc_event(commit.signed(), written.signed())


DRAWN = {
    "postgresql": ("postgresql", postgresql),
    "mysql with GTIDs": ("mysql", mysql),
    "mysql with tagged GTIDs": ("mysql", tagged),
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
def test_the_encoded_column_sorts_as_the_exact_types_do(spark: SparkSession, name: str) -> None:
    connector, drawn = DRAWN[name]
    draw = random.Random(20261123)
    places = [drawn(draw) for _ in range(COUNT)]
    records = [Record("t", event, {"id": n}, 0, n) for n, (_, event) in enumerate(places)]
    envelopes = decode_envelope(frame(spark, records), source=FAMILIES[connector].source)
    rows = changes(envelopes, ChangeSpec(connector)).select("offset", "position").collect()
    encoded = {row["offset"]: row["position"] for row in rows}
    assert None not in encoded.values()
    assert len({len(text) for text in encoded.values()}) == 1
    by_text = sorted(range(COUNT), key=lambda n: (encoded[n].encode(), n))
    by_type = sorted(range(COUNT), key=lambda n: (places[n][0], n))
    assert by_text == by_type
