"""Make one Delta commit that carries a note, and prove from the log that it happened.

Delta silently skips a write when the table has a version of its ``txnAppId`` that is at least
``txnVersion``, and raises ``ConcurrentTransactionException`` when a rival commits under the same id
meanwhile. Both mean "fenced". So after every write, the sink reads back the newest commits: the
write happened only if its own note is among them.

A conflict with another commit, such as OPTIMIZE, fences nobody. The log decides: a token at least
as high as the write's own one means "fenced"; without such a token, the batch is tried again.

A MERGE takes these ids from session settings. The settings stay set and would make Delta skip the
next write. So each commit has its own temporary session (sessions share jars and cache). Engine
facts: Delta 3.3 ``DeltaCommand.hasBeenExecuted``, ``ConflictChecker``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from lakeingest.commit_note import CommitNote
from lakeingest.engine.delta_log import commits
from lakeingest.engine.own_session import own_session
from lakeingest.errors import TransientError
from lakeingest.sink import progress
from lakeingest.sink.contract import TableState

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
    """Return a pipeline's ``txnAppId``: a table has one id, so one fence, per pipeline."""
    return f"{_APP}{pipeline}"


def merge_session(spark: SparkSession, note: CommitNote) -> SparkSession:
    """Return a session whose next MERGE commits with ``note``."""
    settings = {
        "spark.databricks.delta.write.txnAppId": application(note.pipeline),
        "spark.databricks.delta.write.txnVersion": str(note.token),
        "spark.databricks.delta.commitInfo.userMetadata": note.to_json(),
        # The sink has checkpointed the changeset; another copy would cost a job.
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
    """Return the table's newest version and progress; see ``progress.newest_note``."""
    return progress.newest_note(commits(spark, path))


@contextmanager
def rivals_fence(spark: SparkSession, path: str, note: CommitNote) -> Iterator[None]:
    """Turn Delta's conflict exceptions into errors of lakeingest.

    Args:
        spark: Session with Delta.
        path: Path of the table.
        note: Note of the commit in the block.

    Raises:
        FencedError: Another driver of the pipeline has claimed the table.
        TransientError: Maintenance or another writer changed the table.
    """
    try:
        yield
    except Exception as error:
        if any(name in f"{type(error).__name__} {error}" for name in _CONCURRENT):
            _, newest = newest_note(spark, path)
            if newest is not None and newest.token >= note.token and newest.run != note.run:
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
    """Run ``write`` and prove from the table's log that it committed with ``note``.

    Args:
        spark: Session with Delta.
        path: Path of the table.
        note: Note that ``write`` puts into its commit.
        write: Writes the table in one commit.

    Returns:
        The table's state with the commit.

    Raises:
        FencedError: The log has a later writer's token.
        TransientError: The log lacks the commit for another reason; see ``rivals_fence``.
    """
    with rivals_fence(spark, path, note):
        write()
    version, newest = newest_note(spark, path)
    if newest is not None and newest.run == note.run and newest.token == note.token:
        return TableState(version, newest)
    if newest is not None and newest.token >= note.token:
        raise progress.overtaken(note)
    message = f"The commit to table '{note.collection}' is not in its log; run again."
    raise TransientError(message)
