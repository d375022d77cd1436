"""Find columns whose NULLs a converter may have replaced with their default.

Connect's converters write a field's default where the value is NULL, unless a setting forbids it
(``replace.null.with.default``). Nothing downstream can undo this: a row inserted with 5 and a row
inserted with NULL both have ``5``. A schema shows where it may happen: at a field that may be NULL
and has a default other than NULL.

Source: Connect's ``JsonConverterConfig``, Confluent's ``AvroDataConfig``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lakeingest.decode.cells import without_cells
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.flattened.added_fields import ADDED


def nullable_defaults(schema_text: str) -> tuple[str, ...]:
    """Return the names of such columns in a Connect envelope schema (JSON)."""
    for part in json.loads(schema_text).get("fields") or ():
        if part.get("field") in ("after", "before"):
            return _nullable_defaults(part["fields"])
    return ()


def nullable_defaults_in_row(schema_text: str) -> tuple[str, ...]:
    """Return the names of such columns in a row's Connect schema (JSON), without envelope."""
    fields = json.loads(schema_text).get("fields") or ()
    return _nullable_defaults(item for item in fields if not item["field"].startswith(ADDED))


def _nullable_defaults(fields: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    listed = list(fields)
    return tuple(
        item["field"]
        for item in without_cells(listed) or listed
        if item.get("optional") and item.get("default") is not None
    )


def nullable_defaults_in_avro(columns: Iterable[SourceColumn]) -> tuple[str, ...]:
    """Return the names of such columns among those of an Avro schema."""
    return tuple(item.name for item in columns if item.nullable and item.default is not None)


def replaced_nulls_warning(collection: str, columns: Sequence[str]) -> str:
    """Return the warning for a user about these columns."""
    return (
        f"Table '{collection}': {', '.join(columns)} may be NULL and have a default. Connect "
        "writes the default for NULL unless the connector has "
        "value.converter.replace.null.with.default=false (Confluent's Avro converter: "
        "value.converter.ignore.default.for.nullables=true); what was replaced so cannot be told "
        "from a value."
    )
