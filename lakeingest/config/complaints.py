"""What is wrong with a configuration, in the words of its keys.

The models complain of fields, in pydantic's words. Here a complaint gets the name that the user
wrote, the value he wrote unless it came from a reference, and what to write instead. A complaint
that only follows from another problem (a missing key is missing in the model as well) is left out:
whoever corrects a file should find as many entries in the list as there are things to correct.
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

# A default that is made of another field, which is wrong itself.
_WAITS = "default_factory_not_called"
# What is missing is named before the models are asked.
_NAMED_BEFORE = frozenset({CONSEQUENCE, "missing"})

_WORDS = {
    "int_parsing": "write a whole number",
    "int_from_float": "write a whole number",
    "greater_than_equal": "write a whole number from {ge} on",
    "string_pattern_mismatch": "write letters, digits and _, and no digit first",
    "literal_error": "should be {expected}",
}
"""What to write, by pydantic's kind of error."""


def complaints(
    error: ValidationError, values: Mapping[str, Value], *, others: bool = False
) -> list[str]:
    """Put the models' complaints in the words of the keys, without any referenced value.

    Args:
        error: What the models complain of.
        values: The values that were validated, by key of ours.
        others: Whether there are problems besides, of which some complaints are consequences.
    """
    found: list[str] = []
    for detail in error.errors(include_url=False, include_input=False):
        named_before = others and detail["type"] in _NAMED_BEFORE
        if not named_before and detail["type"] != _WAITS:
            found.extend(_said(detail, values))
    return found


def error_about(origin: str, problems: Sequence[str], likely: Sequence[str] = ()) -> ConfigError:
    """Return the one error that names all that is wrong with what was read.

    Args:
        origin: What was read.
        problems: What is wrong.
        likely: What would only be a warning, but may be the cause.
    """
    problems = _without_repetitions(problems)
    noted = "".join(f"\n  (also {said})" for said in likely)
    if len(problems) == 1:
        return ConfigError(f"{origin}: {problems[0]}{noted}")
    listed = "".join(f"\n  - {problem}" for problem in problems)
    return ConfigError(f"{origin}: {len(problems)} problems{listed}{noted}")


def _without_repetitions(problems: Iterable[str]) -> list[str]:
    """Leave out what was said before, also with the name of a file before it."""
    kept: list[str] = []
    for problem in problems:
        if not any(other == problem or other.endswith(f": {problem}") for other in kept):
            kept.append(problem)
    return kept


def _said(detail: ErrorDetails, values: Mapping[str, Value]) -> Iterable[str]:
    context = detail.get("ctx", {})
    words = _WORDS.get(detail["type"])
    said = words.format(**context) if words else detail["msg"].removeprefix("Value error, ")
    name = _key_at(tuple(str(part) for part in detail["loc"]))
    if name is None:  # About several keys, which it names.
        several = context.get("error")
        return several.said if isinstance(several, Problems) else (said,)
    value = values.get(name)
    if value is None:
        return (f"{name}: {said}",)
    if value.referenced:
        return (f"{value.key} (its value is not shown): {said}",)
    return (f"{value.key}={value.text}: {said}",)


def _key_at(path: tuple[str, ...]) -> str | None:
    """Return the key that fills the field at a place in the models; null: the place is a model."""
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
