"""Settings about values: how connector and converter write them, and which may not fit.

Records with a schema say most of this themselves; then only what has no place in a schema counts
(``decimal.format``, and what becomes of values that are too large).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lakeingest.config.fields import ConfigModel


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
    decimal_too_large: Literal["fail", "string"] = Field(
        default="fail",
        description="What a column becomes whose schema allows more digits than the 38 of a "
        "lake's decimal (MySQL's `DECIMAL(65)`): `fail`: a decimal of 38 digits, and a value that "
        "has more stops the run; `string`: its digits as text. Default: `fail`, because most such "
        "columns never hold such values, and numbers are what they are declared for. Set it before "
        "the first run: a column keeps its type.",
    )
