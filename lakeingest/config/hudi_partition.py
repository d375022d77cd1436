"""What a Hudi file's partition field and key generator say, as partition columns.

Hudi has a dozen key generators; here a partition is a column as it is. Those that make a path out
of something else (a part of a time, a bucket of a number) are refused: a column of that content in
the source does the same, and is also there to be queried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakeingest.config.properties import Value

_NONE, _SIMPLE, _COMPLEX = "NonpartitionedKeyGenerator", "SimpleKeyGenerator", "ComplexKeyGenerator"
_SHORT = {"NON_PARTITION": _NONE, "SIMPLE": _SIMPLE, "COMPLEX": _COMPLEX}
"""Generators by their ``keygenerator.type``."""


@dataclass(frozen=True)
class Partition:
    """What was made of the two settings.

    Attributes:
        columns: Partition columns, separated by commas; null: none.
        warning: What is not followed to the letter.
        problem: What cannot be followed.
    """

    columns: Value | None = None
    warning: str | None = None
    problem: str | None = None


def partition_columns(field: Value | None, generator: Value | None) -> Partition:
    """Read ``partitionpath.field`` by the rules of ``keygenerator.class``.

    Args:
        field: The one setting, if given.
        generator: The other; without it Hudi infers it from the number of columns.
    """
    named = generator.text.rpartition(".")[2] if generator else _COMPLEX
    kind = _SHORT.get(named.upper(), named)
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
