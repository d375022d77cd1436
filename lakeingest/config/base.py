"""What all configuration models have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from lakeingest.config.redaction import REDACTED


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
