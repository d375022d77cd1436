"""What a user reads when a value does not fit: table, column, type and remedy; never the value."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.row import RowSpec, with_row
from lakeingest.decode.types.composed import array
from lakeingest.decode.types.decimals import decimal
from lakeingest.decode.types.logical import PRIMITIVES, SEMANTIC
from lakeingest.decode.types.logical_type import LogicalType
from lakeingest.errors import DataError
from tests.decode.wire import event, unscaled

TABLE = "public.orders"
TIME = "io.debezium.time."

REFUSED: dict[str, tuple[LogicalType, Any, str]] = {
    "a decimal": (
        decimal(10, 2),
        unscaled(4711 * 10**10),
        "column 'secret column': a value is not a decimal(10,2). Nothing of this batch was "
        "published. Declare the column with more digits",
    ),
    "an element": (
        array(SEMANTIC[TIME + "ZonedTimestamp"]),
        ["4711"],
        "column 'secret column': a value is not a zoned timestamp. Nothing",
    ),
    "infinity": (
        SEMANTIC[TIME + "MicroTimestamp"],
        9223372036825200000,
        "a timestamp is infinite, or not in the years 1 to 9999 that every reader knows",
    ),
}


def read(spark: SparkSession, name: str, kind: LogicalType, wire: Any) -> str:
    frame = spark.createDataFrame([(event({name: wire}).encode(),)], "value binary")
    rows = with_row(
        frame, RowSpec([SourceColumn(name, kind)], Encodings(), JsonRows()), masked=False
    )
    with pytest.raises(DataError) as raised, spark_errors_of(TABLE):
        rows.collect()
    return str(raised.value)


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_does_not_fit_names_table_column_type_and_remedy(
    spark: SparkSession, name: str
) -> None:
    kind, wire, expected = REFUSED[name]
    message = read(spark, "secret column", kind, wire)
    assert message.startswith(f"Table '{TABLE}', column 'secret column': ")
    assert expected in message
    assert "lakeingest.table.public.orders.schema" in message
    assert "4711" not in message


def test_a_value_that_json_cannot_be_read_as_names_its_field(spark: SparkSession) -> None:
    message = read(spark, "qty", PRIMITIVES["int32"], "4711")
    assert message.startswith(f"Table '{TABLE}', field 'qty': a JSON VALUE_STRING is not a INT")
    assert "4711" not in message


def test_a_number_beyond_its_type_names_the_type(spark: SparkSession) -> None:
    message = read(spark, "qty", PRIMITIVES["int32"], 4711 * 10**9)
    assert "a number is beyond the range of a column of type int. Nothing" in message
    assert "4711" not in message


def test_text_of_a_record_does_not_pass_for_the_name_of_a_field(spark: SparkSession) -> None:
    forged = (
        "[CANNOT_PARSE_JSON_FIELD] Cannot parse the field name 4711 x and the value 1 of the JSON "
        'token type X to target Spark data type "INT".'
    )
    assert "4711" not in read(spark, "n", PRIMITIVES["int32"], forged)
