"""Define the settings about values: how connector and converter write them, and which may not fit.

The schema of a record already says most of this. For records with a schema only those settings
count that a schema cannot express (``decimal.format``, and the policy for too large values).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lakeingest.config.fields import ConfigModel

TooLarge = Literal["fail", "string"]
Infinite = Literal["fail", "null", "edge"]
Ambiguous = Literal["null", "keep", "fail"]


class ValueSettings(ConfigModel):
    """The part of a source's configuration that says how its values are written."""

    decimal_mode: Literal["precise", "string", "double"] = Field(
        default="precise",
        description="The connector's `decimal.handling.mode`. Default as Debezium's; the only "
        "one that keeps a number exact and typed.",
    )
    binary_mode: Literal["bytes", "base64", "base64-url-safe", "hex"] = Field(
        default="bytes",
        description="The connector's `binary.handling.mode`. Default as Debezium's.",
    )
    time_mode: Literal[
        "adaptive",
        "adaptive_time_microseconds",
        "connect",
        "isostring",
        "microseconds",
        "nanoseconds",
        "structured",
    ] = Field(
        default="adaptive",
        description="The connector's `time.precision.mode`, by which declared columns are read "
        "where records carry no schema. Default as Debezium's: a `TIMESTAMP_NTZ` is then a number "
        "of microseconds; one of milliseconds (MySQL's `DATETIME`, PostgreSQL's `timestamp(3)`) "
        "needs the comment `io.debezium.time.Timestamp`.",
    )
    decimal_format: Literal["BASE64", "NUMERIC"] = Field(
        default="BASE64",
        description="JsonConverter's `decimal.format`. Default as Kafka Connect's.",
    )
    decimal_too_large: TooLarge = Field(
        default="fail",
        description="What a column becomes whose schema allows more digits than the 38 of a "
        "lake's decimal (MySQL's `DECIMAL(65)`): `fail`: a decimal of 38 digits, and a value that "
        "has more stops the run; `string`: its digits as text. Default: `fail`, because most such "
        "columns never hold such values, and numbers are what they are declared for. Set it before "
        "the first run: a column keeps its type.",
    )


class DoubtfulValues(ConfigModel):
    """What becomes of values that no lake holds, or that may stand for another one."""

    infinite_times: Infinite = Field(
        default="fail",
        description="What to do with dates and timestamps that are `infinity`, `-infinity` or not "
        "in the years 1 to 9999, which not every reader of a lake holds: stop, NULL, or the `edge` "
        "of these years (9999-12-31 23:59:59.999999, 0001-01-01), which keeps comparisons right. "
        "In a key it always stops. Default: `fail`, because either would pass for a value of the "
        "source.",
    )
    ambiguous_nulls: Ambiguous = Field(
        default="null",
        description="What to do with a NULL in an update of a PostgreSQL table without REPLICA "
        "IDENTITY FULL that may stand for an unchanged large value, because Debezium has no "
        "placeholder for the type: arrays (but of text, bytea, uuid, integer, bigint, date), and "
        "bytea declared with `binary.handling.mode=base64`. `null` takes it as it is; `keep` keeps "
        "the older value, also where the update did set NULL; `fail` stops. Default: `null`, "
        "because values that small tables have are always sent.",
    )


class TableValues(ConfigModel):
    """The same policies for one table, where they are not the pipeline's."""

    decimal_too_large: TooLarge | None = Field(
        default=None,
        description="What a column becomes whose schema allows more than 38 digits. Default: the "
        "pipeline's policy. Set it before the first run: a column keeps its type.",
    )
    infinite_times: Infinite | None = Field(
        default=None,
        description="What to do with dates and timestamps that are infinite or not in the years 1 "
        "to 9999. Default: the pipeline's policy.",
    )
    ambiguous_nulls: Ambiguous | None = Field(
        default=None,
        description="What to do with a NULL that may stand for an unchanged value. Default: the "
        "pipeline's policy.",
    )


def value_policies(
    source: ValueSettings, pipeline: DoubtfulValues, table: TableValues
) -> dict[str, str]:
    """Return the policies of one table, by the names of the settings."""
    return {
        "decimal_too_large": table.decimal_too_large or source.decimal_too_large,
        "infinite_times": table.infinite_times or pipeline.infinite_times,
        "ambiguous_nulls": table.ambiguous_nulls or pipeline.ambiguous_nulls,
    }
