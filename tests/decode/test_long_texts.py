"""Texts and numbers longer than Jackson's bounds are read as they are."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.json.envelope import decode_envelope, parse_fields
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.types.logical import PRIMITIVES
from lakeingest.frame_schemas import RECORD

LENGTH = 20_000_100


def test_a_row_with_a_text_above_twenty_million_characters_is_read(spark: SparkSession) -> None:
    value = F.concat(
        F.lit('{"before":null,"after":{"id":1,"t":"'),
        F.repeat(F.lit("x"), LENGTH),
        F.lit('"},"source":{"version":"3","table":"a"},"op":"c"}'),
    )
    fields = {field.name: F.lit(None).cast(field.dataType) for field in RECORD}
    fields |= {"topic": F.lit("t"), "value": value.cast("binary")}
    records = spark.range(1).select(*(column.alias(name) for name, column in fields.items()))
    envelope = decode_envelope(records)
    columns = [SourceColumn("t", PRIMITIVES["string"])]
    reader = JsonRows()
    after = reader.sides(F.col("value"), columns, ["after"])["after"]
    row = envelope.select(
        "malformed",
        "op",
        F.length(after["t"]).alias("t"),
        reader.lacks(F.col("value"), "t", ()).alias("lacks_t"),
        reader.lacks(F.col("value"), "gone", ()).alias("lacks_gone"),
    ).first()
    assert row is not None
    assert row.asDict() == {
        "malformed": False,
        "op": "c",
        "t": LENGTH,
        "lacks_t": False,
        "lacks_gone": True,
    }


def test_a_number_of_more_than_a_thousand_digits_is_no_broken_record(spark: SparkSession) -> None:
    text = '{"after":{"n":' + "9" * 2_000 + '},"op":"c"}'
    records = spark.createDataFrame([(bytearray(text.encode()),)], "value binary")
    row = parse_fields(records, StructType().add("op", "string")).first()
    assert row is not None
    assert (row["op"], row["malformed"]) == ("c", False)
