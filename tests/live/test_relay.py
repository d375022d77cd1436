"""The relay against a real broker: nothing lost, no order broken, whatever the broker suffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from confluent_kafka import Producer

from tests.live.lane import Lag
from tests.live.relay import Relay
from tests.rig.arrived import arrived
from tests.rig.kafka import KafkaBroker
from tests.rig.replay import Record, send

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

NUMBER = 600
"""Records of each partition."""

LAG = (0.0, 1.0)


def records(topic: str, partitions: int) -> list[Record]:
    return [
        Record(
            topic,
            partition,
            number,
            1_700_000_000_000 + number,
            None if number % 7 == 0 else f"key {number}".encode(),
            None if number % 11 == 0 else f"value {number}".encode(),
            [("run", b"1"), ("number", str(number).encode())],
        )
        for number in range(NUMBER)
        for partition in range(partitions)
    ]


def numbers(found: Iterable[Record]) -> dict[int, list[int]]:
    """Return the numbers that each partition holds, in its order."""
    lanes: dict[int, list[int]] = {}
    for record in found:
        number = dict(record.headers)["number"]
        assert number is not None
        lanes.setdefault(record.partition, []).append(int(number))
    return lanes


def mirrored(broker: KafkaBroker, topic: str, number: int) -> dict[int, list[int]]:
    """Wait for ``number`` records; return their numbers by partition."""
    return numbers(arrived(broker.bootstrap, topic, number, seconds=20))


def passes(found: list[Record], partitions: int) -> int:
    """Return how often every partition was sent up to its end."""
    lanes = numbers(found)
    return min(lanes.get(number, []).count(NUMBER - 1) for number in range(partitions))


@contextmanager
def relaying(broker: KafkaBroker, prefix: str) -> Iterator[Relay]:
    relay = Relay(broker.bootstrap, prefix, f"mirror.{prefix}", seed=1, lag_seconds=LAG)
    relay.start()
    try:
        yield relay
    finally:
        relay.stop()


def test_every_record_is_copied_as_it_is_in_the_order_of_its_partition(
    broker: KafkaBroker,
) -> None:
    sent = records("plain.a", 2)
    broker.create_topics({"plain.a": 2, "plain": 1, "plainer.a": 1})
    with relaying(broker, "plain") as relay:
        send(sent, broker.bootstrap)
        broker.create_topics({"plain.transaction": 1})
        send(records("plain.transaction", 1), broker.bootstrap)
        found = arrived(broker.bootstrap, "mirror.plain.a", len(sent), seconds=20)
        ends = mirrored(broker, "mirror.plain.transaction", NUMBER)
    assert [record._replace(topic="plain.a") for record in found] == sorted(
        sent, key=lambda record: (record.partition, record.offset)
    )
    assert ends == {0: list(range(NUMBER))}
    assert (relay.copied, relay.copied_again) == (3 * NUMBER, 0)
    topics = broker.admin().list_topics(timeout=5).topics
    assert len(topics["mirror.plain.a"].partitions) == 2
    assert {"mirror.plain", "mirror.plainer.a"}.isdisjoint(topics)


def test_what_was_sent_is_sent_again_in_its_order_and_the_new_goes_on_after_it(
    broker: KafkaBroker,
) -> None:
    broker.create_topics({"twice.a": 2, "twice.transaction": 1})
    send([*records("twice.a", 2), *records("twice.transaction", 1)], broker.bootstrap)
    once = list(range(NUMBER))
    with relaying(broker, "twice") as relay:
        mirrored(broker, "mirror.twice.a", 2 * NUMBER)
        mirrored(broker, "mirror.twice.transaction", NUMBER)
        relay.redeliver(lambda topic, partition: (topic, partition) != ("twice.a", 1))
        more = Producer({"bootstrap.servers": broker.bootstrap})
        more.produce("twice.a", partition=0, headers=[("number", str(NUMBER).encode())])
        assert more.flush(10) == 0
        lanes = mirrored(broker, "mirror.twice.a", 3 * NUMBER + 1)
        ends = mirrored(broker, "mirror.twice.transaction", 2 * NUMBER)
    # The new one may come before the mirror starts over, and then comes again as the others do.
    assert [number for number in lanes[0] if number != NUMBER] == once + once
    assert lanes[0][-1] == NUMBER
    assert lanes[1] == once
    assert ends == {0: once + once}
    assert relay.copied == 3 * NUMBER + 1
    assert relay.copied_again >= 2 * NUMBER


def test_a_broker_that_is_killed_and_comes_back_costs_no_record_and_no_order(
    broker: KafkaBroker,
) -> None:
    broker.create_topics({"killed.a": 2})
    send(records("killed.a", 2), broker.bootstrap)
    topic = "mirror.killed.a"
    with relaying(broker, "killed") as relay:
        arrived(broker.bootstrap, topic, lambda found: passes(found, 2) == 1, seconds=20)
        relay.redeliver()
        arrived(broker.bootstrap, topic, lambda found: len(found) > 2 * NUMBER, seconds=20)
        broker.kill()
        broker.start()
        found = arrived(broker.bootstrap, topic, lambda found: passes(found, 2) == 2, seconds=20)
    for lane in numbers(found).values():
        assert lane[0] == 0
        # A record may come again, and all that follow it then do; none is left out.
        assert all(after <= before + 1 for before, after in pairwise(lane))
    assert relay.copied == 2 * NUMBER


def test_a_lag_changes_within_its_bounds_and_is_the_same_for_the_same_seed() -> None:
    times = [number / 10 for number in range(600)]
    one, same = (Lag("seed", (0.5, 2.0)) for _ in range(2))
    due = [one.due(time) for time in times]
    assert due == sorted(due) == [same.due(time) for time in times]
    lags = {round(then - time, 3) for then, time in zip(due, times, strict=True)}
    assert min(lags) >= 0.5
    assert max(lags) <= 2.0
    assert max(lags) - min(lags) > 1.0


def test_a_mirror_that_would_be_mirrored_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="would be mirrored itself"):
        Relay("nowhere:1", "shop", "shop.mirror", seed=1)
