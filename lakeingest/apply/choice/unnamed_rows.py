"""Refuse to read rows of a table without a key once more, if equal ones may be one that came twice.

A connector that is killed in the middle of a transaction sends its rows again. The ``runId`` in
their headers (Debezium 3.3) tells those rows from equal rows of the source. Without it a second
BEGIN does. But a table that is loaded anew or taken up again is read from before the frontier,
where no BEGIN is read again.

Rejected: to take equal rows at one place of the log for one row. Equal rows of a COPY share a
place. Rejected: to read the transaction topic from its beginning, too, for a table without a key
and a connector from before 3.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import functions as F

from lakeingest.config.model import PipelineConfig
from lakeingest.envelope.headers import RUN_HEADER, header
from lakeingest.errors import UsageError
from lakeingest.sink.contract import TableState
from lakeingest.source.contract import OffsetRange, Source


def refuse_unnamed_rows(
    config: PipelineConfig,
    source: Source,
    ranges: Iterable[OffsetRange],
    states: Iterable[TableState],
    instead: str,
) -> None:
    """Stop where a table without a key has rows without a ``runId``.

    Args:
        config: The pipeline.
        source: Reads the topics.
        ranges: What is to be read.
        states: The tables that are to be read once more, as they are.
        instead: What the user can do.

    Raises:
        UsageError: A table has such rows.
    """
    own_columns = {*config.metadata().keyless}
    for note in (state.note for state in states):
        if not own_columns & {*note.key} or config.table(note.collection).key:
            continue
        topic = config.source.names.topic(note.collection)
        records = source.read([part for part in ranges if part.topic == topic])
        unnamed = F.col("value").isNotNull() & header(RUN_HEADER).isNull()
        if not records.where(unnamed).isEmpty():
            problem = (
                f"rows of table '{note.collection}', which has no key, have no header "
                f"{RUN_HEADER} (Debezium 3.3), so a row that a killed connector sent twice cannot "
                f"be told from two equal rows: {instead}"
            )
            raise UsageError(problem)
