"""Translate the partition field and key generator of a Hudi file to partition columns.

Hudi has a dozen key generators; in lakeingest a partition is always a column's unchanged value. The
generators that compute the path (from a part of a time, from a bucket of a number) are refused. A
column with that content in the source does the same, and queries can use it, too.
"""

from __future__ import annotations

from dataclasses import replace

from lakeingest.config.complaints import Messages
from lakeingest.config.file.properties import Value

_NONE, _SIMPLE, _COMPLEX = "NonpartitionedKeyGenerator", "SimpleKeyGenerator", "ComplexKeyGenerator"
_SHORT = {"NON_PARTITION": _NONE, "SIMPLE": _SIMPLE, "COMPLEX": _COMPLEX}
"""Generators by ``keygenerator.type``."""


def partition_columns(
    field: Value | None, generator: Value | None, messages: Messages
) -> Value | None:
    """Return the partition columns, separated by commas; ``None``: there are none.

    Args:
        field: ``partitionpath.field``, if set.
        generator: ``keygenerator.class``, if set; otherwise Hudi infers it from the number of
            columns.
        messages: Receives what lakeingest cannot follow, or not to the letter.
    """
    name = generator.text.rpartition(".")[2] if generator else _COMPLEX
    kind = _SHORT.get(name.upper(), name)
    columns = [name.strip() for name in field.text.split(",") if name.strip()] if field else []
    if generator and kind not in (_NONE, _SIMPLE, _COMPLEX):
        messages.problems.append(
            f"{generator.key}: only {_NONE}, {_SIMPLE} and {_COMPLEX} have a meaning here; "
            "partition by columns as they are, or leave both settings out"
        )
    elif field is None or not columns:
        return None
    elif any(":" in name for name in columns):
        messages.problems.append(f"{field.key}: names of columns, without a type behind them")
    elif kind == _NONE:
        messages.warnings.append(f"{field.key} has no effect: {_NONE} makes no partitions")
    elif kind == _SIMPLE and len(columns) > 1:
        messages.problems.append(f"{field.key}: {_SIMPLE} takes one column, {_COMPLEX} several")
    else:
        return replace(field, text=",".join(columns))
    return None
