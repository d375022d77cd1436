"""How types are named in Avro schemas (vocabulary for the registry and for decoding).

Source: Avro specification, "Names"; Java's parser for a short name that is not defined in the
namespace around it, which it then takes for one without a namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
"""Names that need no definition."""


def full_name(definition: Mapping[str, Any], around: str) -> str:
    """Return the full name that a definition gives its type.

    Args:
        definition: A record, enum or fixed.
        around: The namespace that it stands in; its own counts more, the empty one too.
    """
    name = str(definition["name"])
    return name if "." in name else _qualified(name, definition.get("namespace", around))


def meanings(name: str, around: str) -> tuple[str, str]:
    """Return the full names that a name may stand for, the first that is defined counts."""
    return _qualified(name, around), name


def _qualified(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name
