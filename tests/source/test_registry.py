from __future__ import annotations

import base64
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from lakeingest.errors import AccessError, DataError, LakeingestError, UnavailableError
from lakeingest.source.registry.confluent import ConfluentRegistry
from tests.source.http_registry import (
    HTML,
    RECORD,
    TYPES,
    Loopback,
    Reply,
    error_reply,
    loopback,
    schema_reply,
)

SECRET = "hunter2-registry"  # noqa: S105
BUSY = error_reply(429, 42900, "too many")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What a test has opened."""
    with ExitStack() as stack:
        yield stack


def at(
    stack: ExitStack, *urls: str, retries: int = 2, timeout: float = 5, **more: str
) -> ConfluentRegistry:
    """Open a registry that waits next to nothing between questions."""
    settings = {key.replace("_", "."): text for key, text in more.items()} | {"url": ",".join(urls)}
    options = {f"schema.registry.{key}": text for key, text in settings.items()}
    registry = ConfluentRegistry(options, timeout, retries, pause_seconds=0.01)
    stack.callback(registry.close)
    return registry


def serve(stack: ExitStack, *replies: Reply) -> Loopback:
    """Give the replies one after the other, the last one for ever."""
    left = list(replies)
    return stack.enter_context(loopback(lambda _: left.pop(0) if len(left) > 1 else left[0]))


def opened(stack: ExitStack, *replies: Reply, **more: Any) -> tuple[ConfluentRegistry, Loopback]:
    """Open a registry whose server gives these replies."""
    server = serve(stack, *replies)
    return at(stack, server.url, **more), server


def failure(expected: type[LakeingestError], ask: Callable[[], object]) -> str:
    with pytest.raises(LakeingestError) as error:
        ask()
    assert type(error.value) is expected, error.value
    # What is printed with a traceback must hold no secret either.
    assert error.value.__cause__ is None
    assert error.value.__context__ is None or error.value.__suppress_context__
    return str(error.value)


def test_a_schema_is_asked_for_by_its_id(stack: ExitStack) -> None:
    registry, server = opened(stack, schema_reply())
    assert json.loads(registry.schema(7)) == RECORD
    assert server.paths == ["/schemas/ids/7"]


def test_a_path_in_the_url_is_kept(stack: ExitStack) -> None:
    server = serve(stack, schema_reply())
    at(stack, f"{server.url}/apis/ccompat/v7/").schema(7)
    assert server.paths == ["/apis/ccompat/v7/schemas/ids/7"]


def test_threads_that_want_one_schema_ask_once(stack: ExitStack) -> None:
    def slowly(path: str) -> Reply:
        time.sleep(0.05)
        return schema_reply()

    server = stack.enter_context(loopback(slowly))
    with ThreadPoolExecutor(8) as threads:
        texts = set(threads.map(at(stack, server.url).schema, [1, 2] * 8))
    assert len(texts) == 1
    assert sorted(server.paths) == ["/schemas/ids/1", "/schemas/ids/2"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_login_is_an_error_of_access_at_once(stack: ExitStack, status: int) -> None:
    registry, server = opened(stack, error_reply(status, status * 100 + 1, "no"))
    assert "basic.auth.user.info" in failure(AccessError, lambda: registry.schema(1))
    assert len(server.paths) == 1
    failure(AccessError, at(stack, server.url).check)


def test_an_id_that_nobody_knows_is_an_error_of_the_data(stack: ExitStack) -> None:
    registry, server = opened(stack, error_reply(404, 40403, "Schema not found"))
    said = failure(DataError, lambda: registry.schema(17))
    assert "schema id 17" in said
    assert "schema.registry.url" in said
    assert len(server.paths) == 1


@pytest.mark.parametrize("missing", [error_reply(404, 404), Reply(404, "nothing", "text/plain")])
def test_a_path_where_nothing_is_known_is_not_blamed_on_the_record(
    stack: ExitStack, missing: Reply
) -> None:
    registry, server = opened(stack, missing)
    assert "schemas/types" in failure(UnavailableError, lambda: registry.schema(1))
    failure(UnavailableError, at(stack, server.url).check)


def test_an_id_that_a_terse_registry_does_not_know_is_an_error_of_the_data(
    stack: ExitStack,
) -> None:
    terse = loopback(lambda path: TYPES if path == "/schemas/types" else error_reply(404, 404))
    registry = at(stack, stack.enter_context(terse).url)
    failure(DataError, lambda: registry.schema(1))


@pytest.mark.parametrize("busy", [BUSY, Reply(503, "<html>", "text/html"), error_reply(500, 50001)])
def test_a_registry_that_recovers_is_waited_for(
    stack: ExitStack, busy: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    registry, server = opened(stack, busy, busy, schema_reply())
    with caplog.at_level(logging.WARNING):
        assert registry.schema(1)
    assert len(server.paths) == 3
    assert caplog.text.count("Asking again") == 2


@pytest.mark.parametrize("retries", [0, 2])
def test_a_registry_that_stays_broken_is_unavailable_after_the_retries(
    stack: ExitStack, retries: int
) -> None:
    registry, server = opened(stack, error_reply(500, 50001, "store is gone"), retries=retries)
    said = failure(UnavailableError, lambda: registry.schema(1))
    assert server.url in said
    assert "store is gone" in said
    assert len(server.paths) == retries + 1


def test_a_failure_is_not_remembered(stack: ExitStack) -> None:
    registry, _ = opened(stack, error_reply(500, 50001), schema_reply(), retries=0)
    failure(UnavailableError, lambda: registry.schema(1))
    assert registry.schema(1)


def test_a_silent_registry_is_given_up(stack: ExitStack) -> None:
    over = threading.Event()

    def silent(path: str) -> Reply:
        over.wait(10)
        return schema_reply()

    server = stack.enter_context(loopback(silent))
    started = time.monotonic()
    registry = at(stack, server.url, retries=1, timeout=0.1)
    said = failure(UnavailableError, lambda: registry.schema(1))
    over.set()
    assert "no answer within 0.1 s" in said
    assert time.monotonic() - started < 5
    # The server's thread may take note of the second request after the client has given it up.
    while len(server.paths) < 2 and time.monotonic() - started < 5:
        time.sleep(0.01)
    assert len(server.paths) == 2


def test_a_port_where_nobody_listens_is_unavailable(stack: ExitStack) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # Bound without listening: refused, and nobody else takes it.
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        registry = at(stack, url)
        assert url in failure(UnavailableError, lambda: registry.schema(1))
        failure(UnavailableError, registry.check)


@pytest.mark.parametrize(
    "reply",
    [
        HTML,
        Reply(200, "[]"),
        Reply(200, "{}"),
        Reply(200, ""),
        Reply(200, json.dumps({"schema": "{"})),
        Reply(302, "<html>", "text/html"),
    ],
)
def test_an_answer_that_is_no_registrys_is_not_asked_for_again(
    stack: ExitStack, reply: Reply
) -> None:
    registry, server = opened(stack, reply)
    said = failure(UnavailableError, lambda: registry.schema(1))
    assert "schema.registry.url" in said
    assert "html" not in said
    assert len(server.paths) == 1


@pytest.mark.parametrize("reply", [HTML, Reply(200, "{}"), Reply(200, "")])
def test_a_check_notices_that_something_else_answers(stack: ExitStack, reply: Reply) -> None:
    registry, _ = opened(stack, reply)
    failure(UnavailableError, registry.check)


def test_a_check_of_a_good_registry_reads_no_schema(stack: ExitStack) -> None:
    registry, server = opened(stack, TYPES)
    registry.check()
    assert server.paths == ["/schemas/types"]


@pytest.mark.parametrize("kind", ["JSON", "PROTOBUF"])
def test_a_schema_of_another_kind_is_an_error_of_the_data(stack: ExitStack, kind: str) -> None:
    reply = Reply(200, json.dumps({"schema": 'syntax = "proto3";', "schemaType": kind}))
    registry, _ = opened(stack, reply)
    assert kind in failure(DataError, lambda: registry.schema(1))


def test_a_dead_address_does_not_delay_the_next_one(stack: ExitStack) -> None:
    dead, good = serve(stack, error_reply(503, 50301)), serve(stack, schema_reply())
    registry = at(stack, dead.url, good.url)
    for schema_id in range(3):
        registry.schema(schema_id)
    assert len(dead.paths) == 1
    assert len(good.paths) == 3


def test_user_and_password_are_sent_and_said_to_nobody(
    stack: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    info = f"app:{SECRET}"
    basic = base64.b64encode(info.encode()).decode()
    refused = error_reply(500, 50001, f"no {info}, {SECRET}, {basic}")
    registry, server = opened(stack, refused, basic_auth_user_info=info)
    with caplog.at_level(logging.DEBUG):
        said = failure(UnavailableError, lambda: registry.schema(1))
    assert set(server.logins) == {f"Basic {basic}"}
    for text in (said, caplog.text):
        assert "***" in text
        assert SECRET not in text
        assert basic not in text


def test_a_token_is_sent_and_said_to_nobody(stack: ExitStack) -> None:
    refused = error_reply(401, 40101, f"bad token {SECRET}")
    registry, server = opened(stack, refused, bearer_auth_token=SECRET)
    assert SECRET not in failure(AccessError, lambda: registry.schema(1))
    assert server.logins == [f"Bearer {SECRET}"]


def test_closing_twice_is_safe(stack: ExitStack) -> None:
    registry, _ = opened(stack, TYPES)
    registry.check()
    registry.close()
    registry.close()
