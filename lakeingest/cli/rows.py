"""Render a table's rows as text in Spark, and stream them to stdout.

Spark expressions turn the values into text. Rejected: a Python function per value, which costs more
than reading the table; and ``collect``, which holds the table on the driver. The text does not
depend on the session's time zone, because a platform's session may have any time zone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from lakeingest.cli.output import OutputFormat, message, write_csv, write_lines, write_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}

# From this scale on Spark may write a decimal in scientific notation (`0E-7`).
_SCIENTIFIC_SCALE = 7


def write_rows(frame: DataFrame, output: OutputFormat, limit: int | None) -> None:
    """Write the rows of a frame, in the frame's order, to stdout.

    Args:
        frame: The rows, in the order to write.
        output: CSV and JSON (one object a line) stream; a table is drawn in memory.
        limit: Rows to write at most; ``None``: all.
    """
    if output is OutputFormat.JSON:
        write_lines(json_lines(frame if limit is None else frame.limit(limit)))
    elif output is OutputFormat.CSV:
        write_csv(frame.columns, text_rows(frame if limit is None else frame.limit(limit)))
    else:
        # Fetch one row more than the table shows, to find out whether there are more.
        rows = frame if limit is None else frame.limit(limit + 1)
        if write_table(frame.columns, text_rows(rows), limit):
            message(f"the first {limit} rows; --limit 0 for all")


def json_lines(frame: DataFrame) -> Iterator[str]:
    """Yield each row as one JSON object: ISO dates and times, binary in base64."""
    from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

    columns = [_named(name) for name in frame.columns]
    lines = frame.select(F.to_json(F.struct(*columns), _JSON_OPTIONS).alias("line"))
    for row in lines.toLocalIterator(prefetchPartitions=True):
        yield row["line"]


def text_rows(frame: DataFrame) -> Iterator[Sequence[str | None]]:
    """Yield each row as texts; ``None`` is NULL.

    DATE is ``2026-01-02``, TIMESTAMP ``2026-01-02T03:04:05.678901Z``, TIMESTAMP_NTZ the same
    without ``Z``, a decimal has no exponent, binary is base64, arrays, structs and maps are JSON.
    """
    from pyspark.sql.types import DecimalType

    columns = [_text(_named(f.name), f.dataType).alias(str(i)) for i, f in enumerate(frame.schema)]
    exponents = [
        i
        for i, f in enumerate(frame.schema)
        if isinstance(f.dataType, DecimalType) and f.dataType.scale >= _SCIENTIFIC_SCALE
    ]
    for row in frame.select(*columns).toLocalIterator(prefetchPartitions=True):
        yield _without_exponents(row, exponents) if exponents else row


def _named(name: str) -> Column:
    from lakeingest.named import named

    return named(name)


def _text(column: Column, kind: DataType) -> Column:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql import types as t

    if isinstance(kind, t.TimestampType):
        return F.concat(_iso(_at_utc(column)), F.lit("Z"))
    if isinstance(kind, t.TimestampNTZType):
        return _iso(column)
    if isinstance(kind, t.BinaryType):
        # Spark 3.5 breaks base64 into lines of 76 characters, as for mail.
        return F.translate(F.base64(column), "\r\n", "")
    if isinstance(kind, (t.ArrayType, t.MapType, t.StructType)):
        return F.to_json(column, _JSON_OPTIONS)
    return column.cast("string")


def _at_utc(instant: Column) -> Column:
    """Return an instant as local time in UTC, computed from its microseconds.

    Rejected: ``to_utc_timestamp``. It converts to the session's time zone and back, and loses the
    hour that a time zone has twice in autumn.
    """
    from pyspark.sql import functions as F  # noqa: N812

    seconds = (F.unix_micros(instant) / F.lit(Decimal(1_000_000))).cast("decimal(18,6)")
    zero = F.lit(0)
    epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    return epoch + F.make_dt_interval(zero, zero, zero, seconds)


def _iso(local: Column) -> Column:
    """Return a TIMESTAMP_NTZ as ISO text with six digits of the second.

    ``date_format`` would convert it through the session's time zone first.
    """
    from pyspark.sql import functions as F  # noqa: N812

    text = local.cast("string")
    whole = F.translate(F.substring_index(text, ".", 1), " ", "T")
    fraction = F.when(F.instr(text, ".") > 0, F.substring_index(text, ".", -1)).otherwise("")
    return F.concat(whole, F.lit("."), F.rpad(fraction, 6, "0"))


def _without_exponents(row: Sequence[str | None], positions: Sequence[int]) -> Sequence[str | None]:
    cells = list(row)
    for position in positions:
        cell = cells[position]
        if cell is not None and "E" in cell:
            cells[position] = format(Decimal(cell), "f")
    return cells
