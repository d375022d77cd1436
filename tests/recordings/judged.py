"""What the checkers need to know of a run, recorded or live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tests.recordings.oracle import Oracle


class JudgedRun(Protocol):
    """A run of a source, in one format, with the source's truth."""

    @property
    def name(self) -> str:
        """Name of the run, for messages and for the known exceptions."""

    @property
    def form(self) -> str:
        """``json``, ``json-schema`` or ``avro``."""

    @property
    def oracle(self) -> Oracle:
        """The source's truth."""

    @property
    def namespace(self) -> str:
        """What stands before the table in a collection's name."""

    @property
    def schemas(self) -> Mapping[str, Mapping[str, str]]:
        """Spark DDL type per column, per bare table name."""

    def collection(self, table: str) -> str:
        """Return the name of ``table`` in configuration, ``show`` and ``snapshot().table()``."""
