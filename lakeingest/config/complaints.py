"""Collect what is wrong with a configuration, and turn it into messages about the user's keys.

A pydantic error names a field, in pydantic's words. This module writes a message with the user's
key, the user's value (unless it came from a reference), and the remedy. It leaves out an error that
only follows from another problem (a missing key is also missing in the model). So the list has
exactly one entry for each thing to correct.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import ValidationError

from lakeingest.config import keys
from lakeingest.config.file.properties import Value
from lakeingest.config.model.fields import CONSEQUENCE, Problems
from lakeingest.errors import ConfigError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# The error of a default that pydantic computes from another field, if that field is invalid.
_DEFAULT_NOT_COMPUTED = "default_factory_not_called"
# ``load.py`` reports missing keys before it validates the models.
_REPORTED_BEFORE = frozenset({CONSEQUENCE, "missing"})

_REMEDIES = {
    "int_parsing": "write a whole number",
    "int_from_float": "write a whole number",
    "greater_than_equal": "write a whole number from {ge} on",
    "less_than_equal": "write a whole number up to {le}",
    "string_pattern_mismatch": "write letters, digits and _, and no digit first",
    "literal_error": "should be {expected}",
}
"""The remedy by pydantic's error type."""


@dataclass
class Messages:
    """The messages about settings.

    Attributes:
        warnings: Messages about settings that lakeingest does not follow to the letter.
        problems: Messages about settings that are contradictory or that it cannot follow.
        likely: The warnings that may be the cause of a problem.
    """

    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    likely: list[str] = field(default_factory=list)

    def error(self, origin: str) -> ConfigError:
        """Return one error that names all problems of a configuration, each once.

        Args:
            origin: The file or mapping, for the message.
        """
        problems: list[str] = []
        for problem in self.problems:  # Another entry may state it already, after a file's name.
            if not any(one == problem or one.endswith(f": {problem}") for one in problems):
                problems.append(problem)
        causes = "".join(f"\n  (also {warning})" for warning in self.likely)
        if len(problems) == 1:
            return ConfigError(f"{origin}: {problems[0]}{causes}")
        entries = "".join(f"\n  - {problem}" for problem in problems)
        return ConfigError(f"{origin}: {len(problems)} problems{entries}{causes}")

    def add_errors(self, error: ValidationError, values: Mapping[str, Value]) -> None:
        """Add the models' errors as problems, without any referenced value.

        Args:
            error: The models' errors.
            values: The validated values, by lakeingest's key.
        """
        others = bool(self.problems)
        for detail in error.errors(include_url=False, include_input=False):
            reported = others and detail["type"] in _REPORTED_BEFORE
            if not reported and detail["type"] != _DEFAULT_NOT_COMPUTED:
                self.problems.extend(_texts(detail, values))


def _texts(detail: ErrorDetails, values: Mapping[str, Value]) -> Iterable[str]:
    context = detail.get("ctx", {})
    remedy = _REMEDIES.get(detail["type"])
    message = remedy.format(**context) if remedy else detail["msg"].removeprefix("Value error, ")
    name = _key_at([part for part in detail["loc"] if isinstance(part, str)])
    if name is None:  # The error is about several keys, and names them.
        several = context.get("error")
        return several.messages if isinstance(several, Problems) else (message,)
    value = values.get(name)
    if value is None:
        return (f"{name}: {message}",)
    if value.referenced:
        return (f"{value.key} (its value is not shown): {message}",)
    return (f"{value.key}={value.text}: {message}",)


def _key_at(path: Sequence[str]) -> str | None:
    """Return the key of the field at a path in the models; ``None``: the path is a model."""
    match path:
        case ["tables", collection, *rest]:
            suffix = ".".join(rest).replace("schema_changes", "schema")
            return f"{keys.TABLE}{collection}.{suffix}" if rest else None
        case ["schema_changes", kind]:
            return f"{keys.OURS}schema.{kind}"
        case [*_, "topic_pattern"]:
            return keys.TOPICS
        case [*_, last] if last in keys.BY_NAME:
            return last
    return None
