"""What all configuration models are made of.

Models are frozen: a run must end with the settings it started with. A field whose value came from
``${env:}`` or ``${file:}`` is named in ``referenced`` and blanked out in ``repr`` and ``str``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from lakeingest.config.redaction import REDACTED


class Problems(ValueError):  # noqa: N818 - pydantic tells it by ValueError, and it is several
    """Several things that are wrong with a model, each of them a problem of its own.

    Attributes:
        said: What is wrong and what to do, each a sentence that names its keys.
    """

    def __init__(self, said: Iterable[str]) -> None:
        """Keep what is wrong."""
        self.said = tuple(said)
        super().__init__("; ".join(self.said))


def consequence(message: str) -> PydanticCustomError:
    """Return the error of a model that lacks what ``load.py`` has named already.

    Who makes a model himself is stopped by it; who wrote a file is not told twice.
    """
    return PydanticCustomError(CONSEQUENCE, "{said}", {"said": message})


CONSEQUENCE = "consequence"
"""Type of an error that follows from another one."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


def _without_trailing_slash(path: str) -> str:
    return path.rstrip("/") or "/"


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


FolderPath = Annotated[Text, AfterValidator(_without_trailing_slash)]
SkippedRecord = Annotated[Text, StringConstraints(pattern=r"^[A-Za-z0-9._-]+:[0-9]+:[0-9]+$")]
"""``topic:partition:offset``."""

RegularExpression = Annotated[Text, AfterValidator(_regular_expression)]


class ConfigModel(BaseModel):
    """Base of all configuration models: frozen, closed, and silent about referenced values."""

    # hide_input: a validation error must not quote the value, it may be a secret.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    referenced: frozenset[str] = Field(
        default=frozenset(),
        repr=False,
        exclude=True,
        description="Names of the fields whose value came from a reference and is not shown.",
    )

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Return the shown fields, with referenced values blanked out."""
        for name, value in super().__repr_args__():
            yield name, REDACTED if name in self.referenced else value
