"""Turn pydantic's validation errors into messages about the user's keys.

A pydantic error names the model's field, in pydantic's words. This module writes a message with the
user's key, the user's value (unless it came from a reference), and the remedy. It leaves out an
error that only follows from another problem (a missing key is also missing in the model). So the
list has exactly one entry for each thing to correct.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from lakeingest.config import keys
from lakeingest.config.fields import CONSEQUENCE, ConfigModel, Problems
from lakeingest.config.model import PipelineConfig, SourceConfig, TargetConfig
from lakeingest.config.properties import Value
from lakeingest.config.schema_changes import SchemaChanges, TableSchemaChanges
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
    "string_pattern_mismatch": "write letters, digits and _, and no digit first",
    "literal_error": "should be {expected}",
}
"""The remedy by pydantic's error type."""


def complaints(
    error: ValidationError, values: Mapping[str, Value], *, others: bool = False
) -> list[str]:
    """Return the models' errors as messages about keys, without any referenced value.

    Args:
        error: The models' errors.
        values: The validated values, by lakeingest's key.
        others: Whether there are other problems, from which some of the errors may follow.
    """
    messages: list[str] = []
    for detail in error.errors(include_url=False, include_input=False):
        named_before = others and detail["type"] in _REPORTED_BEFORE
        if not named_before and detail["type"] != _DEFAULT_NOT_COMPUTED:
            messages.extend(_messages(detail, values))
    return messages


def error_about(origin: str, problems: Sequence[str], likely: Sequence[str] = ()) -> ConfigError:
    """Return one error that names all problems of a configuration.

    Args:
        origin: The file or mapping, for the message.
        problems: The problems.
        likely: Warnings that may be the cause of a problem.
    """
    problems = _without_repetitions(problems)
    causes = "".join(f"\n  (also {warning})" for warning in likely)
    if len(problems) == 1:
        return ConfigError(f"{origin}: {problems[0]}{causes}")
    entries = "".join(f"\n  - {problem}" for problem in problems)
    return ConfigError(f"{origin}: {len(problems)} problems{entries}{causes}")


def _without_repetitions(problems: Iterable[str]) -> list[str]:
    """Remove a problem that another entry already states, also one after a file's name."""
    distinct: list[str] = []
    for problem in problems:
        if not any(other == problem or other.endswith(f": {problem}") for other in distinct):
            distinct.append(problem)
    return distinct


def _messages(detail: ErrorDetails, values: Mapping[str, Value]) -> Iterable[str]:
    context = detail.get("ctx", {})
    remedy = _REMEDIES.get(detail["type"])
    message = remedy.format(**context) if remedy else detail["msg"].removeprefix("Value error, ")
    name = _key_at(tuple(str(part) for part in detail["loc"]))
    if name is None:  # The error is about several keys, and names them.
        several = context.get("error")
        return several.said if isinstance(several, Problems) else (message,)
    value = values.get(name)
    if value is None:
        return (f"{name}: {message}",)
    if value.referenced:
        return (f"{value.key} (its value is not shown): {message}",)
    return (f"{value.key}={value.text}: {message}",)


def _key_at(path: tuple[str, ...]) -> str | None:
    """Return the key of the field at a path in the models; ``None``: the path is a model."""
    if path[:1] == ("tables",):
        return _table_key_at(*path[1:])
    models: dict[str, type[ConfigModel]] = {
        "source": SourceConfig,
        "target": TargetConfig,
        "schema_changes": SchemaChanges,
    }
    model = models.get(path[0]) if path else None
    field = path[0] if path and model is None else path[1] if len(path) > 1 else None
    if field == "topic_pattern":
        field = "topics"
    for key in keys.KEYS:
        if key.model is (model or PipelineConfig) and key.field == field:
            return key.name
    return None


def _table_key_at(collection: str, *fields: str) -> str | None:
    of_changes = fields[:1] == ("schema_changes",)
    field = fields[1:2] if of_changes else fields[:1]
    for key in keys.TABLE_KEYS.values():
        if (key.field,) == field and of_changes == (key.model is TableSchemaChanges):
            return key.name.replace(keys.COLLECTION, collection)
    return None
