"""Merge several Avro schemas into one: write each referenced type into the schema.

Confluent's registry lets a schema use types that other subjects define. The decoder needs one text.
So this module writes the definition of each foreign type at its first use; every later use is the
type's name, since Avro allows one definition per name. Rejected: to pass all texts in the right
order, as Java's parser would accept; Spark's ``from_avro`` accepts only one.

A name is relative to its enclosing namespace. So a definition that moves to another place keeps its
own namespace explicitly, even an empty one. As in Java's parser, a short name is looked up in the
enclosing namespace first, then without a namespace.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lakeingest.avro_names import PRIMITIVES, full_name, meanings

_NAMED = frozenset({"record", "error", "enum", "fixed"})
_INSIDE = {"array": "items", "map": "values"}

Definitions = dict[str, tuple[dict[str, Any], str]]


def with_references(text: str, referenced: Sequence[str]) -> str:
    """Return a schema without references to other schemas.

    Args:
        text: The schema as JSON.
        referenced: The schemas that ``text`` refers to, directly or through others.

    Returns:
        The schema as JSON; ``text`` itself if it refers to no other schema.

    Raises:
        ValueError: One of the texts is not JSON, or no text defines a type.
        KeyError: A type lacks its name, a field its type.
    """
    schema = json.loads(text)
    if not referenced:
        return text
    definitions: Definitions = {}
    for other in referenced:
        _collect(json.loads(other), "", definitions)
    return json.dumps(_Writer(definitions).schema(schema, ""))


def _collect(node: Any, enclosing: str, definitions: Definitions) -> None:
    """Store every definition in a schema, also nested ones, with its enclosing namespace."""
    if isinstance(node, list):
        for branch in node:
            _collect(branch, enclosing, definitions)
        return
    if not isinstance(node, dict):
        return
    kind = node.get("type")
    if not isinstance(kind, str):
        _collect(kind, enclosing, definitions)
    elif kind in _INSIDE:
        _collect(node.get(_INSIDE[kind]), enclosing, definitions)
    elif kind in _NAMED:
        name = full_name(node, enclosing)
        definitions.setdefault(name, (node, enclosing))
        for field in node.get("fields", ()):
            _collect(field["type"], name.rpartition(".")[0], definitions)


class _Writer:
    """Writes a schema in reading order, each definition once."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._written: set[str] = set()

    def schema(self, node: Any, enclosing: str) -> Any:
        if isinstance(node, str):
            return self._named(node, enclosing)
        if isinstance(node, list):
            return [self.schema(branch, enclosing) for branch in node]
        if not isinstance(node, dict) or "type" not in node:
            message = f"{json.dumps(node)[:80]} is no Avro type"
            raise ValueError(message)
        kind = node["type"]
        if not isinstance(kind, str):
            return {**node, "type": self.schema(kind, enclosing)}
        if kind in _NAMED:
            return self._definition(node, enclosing)
        if kind in _INSIDE:
            inside = _INSIDE[kind]
            return {**node, inside: self.schema(node.get(inside), enclosing)}
        return node if kind in PRIMITIVES else self._named(kind, enclosing)

    def _named(self, name: str, enclosing: str) -> Any:
        if name in PRIMITIVES:
            return name
        for full in meanings(name, enclosing):
            if full in self._written:
                return full
            if full in self._definitions:
                return self._definition(*self._definitions[full])
        message = f"the type {name} is defined neither in it nor in what it refers to"
        raise ValueError(message)

    def _definition(self, node: dict[str, Any], enclosing: str) -> Any:
        full = full_name(node, enclosing)
        if full in self._written:
            return full
        self._written.add(full)
        namespace, _, name = full.rpartition(".")
        definition = {**node, "name": name, "namespace": namespace}
        if "fields" in node:
            definition["fields"] = [
                {**field, "type": self.schema(field["type"], namespace)} for field in node["fields"]
            ]
        return definition
