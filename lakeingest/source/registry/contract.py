"""The schemas that Avro records were written with, by the id that each record carries.

A registry is asked on the driver, once per id and run: a schema never changes under its id. What
it answers enters the plan as data, so that no executor needs a way to it. Rejected: a look-up per
record in Python or in a JVM deserialiser, which would need credentials on every executor and could
not stop the run before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from lakeingest.errors import DataError
from lakeingest.source.registry.references import with_references


class Registry(Protocol):
    """Where the schemas of Avro records are."""

    def schema(self, schema_id: int) -> str:
        """Return the Avro schema of an id as JSON text in which nothing refers to another schema.

        Asked once per id; may be called from several threads.

        Raises:
            DataError: There is no such id, or its schema is none of Avro.
            AccessError: The registry refuses the login or the question.
            UnavailableError: The registry does not answer, or something else answers.
        """

    def check(self) -> None:
        """Ask something cheap, to see that the registry can be used; same errors as ``schema``."""

    def close(self) -> None:
        """Release clients. Safe to call twice."""


@dataclass(frozen=True)
class Registered:
    """A schema as it was registered.

    Attributes:
        text: The schema as JSON.
        references: Subject and version of each schema that it refers to.
    """

    text: str
    references: tuple[tuple[str, int], ...] = ()


class WholeSchemas:
    """Schemas with their references written into them, kept by id.

    One lock is held while a registry is asked: threads that want the same schema then wait for one
    answer, and threads that want others find a registry in trouble no better than the first one.
    A failure is not kept; the next run of a long-lived process asks again.

    Args:
        by_id: Asks for a schema by its id.
        by_version: Asks for a schema by subject and version.
    """

    def __init__(
        self,
        by_id: Callable[[int], Registered],
        by_version: Callable[[str, int], Registered],
    ) -> None:
        self._by_id = by_id
        self._by_version = by_version
        self._whole: dict[int, str] = {}
        self._referenced: dict[tuple[str, int], Registered] = {}
        self._lock = Lock()

    def text(self, schema_id: int) -> str:
        """Return the schema of an id; see ``Registry.schema``."""
        with self._lock:
            if schema_id not in self._whole:
                self._whole[schema_id] = self._ask(schema_id)
            return self._whole[schema_id]

    def _ask(self, schema_id: int) -> str:
        found = self._by_id(schema_id)
        others: dict[tuple[str, int], str] = {}
        self._gather(found, others)
        try:
            return with_references(found.text, tuple(others.values()))
        except (KeyError, TypeError, ValueError) as error:
            message = f"The schema with id {schema_id} is no Avro schema: {error}."
            raise DataError(message) from error

    def _gather(self, schema: Registered, others: dict[tuple[str, int], str]) -> None:
        for place in schema.references:
            if place not in others:
                if place not in self._referenced:
                    self._referenced[place] = self._by_version(*place)
                others[place] = self._referenced[place].text
                self._gather(self._referenced[place], others)
