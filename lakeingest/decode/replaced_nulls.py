"""Find columns whose NULLs a converter may have replaced with their default.

Connect's converters write a field's default where the value is NULL, unless a setting forbids it
(``replace.null.with.default``). Nothing downstream can undo this: a row inserted with 5 and a row
inserted with NULL both have ``5``. A schema shows where it may happen: at a field that may be NULL
and has a default other than NULL.

Source: Connect's ``JsonConverterConfig``, Confluent's ``AvroDataConfig``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakeingest.decode.columns import SourceColumn


def nullable_defaults(columns: Iterable[SourceColumn]) -> tuple[str, ...]:
    """Return the names of such columns, each once."""
    names = (one.name for one in columns if one.nullable and one.default is not None)
    return tuple(dict.fromkeys(names))


def replaced_nulls_warning(collection: str, columns: Sequence[str]) -> str:
    """Return the warning for a user about these columns."""
    return (
        f"Table '{collection}': {', '.join(columns)} may be NULL and have a default. Connect "
        "writes the default for NULL unless the connector has "
        "value.converter.replace.null.with.default=false (Confluent's Avro converter: "
        "value.converter.ignore.default.for.nullables=true); what was replaced so cannot be told "
        "from a value."
    )
