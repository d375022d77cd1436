"""``lakeingest types``: print Debezium's types, the lake's types, and an example of each."""

from __future__ import annotations

import json

from lakeingest.cli.options import OutputOption
from lakeingest.cli.output import OutputFormat, write_csv, write_lines, write_table

COLUMNS = ("type", "of the source", "spark", "in a JSON record", "in the lake")
"""Columns of the table."""

_WIDEST = 60


def types(output: OutputOption = OutputFormat.TABLE) -> None:
    """Print the table of types: Debezium's, Spark's, and an example of each.

    Avro has the same types; octets stand in it as octets, not as base64.
    """
    from lakeingest.decode.types.examples import EXAMPLES

    rows = [
        (each.name, each.source, each.type.spark.simpleString(), each.wire_text, each.lake)
        for each in EXAMPLES
    ]
    if output is OutputFormat.JSON:
        write_lines(
            json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False) for row in rows
        )
    elif output is OutputFormat.CSV:
        write_csv(COLUMNS, rows)
    else:
        write_table(COLUMNS, rows, widest=_WIDEST)
