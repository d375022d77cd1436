"""What a run tries again, how often, and what it says in the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from lakeingest.apply import run as runs
from lakeingest.apply.attempts import PAUSES_SECONDS, Attempts
from lakeingest.apply.batch.writer import BatchWriter
from lakeingest.apply.factory import open_ledger
from lakeingest.apply.failure import classify_failure
from lakeingest.errors import (
    AccessError,
    ConfigError,
    DataError,
    FencedError,
    TransientError,
    UnavailableError,
)
from lakeingest.sink.contract import TableState
from lakeingest.sink.delta.sink import DeltaSink
from lakeingest.source.contract import TopicPartition, Watermarks
from lakeingest.source.topics import MissingTopicError
from tests.apply.published import table
from tests.apply.test_offset_ranges import Log
from tests.apply.test_progress import place
from tests.engine.test_storage_errors import thrown
from tests.logs.written import Sent, WrittenLog

LAKE = "s3a://lake/shop"
NOTHING_LOST = Log(10, {TopicPartition("px.a", 0): 10})


def counted(*, reached: bool = True) -> tuple[Attempts, list[float]]:
    slept: list[float] = []
    attempts = Attempts(lambda error: error, lambda _: None, reached=reached, sleep=slept.append)
    return attempts, slept


@pytest.mark.parametrize("kind", [TransientError, UnavailableError])
def test_what_may_pass_is_tried_again_five_times_within_half_a_minute(
    kind: type[Exception],
) -> None:
    run, slept = counted()
    error = kind("away")
    while run.after(error) is None:
        pass
    assert slept == list(PAUSES_SECONDS)
    assert sum(slept) <= 60
    assert run.after(error) is error


def test_a_window_that_succeeds_gives_the_next_failure_all_attempts() -> None:
    run, slept = counted()
    for _ in range(3 * len(PAUSES_SECONDS)):
        assert run.after(TransientError("busy")) is None
        run.succeeded()
    assert set(slept) == {PAUSES_SECONDS[0]}


@pytest.mark.parametrize("kind", [FencedError, DataError, ConfigError, AccessError, ValueError])
def test_what_stays_as_it_is_ends_the_run_at_once(kind: type[Exception]) -> None:
    run, slept = counted()
    error = kind("for good")
    assert run.after(error) is error
    assert slept == []


def test_a_service_that_never_answered_is_not_waited_for() -> None:
    run, _ = counted(reached=False)
    misspelt = UnavailableError("no such topic")
    assert run.after(misspelt) is misspelt
    assert run.after(TransientError("busy")) is None
    run.succeeded()
    assert run.after(misspelt) is None


KAFKA = "org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        (f"{KAFKA}TimeoutException", "Failed to get offsets", UnavailableError),
        (f"{KAFKA}DisconnectException", "", UnavailableError),
        (f"{KAFKA}NotLeaderOrFollowerException", "", UnavailableError),
        (f"{KAFKA}ThrottlingQuotaExceededException", "quota", UnavailableError),
        (f"{KAFKA}TopicAuthorizationException", "no", AccessError),
        (f"{KAFKA}SaslAuthenticationException", "no", AccessError),
        (
            "java.util.concurrent.TimeoutException",
            "Cannot fetch record for offset 5 in 120000 milliseconds",
            UnavailableError,
        ),
        ("org.apache.hadoop.ipc.RetriableException", "name node starts", UnavailableError),
        ("java.net.SocketException", "Connection reset", UnavailableError),
    ],
)
def test_failures_of_services_below_spark_are_told_apart(
    spark: SparkSession, name: str, text: str, kind: type[Exception]
) -> None:
    error = thrown(spark, "org.apache.spark.SparkException", "Job aborted", name, text)
    assert type(classify_failure(error, NOTHING_LOST, [LAKE])) is kind


LOST_EXECUTOR = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 3.0 (TID 9) (10.0.0.1 executor 2): ExecutorLostFailure (executor 2"
)


def test_a_lost_executor_may_pass_and_a_row_that_speaks_of_one_is_a_defect(
    spark: SparkSession,
) -> None:
    lost = thrown(spark, "org.apache.spark.SparkException", LOST_EXECUTOR)
    assert type(classify_failure(lost, NOTHING_LOST, [LAKE])) is TransientError
    text = f"row: {LOST_EXECUTOR}, {KAFKA}TimeoutException"
    quoted = thrown(spark, "org.apache.spark.SparkException", text)
    assert classify_failure(quoted, NOTHING_LOST, [LAKE]) is quoted


def test_a_driver_without_its_jvm_says_so() -> None:
    gone = classify_failure(
        Py4JNetworkError("Answer from Java side is empty"), NOTHING_LOST, [LAKE]
    )
    assert type(gone) is TransientError
    assert "driver process is gone" in str(gone)


def test_a_run_that_a_person_stopped_is_not_tried_again() -> None:
    run, slept = counted()
    killed = TransientError("a job was killed")
    killed.__context__ = KeyboardInterrupt()
    assert run.after(killed) is killed
    assert slept == []


OUT_OF_RANGE = "Cannot fetch offset 5 (GroupId: g, TopicPartition: px.a-0)."


def failing(error: Exception) -> Log:
    class Failing(Log):
        def watermarks(self, _: object) -> dict[TopicPartition, Watermarks]:
            raise error

    return Failing(0, {})


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (NOTHING_LOST, TransientError),
        (Log(0, {TopicPartition("px.a", 0): 3}), DataError),
        (failing(MissingTopicError("gone")), DataError),
        (failing(UnavailableError("no broker answers")), UnavailableError),
    ],
    ids=["there again", "shorter", "deleted", "no broker"],
)
def test_offsets_are_lost_only_where_a_broker_says_so(source: Log, kind: type[Exception]) -> None:
    assert type(classify_failure(RuntimeError(OUT_OF_RANGE), source, [LAKE])) is kind


@pytest.mark.slow
def test_a_run_that_was_overtaken_while_it_tried_its_first_window_again_does_not_take_back(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.transaction("50:60", Sent("public.a", 50, 1, place(50), "c"))

    def overtaken(*_: object) -> None:
        ledger = open_ledger(spark, log.configured(lake), "another run")
        ledger.claim(ledger.head())
        raise TransientError(LAKE)

    monkeypatch.setattr(BatchWriter, "write", overtaken)
    monkeypatch.setattr("lakeingest.apply.attempts.PAUSES_SECONDS", (0.0,) * 3)
    with pytest.raises(FencedError, match="took over the lake while this one tried again"):
        log.ingest(spark, lake)


@pytest.mark.soak
@pytest.mark.slow
def test_a_run_that_fails_before_it_writes_leaves_nothing_to_fence_behind(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipeline that is held, started anew every minute, does not fence all tables each time."""
    log.transaction("50:60", Sent("public.a", 50, 1, place(50), "c"))
    log.ingest(spark, lake)
    log.transaction("70:80", Sent("public.a", 50, 2, place(70), "u"))
    fenced: list[str] = []
    fence = DeltaSink.fence

    def counted_fence(self: DeltaSink, state: TableState, writer: int, by: str) -> TableState:
        fenced.append(state.note.collection)
        return fence(self, state, writer, by)

    def broken(*_: object) -> None:
        raise DataError(LAKE)

    monkeypatch.setattr(DeltaSink, "fence", counted_fence)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "prepare", broken)
        for _ in range(2):
            with pytest.raises(DataError):
                log.ingest(spark, lake)
    log.ingest(spark, lake)
    assert fenced == []
    assert table(spark, lake, "public.a") == {50: 2}
