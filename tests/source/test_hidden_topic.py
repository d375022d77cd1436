"""A topic that the user may not describe is told apart from one that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from lakeingest.errors import AccessError, LakeingestError
from lakeingest.source.broker import Broker
from lakeingest.source.client_options import client_options
from lakeingest.source.topics import MissingTopicError


class Answering:
    """A client whose broker lists no topic, and answers a question about one with an error."""

    def __init__(self, code: int) -> None:
        self.error = KafkaException(KafkaError(code))
        self.topics: Sequence[str] = ()

    def describe_topics(self, topics: TopicCollection, **_: Any) -> dict[str, Future[None]]:
        future: Future[None] = Future()
        future.set_exception(self.error)
        return {"px.a": future}

    def list_topics(self, **_: Any) -> Answering:
        return self


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, AccessError, "may not describe topic 'px.a'"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, MissingTopicError, "'px.a' does not exist"),
    ],
)
def test_the_brokers_answer_by_name_decides(
    monkeypatch: pytest.MonkeyPatch, code: int, kind: type[LakeingestError], message: str
) -> None:
    broker = Broker(client_options({"bootstrap.servers": "kafka:9092"}))
    client = cast(AdminClient, Answering(code))
    monkeypatch.setattr(broker, "_client", lambda: client)
    with pytest.raises(kind, match=message):
        broker.watermarks(["px.a"])
