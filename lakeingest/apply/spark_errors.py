"""Spark's and Delta's exceptions as errors of ours: what it means, and no row in the message.

``from_json`` in FAILFAST mode quotes the record, a cast error quotes the value: their text must not
reach a log. Only the kind of failure is taken from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakeingest.decode.logical import CONVERSION_FAILED
from lakeingest.errors import DataError, LakeingestError, TransientError
from lakeingest.plan.keyless import NO_ROW_BEFORE, NOT_AN_INSERT
from lakeingest.sink.merge_law import MISSING_VALUE
from lakeingest.sink.partition_types import NO_FOLDER


@contextmanager
def explained(collection: str) -> Iterator[None]:
    """Turn the failures that a table's data can cause into ``DataError``.

    Raises:
        DataError: A value does not fit its type, or is nowhere to be found.
    """
    try:
        yield
    except LakeingestError:
        raise
    except Exception as error:
        text = str(error)
        if MISSING_VALUE in text:
            message = (
                f"Table '{collection}': an update leaves out an unchanged value (TOAST), and no "
                "earlier value of that column is in the lake or in the batch. Nothing of this "
                "batch was published. Either the stream began without a snapshot of this table "
                "(take one, or set REPLICA IDENTITY FULL), or accept NULL until the next full "
                "value with lakeingest.toast.missing=null."
            )
            raise DataError(message) from None
        if NO_ROW_BEFORE in text:
            message = (
                f"Table '{collection}' has no key, and an update or a delete of it does not say "
                "what the row was. Nothing of this batch was published. Set REPLICA IDENTITY FULL "
                "(PostgreSQL) or binlog_row_image=FULL (MySQL, MariaDB) and load the table anew, "
                "or give it a primary key."
            )
            raise DataError(message) from None
        if NOT_AN_INSERT in text:
            message = (
                f"Table '{collection}' has no key and is only appended to, but a row of it was "
                "updated or deleted. Nothing of this batch was published. Load it anew with "
                f"lakeingest.table.{collection}.keyless=full-row, or give it a primary key."
            )
            raise DataError(message) from None
        if NO_FOLDER in text:
            message = (
                f"Table '{collection}': a partition column holds the empty text, or the name that "
                "stands for no value in folders; either would be read as NULL. Nothing of this "
                "batch was published. Load the table anew with other columns in "
                f"lakeingest.table.{collection}.partition, or with none."
            )
            raise DataError(message) from None
        if CONVERSION_FAILED in text or "MALFORMED_RECORD_IN_PARSING" in text:
            message = (
                f"Table '{collection}': a value does not fit the type of its column. Nothing of "
                "this batch was published. Compare lakeingest.table."
                f"{collection}.schema with the source table, and decimal.handling.mode, "
                "time.precision.mode and binary.handling.mode with the connector."
            )
            raise DataError(message) from None
        if "Checkpoint block" in text:
            message = (
                f"Table '{collection}': an executor was lost with rows of this batch. Nothing of "
                "it was published; run again."
            )
            raise TransientError(message) from error
        raise
