"""One Avro schema out of several: what a schema refers to is written into it.

Confluent's registry lets a schema use types that other subjects define. Whoever decodes gets one
text, so each foreign type is written out where it is first used; from there on its name stands for
it, since Avro allows one definition per name. Rejected: to hand all texts on in the right order, as
Java's parser would accept; Spark's ``from_avro`` takes one.

A name counts within the namespace around it, so a definition that moves takes its own namespace
along, the empty one too. As in Java's parser a short name is looked up in the namespace around it,
then without one.
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
    """Return a schema in which nothing refers to another one.

    Args:
        text: The schema as JSON.
        referenced: The schemas that it refers to, directly or through others.

    Returns:
        The schema as JSON; as it is when it refers to none.

    Raises:
        ValueError: One of them is not JSON, or a type is nowhere defined.
        KeyError: A type lacks its name, a field its type.
    """
    schema = json.loads(text)
    if not referenced:
        return text
    definitions: Definitions = {}
    for other in referenced:
        _collect(json.loads(other), "", definitions)
    return json.dumps(_Writer(definitions).schema(schema, ""))


def _collect(node: Any, around: str, into: Definitions) -> None:
    """Note every definition in a schema, nested ones as well, with the namespace around it."""
    if isinstance(node, list):
        for branch in node:
            _collect(branch, around, into)
        return
    if not isinstance(node, dict):
        return
    kind = node.get("type")
    if not isinstance(kind, str):
        _collect(kind, around, into)
    elif kind in _INSIDE:
        _collect(node.get(_INSIDE[kind]), around, into)
    elif kind in _NAMED:
        full = full_name(node, around)
        into.setdefault(full, (node, around))
        for field in node.get("fields", ()):
            _collect(field["type"], full.rpartition(".")[0], into)


class _Writer:
    """Writes a schema in reading order, each definition once."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._written: set[str] = set()

    def schema(self, node: Any, around: str) -> Any:
        if isinstance(node, str):
            return self._named(node, around)
        if isinstance(node, list):
            return [self.schema(branch, around) for branch in node]
        if not isinstance(node, dict) or "type" not in node:
            message = f"{json.dumps(node)[:80]} is no Avro type"
            raise ValueError(message)
        kind = node["type"]
        if not isinstance(kind, str):
            return {**node, "type": self.schema(kind, around)}
        if kind in _NAMED:
            return self._definition(node, around)
        if kind in _INSIDE:
            inside = _INSIDE[kind]
            return {**node, inside: self.schema(node.get(inside), around)}
        return node if kind in PRIMITIVES else self._named(kind, around)

    def _named(self, name: str, around: str) -> Any:
        if name in PRIMITIVES:
            return name
        for full in meanings(name, around):
            if full in self._written:
                return full
            if full in self._definitions:
                return self._definition(*self._definitions[full])
        message = f"the type {name} is defined neither in it nor in what it refers to"
        raise ValueError(message)

    def _definition(self, node: dict[str, Any], around: str) -> Any:
        full = full_name(node, around)
        if full in self._written:
            return full
        self._written.add(full)
        namespace, _, name = full.rpartition(".")
        written = {**node, "name": name, "namespace": namespace}
        if "fields" in node:
            written["fields"] = [
                {**field, "type": self.schema(field["type"], namespace)} for field in node["fields"]
            ]
        return written
