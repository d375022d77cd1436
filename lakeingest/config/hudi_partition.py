"""Translate the partition field and key generator of a Hudi file to partition columns.

Hudi has a dozen key generators; in lakeingest a partition is always a column's unchanged value. The
generators that compute the path (from a part of a time, from a bucket of a number) are refused. A
column with that content in the source does the same, and queries can use it, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakeingest.config.properties import Value

_NONE, _SIMPLE, _COMPLEX = "NonpartitionedKeyGenerator", "SimpleKeyGenerator", "ComplexKeyGenerator"
_SHORT = {"NON_PARTITION": _NONE, "SIMPLE": _SIMPLE, "COMPLEX": _COMPLEX}
"""Generators by ``keygenerator.type``."""


@dataclass(frozen=True)
class Partition:
    """The translation of the two settings.

    Attributes:
        columns: Partition columns, separated by commas; ``None``: no columns.
        warning: Message about a setting that lakeingest does not follow to the letter.
        problem: Message about a setting that it cannot follow.
    """

    columns: Value | None = None
    warning: str | None = None
    problem: str | None = None


def partition_columns(field: Value | None, generator: Value | None) -> Partition:
    """Read ``partitionpath.field`` by the rules of ``keygenerator.class``.

    Args:
        field: ``partitionpath.field``, if set.
        generator: ``keygenerator.class``, if set; otherwise Hudi infers it from the number of
            columns.
    """
    generator_name = generator.text.rpartition(".")[2] if generator else _COMPLEX
    kind = _SHORT.get(generator_name.upper(), generator_name)
    if generator and kind not in (_NONE, _SIMPLE, _COMPLEX):
        return Partition(
            problem=f"{generator.key}: only {_NONE}, {_SIMPLE} and {_COMPLEX} have a meaning here; "
            "partition by columns as they are, or leave both settings out"
        )
    columns = [name.strip() for name in field.text.split(",") if name.strip()] if field else []
    if field is None or not columns:
        return Partition()
    if any(":" in name for name in columns):
        return Partition(problem=f"{field.key}: names of columns, without a type behind them")
    if kind == _NONE:
        return Partition(warning=f"{field.key} has no effect: {_NONE} makes no partitions")
    if kind == _SIMPLE and len(columns) > 1:
        return Partition(problem=f"{field.key}: {_SIMPLE} takes one column, {_COMPLEX} several")
    return Partition(replace(field, text=",".join(columns)))
