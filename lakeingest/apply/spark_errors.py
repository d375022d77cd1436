"""Translate Spark's and Delta's exceptions into our errors, without a row in the message.

``from_json`` in FAILFAST mode quotes the record, a cast error quotes the value: their texts must
not reach a log. Only three things are taken from a text: the kind of failure, the name of the
column, and the types that do not fit. A name is taken only where it is plain and stands before the
value, because a record may hold any text, even that of Spark's messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakeingest.decode.types.logical_type import CONVERSION_FAILED
from lakeingest.errors import ConfigError, DataError, LakeingestError, TransientError
from lakeingest.plan.keyless import NO_ROW_BEFORE, NOT_AN_INSERT
from lakeingest.sink.merge_law import MISSING_VALUE
from lakeingest.sink.partition_types import NO_FOLDER


@contextmanager
def spark_errors_of(collection: str) -> Iterator[None]:
    """Turn the failures that a table's data can cause into ``DataError``.

    Raises:
        DataError: A value does not fit its type, or cannot be found anywhere.
        ConfigError: The table takes only appends.
        TransientError: An executor was lost with rows of the batch.
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
                "(PostgreSQL) or binlog_row_image=FULL (MySQL, MariaDB), or give it a primary "
                "key, and let the connector take a new snapshot of it."
            )
            raise DataError(message) from None
        if NOT_AN_INSERT in text:
            message = (
                f"Table '{collection}' has no key and is only appended to, but a row of it was "
                "updated, deleted or sent again by an incremental snapshot. Nothing of this batch "
                "was published. Load it anew with "
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
        if "DELTA_CANNOT_MODIFY_APPEND_ONLY" in text:
            message = (
                f"Table '{collection}' takes only appends (its property delta.appendOnly), but a "
                "row of it was updated or deleted. Nothing of this batch was published. Set the "
                "property to false (ALTER TABLE … SET TBLPROPERTIES), and run again."
            )
            raise ConfigError(message) from None
        if CONVERSION_FAILED in text or "MALFORMED_RECORD_IN_PARSING" in text:
            raise DataError(_does_not_fit(collection, text)) from None
        if "Checkpoint block" in text:
            message = (
                f"Table '{collection}': an executor was lost with rows of this batch. Nothing of "
                "it was published; run again."
            )
            raise TransientError(message) from error
        raise


_REFUSED = re.compile(CONVERSION_FAILED + r": (column '[^\n]{1,300}': [^\n]*)")
_UNREAD = re.compile(
    r"CANNOT_PARSE_JSON_FIELD\] Cannot parse the field name [`']?([\w$-]{1,128})[`']? "
    r"and the value [^\n]* of the JSON token type `?([A-Z_]{1,40})`? "
    r'to target Spark data type "([A-Z0-9_(),<>]{1,80})"'
)
_BEYOND = re.compile(r"Numeric value \([^)\n]{1,400}\) out of range of `?([a-z]{1,10})`?")
"""Jackson's message; it names no field."""


def _does_not_fit(collection: str, text: str) -> str:
    """Return the message that says which value does not fit which type.

    Args:
        collection: The table.
        text: Message of ``decode`` or of Spark.
    """
    conversion, json_field = _REFUSED.search(text), _UNREAD.search(text)
    what, remedy = "a value does not fit the type of its column", ""
    if conversion:
        what, _, remedy = conversion[1].partition("; ")
    elif json_field:
        # The field is a column, or a part of one.
        what = f"field '{json_field[1]}': a JSON {json_field[2]} is not a {json_field[3]}"
    elif number := _BEYOND.search(text):
        what = f"a number is beyond the range of a column of type {number[1]}"
    compare = (
        f"Compare lakeingest.table.{collection}.schema with the source table, and "
        "decimal.handling.mode, time.precision.mode and binary.handling.mode with the connector."
    )
    advice = f"{remedy[0].upper()}{remedy[1:]}. Or: {compare}" if remedy else compare
    return f"Table '{collection}', {what}. Nothing of this batch was published. {advice}"
