"""A recorded run, sent into a broker as it once was: same partitions, offsets and timestamps.

``python -m tests.rig.replay RUN_FOLDER --bootstrap HOST:PORT --order transaction-first``

What no recording fixes is the order *between* topics, and that is what a transaction buffer must
not depend on; so the order is the caller's: the transaction topic before everything, after
everything, or all mixed by timestamp as a live connector mixes them.

Rejected: to go on in topics that hold records already. The offsets would not be the recorded ones,
and every expectation of a test speaks of those.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import heapq
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.rig.topics import create_topics

_ENDING = ".jsonl.gz"
_TRANSACTIONS = ".transaction"
_FLUSH_SECONDS = 120.0


class Order(Enum):
    """Which topics come first."""

    TRANSACTION_FIRST = "transaction-first"
    TRANSACTION_LAST = "transaction-last"
    INTERLEAVED = "interleaved"


class Record(NamedTuple):
    """One recorded record, ready to send."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]


@dataclass(frozen=True)
class Replayed:
    """What a replay did: records sent, and the seconds that took."""

    records: int
    seconds: float


def read_topic(path: Path, topic: str) -> Iterator[Record]:
    """Yield the records of one recorded topic in the order of its lines."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            entry = json.loads(line)
            yield Record(
                topic=topic,
                partition=entry["p"],
                offset=entry["o"],
                timestamp_ms=entry["ts"],
                key=_bytes(entry["k"]),
                value=_bytes(entry["v"]),
                headers=[(name, _bytes(value)) for name, value in entry["h"]],
            )


def replay(
    run: Path,
    bootstrap: str,
    *,
    order: Order = Order.INTERLEAVED,
    rename: str = "",
    chunk: int = 10_000,
    pause_seconds: float = 0.0,
    per_second: float | None = None,
) -> Replayed:
    """Send a recorded run into topics that this call creates.

    Args:
        run: Folder with ``topics/``.
        bootstrap: The broker.
        order: Which topics come first.
        rename: Put before each topic's name, so that tests do not meet; the records stay as
            they are.
        chunk: Records after which the producer is flushed.
        pause_seconds: Wait after each chunk.
        per_second: Upper bound for records per second, or None.

    Returns:
        How many records were sent and how long it took, creation of the topics not counted.

    Raises:
        KafkaException: A topic exists already, or the broker refused a record.
        ValueError: The offsets would not be the recorded ones.
    """
    files = {
        path.name.removesuffix(_ENDING): path for path in sorted(run.glob(f"topics/*{_ENDING}"))
    }
    create_topics(
        bootstrap, {rename + name: count for name, count in _partitions(run, files).items()}
    )
    return send(
        _ordered(files, rename, order),
        bootstrap,
        chunk=chunk,
        pause_seconds=pause_seconds,
        per_second=per_second,
    )


def send(
    records: Iterable[Record],
    bootstrap: str,
    *,
    chunk: int = 10_000,
    pause_seconds: float = 0.0,
    per_second: float | None = None,
) -> Replayed:
    """Send records to existing empty topics and check that each got its recorded offset."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            # Keeps the order within a partition when a request is sent again.
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "compression.type": "lz4",
        }
    )
    failures: list[str] = []
    expected: dict[tuple[str, int], int] = {}
    began = time.monotonic()
    source, sent = iter(records), 0
    while batch := list(islice(source, chunk)):
        for record in batch:
            place = (record.topic, record.partition)
            if expected.setdefault(place, 0) != record.offset:
                message = f"{record.topic}-{record.partition} has no offset {expected[place]}"
                raise ValueError(message)
            expected[place] += 1
            producer.produce(
                record.topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                headers=record.headers,
                on_delivery=_Delivery(record.offset, failures),
            )
            producer.poll(0)
        if producer.flush(_FLUSH_SECONDS) or failures:
            message = f"not delivered: {failures[:3] or 'the broker does not answer'}"
            raise KafkaException(KafkaError(KafkaError._FAIL, message))
        sent += len(batch)
        due = sent / per_second if per_second else 0.0
        time.sleep(max(pause_seconds, due - (time.monotonic() - began), 0.0))
    return Replayed(sent, time.monotonic() - began)


class _Delivery:
    """Notes a record that was refused or got another offset than the recorded one."""

    __slots__ = ("failures", "offset")

    def __init__(self, offset: int, failures: list[str]) -> None:
        self.offset = offset
        self.failures = failures

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error.str())
        elif message.offset() != self.offset:
            self.failures.append(f"{message.topic()}: offset {message.offset()} for {self.offset}")


def _bytes(value: Any) -> bytes | None:
    if isinstance(value, dict):
        return base64.b64decode(value["b64"])
    return None if value is None else str(value).encode()


def _partitions(run: Path, files: dict[str, Path]) -> dict[str, int]:
    """Return the recorded number of partitions by topic."""
    manifest = run / "manifest.json"
    described = (
        json.loads(manifest.read_text(encoding="utf-8"))["topics"] if manifest.is_file() else {}
    )
    return {
        topic: len(described[topic]["partitions"])
        if topic in described
        else 1 + max((record.partition for record in read_topic(path, topic)), default=0)
        for topic, path in files.items()
    }


def _ordered(files: dict[str, Path], rename: str, order: Order) -> Iterator[Record]:
    def records(topics: Iterable[str]) -> Iterator[Record]:
        return chain.from_iterable(read_topic(files[topic], rename + topic) for topic in topics)

    first = [topic for topic in files if topic.endswith(_TRANSACTIONS)]
    rest = [topic for topic in files if topic not in first]
    if order is Order.TRANSACTION_FIRST:
        return records([*first, *rest])
    if order is Order.TRANSACTION_LAST:
        return records([*rest, *first])
    return _by_time(records(files))


def _by_time(records: Iterable[Record]) -> Iterator[Record]:
    """Merge partitions by timestamp, without changing the order inside one."""
    lanes: dict[tuple[str, int], list[tuple[int, int, Record]]] = {}
    for number, record in enumerate(records):
        lane = lanes.setdefault((record.topic, record.partition), [])
        # A partition's times may go back (producers' clocks); its offsets must not.
        latest = max(lane[-1][0] if lane else record.timestamp_ms, record.timestamp_ms)
        lane.append((latest, number, record))
    return (record for _, _, record in heapq.merge(*lanes.values()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Replay a run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.rig.replay")
    parser.add_argument("run", type=Path, help="folder with topics/ and manifest.json")
    parser.add_argument("--bootstrap", required=True, help="host:port of the broker")
    parser.add_argument(
        "--order", type=Order, default=Order.INTERLEAVED, help=" | ".join(o.value for o in Order)
    )
    parser.add_argument("--rename", default="", help="put before each topic's name")
    parser.add_argument("--chunk", type=int, default=10_000, help="records between pauses")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds after each chunk")
    parser.add_argument("--per-second", type=float, help="upper bound for records per second")
    given = parser.parse_args(arguments)
    done = replay(
        given.run,
        given.bootstrap,
        order=given.order,
        rename=given.rename,
        chunk=given.chunk,
        pause_seconds=given.pause,
        per_second=given.per_second,
    )
    print(f"{done.records} records in {done.seconds:.1f} s")


if __name__ == "__main__":
    main()
