"""Resolve the names of types in Avro schemas (vocabulary for the registry and for decoding).

Source: Avro specification, "Names". If the enclosing namespace does not define a short name, Java's
parser takes it for a name without a namespace; this module does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
"""Names of Avro's primitive types: they need no definition."""


def full_name(definition: Mapping[str, Any], enclosing: str) -> str:
    """Return the full name that a definition gives its type.

    Args:
        definition: A record, enum or fixed.
        enclosing: The namespace around the definition. The definition's own namespace overrides
            it, even an empty one.
    """
    name = str(definition["name"])
    return name if "." in name else _qualified(name, definition.get("namespace", enclosing))


def meanings(name: str, enclosing: str) -> tuple[str, str]:
    """Return the full names that a name may stand for; the first one with a definition counts."""
    return _qualified(name, enclosing), name


def _qualified(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name
