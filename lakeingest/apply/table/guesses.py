"""Refuse types that are only guesses, of all tables of a batch at once.

A table cannot change the type of a column to one that reads its values otherwise, so a wrong guess
costs the table. Rejected: a warning. Nobody reads it before the batch is published. Rejected: to
stop at the first table. Its user would declare one table per run.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from lakeingest.config.file.properties import property_line
from lakeingest.config.keys import table_key
from lakeingest.config.model import PipelineConfig
from lakeingest.decode.columns import columns_of_kinds
from lakeingest.errors import ConfigError
from lakeingest.named import quoted
from lakeingest.plan.inference import InferredType

_NUMERIC_DECIMAL = "float64"
"""What a decimal looks like where decimals are numbers."""


class Guesses:
    """Collects columns whose types are guesses; tables report from several threads."""

    def __init__(self, config: PipelineConfig) -> None:
        """Start empty."""
        self._accepts = config.guessed_types == "accept"
        self._declared = {name: table.ddl for name, table in config.tables.items()}
        source = config.source
        self._numeric = source.decimal_format == "NUMERIC" or source.decimal_mode == "double"
        self._lock = Lock()
        self._columns: dict[str, dict[str, str]] = {}

    def add(self, collection: str, types: Mapping[str, InferredType]) -> None:
        """Add the columns of a table whose types are not certain."""
        guessed = {name: type_.kind for name, type_ in types.items() if not self._is_certain(type_)}
        if guessed and not self._accepts:
            with self._lock:
                self._columns[collection] = guessed

    def refuse(self) -> None:
        """Refuse the columns so far.

        Raises:
            ConfigError: There are some.
        """
        if not self._columns:
            return
        lines = "\n".join(self._line(name) for name in sorted(self._columns))
        message = (
            "The records have no schemas, and the values alone do not tell these types: a whole "
            "number may be a date, a time or a timestamp; a text may be a decimal or bytes in "
            "base64. Declare them as the source has them (lakeingest guide configuration). These "
            "are the tables of this batch; lakeingest init drafts the lines of all tables, with "
            f"the likely types:\n{lines}\nTo take the types as they are here, set "
            "lakeingest.types.guess=accept. Nothing of this batch was published."
        )
        raise ConfigError(message)

    def _is_certain(self, type_: InferredType) -> bool:
        return type_.certain and not (self._numeric and type_.kind == _NUMERIC_DECIMAL)

    def _line(self, collection: str) -> str:
        declared, guessed = self._declared.get(collection), column_list(self._columns[collection])
        columns = f"{declared}, {guessed}" if declared else guessed
        return property_line(table_key("schema", collection), columns)


def column_list(kinds: Mapping[str, str]) -> str:
    """Return columns as a declaration has them, given the Connect names of their types."""
    columns = columns_of_kinds(kinds)
    return ", ".join(f"{in_ddl(c.name)} {c.type.spark.simpleString().upper()}" for c in columns)


def in_ddl(name: str) -> str:
    """Return a column's name as a declaration has it: quoted where it is no plain name."""
    return name if name.isascii() and name.isidentifier() else quoted(name)
