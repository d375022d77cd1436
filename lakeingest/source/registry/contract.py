"""Define the contract of a schema registry: the writer's schema of an Avro record, by its id.

Each Avro record carries the id of its schema. The driver queries the registry once per id and run:
a schema never changes under its id. The schemas enter the plan as data, so that no executor needs
access to the registry. Rejected: a look-up per record in Python or in a JVM deserialiser. It would
need credentials on every executor and could not stop the run before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from lakeingest.errors import DataError
from lakeingest.source.registry.references import with_references


class Registry(Protocol):
    """The store of the Avro records' schemas."""

    def schema(self, schema_id: int) -> str:
        """Return the Avro schema of an id as JSON text without references to other schemas.

        Queries the registry once per id. Several threads may call this method.

        Raises:
            DataError: The id does not exist, or its schema is no Avro schema.
            AccessError: The registry refuses the login or the request.
            UnavailableError: The registry does not answer, or something else answers.
        """

    def check(self) -> None:
        """Check with a cheap request that the registry is usable; same errors as ``schema``."""

    def close(self) -> None:
        """Release clients. Safe to call twice."""


@dataclass(frozen=True)
class Registered:
    """A schema as the registry stores it.

    Attributes:
        text: The schema as JSON.
        references: Subject and version of each schema that this one refers to.
    """

    text: str
    references: tuple[tuple[str, int], ...] = ()


class WholeSchemas:
    """A cache, by id, of schemas with their references written into them.

    A thread holds one lock during a query of the registry. Threads that need the same schema then
    wait for one response. For threads that need other schemas the wait costs little: a registry in
    trouble would not answer them either. A failure is not cached; the next run of a long-lived
    process queries again.

    Args:
        by_id: Function that queries a schema by its id.
        by_version: Function that queries a schema by subject and version.
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
        schema = self._by_id(schema_id)
        texts_by_version: dict[tuple[str, int], str] = {}
        self._gather(schema, texts_by_version)
        try:
            return with_references(schema.text, tuple(texts_by_version.values()))
        except (KeyError, TypeError, ValueError) as error:
            message = f"The schema with id {schema_id} is no Avro schema: {error}."
            raise DataError(message) from error

    def _gather(self, schema: Registered, texts_by_version: dict[tuple[str, int], str]) -> None:
        for version in schema.references:
            if version not in texts_by_version:
                if version not in self._referenced:
                    self._referenced[version] = self._by_version(*version)
                texts_by_version[version] = self._referenced[version].text
                self._gather(self._referenced[version], texts_by_version)
