"""Define the base model and the field types of all configuration models.

Models are frozen: a run must end with the settings with which it started. If a field's value comes
from ``${env:}`` or ``${file:}``, ``referenced`` names the field, and ``repr`` and ``str`` hide its
value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)
from pydantic_core import PydanticCustomError

from lakeingest.config.redaction import REDACTED
from lakeingest.folders import without_file_scheme

CONSEQUENCE = "consequence"
"""Type of an error that follows from another one."""


class Problems(ValueError):  # noqa: N818 - a ValueError for pydantic, and several problems
    """Several problems of a model, each to be reported separately.

    Attributes:
        messages: The messages; each names its keys and the remedy.
    """

    def __init__(self, messages: Iterable[str]) -> None:
        """Store the messages."""
        self.messages = tuple(messages)
        super().__init__("; ".join(self.messages))


def consequence(message: str) -> PydanticCustomError:
    """Return the error of a model that lacks a setting which ``load.py`` has already reported.

    It stops a caller who builds a model directly. For a file, ``complaints.py`` leaves it out, so
    that the user does not read the same problem twice.
    """
    return PydanticCustomError(CONSEQUENCE, "{message}", {"message": message})


def _no_file(path: str) -> str:
    # A path of another machine's file system is no file here.
    if Path(without_file_scheme(path)).is_file():
        message = "is a file; name the folder of a lake, which a run makes where it is missing"
        raise ValueError(message)
    return path


def _regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        message = (
            f"not a regular expression: {error.msg} at character {error.pos}; write one that a "
            "whole topic name matches, or names separated by commas"
        )
        raise ValueError(message) from None
    return pattern


def _none_if_auto(value: object) -> object:
    return None if value == "auto" else value


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
FolderPath = Annotated[Text, AfterValidator(lambda path: path.rstrip("/") or "/")]
LakePath = Annotated[FolderPath, AfterValidator(_no_file)]
RegularExpression = Annotated[Text, AfterValidator(_regular_expression)]
NumberOrAuto = Annotated[int | None, BeforeValidator(_none_if_auto)]
"""A whole number; None: ``auto``."""

SkippedRecord = Annotated[Text, StringConstraints(pattern=r"^[A-Za-z0-9._-]+:[0-9]+:[0-9]+$")]
"""``topic:partition:offset``."""


class ConfigModel(BaseModel):
    """Base of all configuration models: frozen, closed, and silent about referenced values."""

    # hide_input: a validation error must not quote the value; it may be a secret.
    # populate_by_name: code names a field, a file names its key.
    # use_attribute_docstrings: the text below a field is its description.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    referenced: frozenset[str] = Field(default=frozenset(), repr=False, exclude=True)
    """Names of the fields whose value came from a reference and is not shown."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Yield the fields for ``repr``, with referenced values hidden."""
        for name, value in super().__repr_args__():
            yield name, REDACTED if name in self.referenced else value
