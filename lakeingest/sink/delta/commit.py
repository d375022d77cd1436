"""One Delta commit that carries a note, and the proof that it is ours.

Delta skips a write in silence when its ``txnAppId`` has already seen a version as high as
``txnVersion``, and raises ``ConcurrentTransactionException`` when a rival commits the same id
meanwhile. Both mean "fenced", so after every write the newest commits are read back: only when our
own note is among them did the write happen. A conflict with another's commit, such as OPTIMIZE,
fences nobody: the log tells, by a token as high as ours, and where there is none the batch is
tried again. A MERGE takes these ids from session settings, which
stay set and would make the next write vanish; each commit therefore runs in a session of its own,
which is thrown away (sessions share jars and cache). Engine facts: Delta 3.3
``DeltaCommand.hasBeenExecuted``, ``ConflictChecker``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from lakeingest.engine.delta_log import commits
from lakeingest.engine.own_session import own_session
from lakeingest.errors import TransientError
from lakeingest.sink import progress
from lakeingest.sink.contract import CommitNote, TableState

_APP = "lakeingest:"

_CONCURRENT = (
    "ConcurrentTransactionException",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "DELTA_CONCURRENT",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
)


def application(pipeline: str) -> str:
    """Return the ``txnAppId`` of a pipeline: one id per table and pipeline is one fence."""
    return f"{_APP}{pipeline}"


def merge_session(spark: SparkSession, note: CommitNote) -> SparkSession:
    """Return a session whose next MERGE commits with ``note``."""
    settings = {
        "spark.databricks.delta.write.txnAppId": application(note.pipeline),
        "spark.databricks.delta.write.txnVersion": str(note.token),
        "spark.databricks.delta.commitInfo.userMetadata": note.to_json(),
        # The sink holds the changeset; copying it once more costs a job.
        "spark.databricks.delta.merge.materializeSource": "none",
    }
    return own_session(spark, settings)


def writer(frame: DataFrame, note: CommitNote) -> DataFrameWriter:
    """Return a Delta writer whose commit carries ``note``."""
    return (
        frame.write.format("delta")
        .option("txnAppId", application(note.pipeline))
        .option("txnVersion", str(note.token))
        .option("userMetadata", note.to_json())
    )


def newest_note(spark: SparkSession, path: str) -> tuple[int, CommitNote | None]:
    """Return the table's newest version and how far it is; see ``progress.newest_note``."""
    return progress.newest_note(commits(spark, path))


@contextmanager
def rivals_fence(spark: SparkSession, path: str, note: CommitNote) -> Iterator[None]:
    """Turn Delta's conflict exceptions into errors of ours.

    Raises:
        FencedError: Another driver of the pipeline has the table.
        TransientError: Maintenance, or anybody else, changed the table.
    """
    try:
        yield
    except Exception as error:
        if any(name in f"{type(error).__name__} {error}" for name in _CONCURRENT):
            _, found = newest_note(spark, path)
            if found is not None and found.token >= note.token and found.run != note.run:
                raise progress.overtaken(note) from error
            message = (
                f"Table '{note.collection}' was changed by another writer (OPTIMIZE, ALTER TABLE) "
                "while this batch was written. Nothing of it was published; run again, or run "
                "maintenance when the pipeline is idle."
            )
            raise TransientError(message) from error
        raise


def committed(
    spark: SparkSession, path: str, note: CommitNote, write: Callable[[], object]
) -> TableState:
    """Run ``write`` and prove from the table's log that it landed with ``note``.

    Raises:
        FencedError: A later writer's token stands in the log.
        TransientError: The commit is not there for another reason; see ``rivals_fence``.
    """
    with rivals_fence(spark, path, note):
        write()
    version, found = newest_note(spark, path)
    if found is not None and found.run == note.run and found.token == note.token:
        return TableState(version, found)
    if found is not None and found.token >= note.token:
        raise progress.overtaken(note)
    message = f"The commit to table '{note.collection}' is not in its log; run again."
    raise TransientError(message)
