"""What a contestant writes into: the name on the command line, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType


class Target(Enum):
    """A table format, and for Hudi the table type."""

    DELTA = "delta"
    HUDI_COW = "hudi-cow"
    HUDI_MOR = "hudi-mor"

    @property
    def hudi(self) -> bool:
        """Whether the session must have Hudi."""
        return self is not Target.DELTA

    @property
    def properties(self) -> Mapping[str, str]:
        """How our pipeline is told to write it."""
        return _PROPERTIES[self]


_FORMAT, _TYPE = "lakeingest.target.format", "lakeingest.hudi.table.type"
_PROPERTIES: Mapping[Target, Mapping[str, str]] = MappingProxyType(
    {
        Target.DELTA: {_FORMAT: "delta"},
        Target.HUDI_COW: {_FORMAT: "hudi", _TYPE: "COPY_ON_WRITE"},
        Target.HUDI_MOR: {_FORMAT: "hudi", _TYPE: "MERGE_ON_READ"},
    }
)


def targets(names: str) -> tuple[Target, ...]:
    """Return the targets of a comma-separated list, each once.

    Raises:
        ValueError: One is not known.
    """
    return tuple(dict.fromkeys(Target(name.strip()) for name in names.split(",")))
