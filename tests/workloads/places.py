"""New databases for tests: each has one of its own on the server that the session shares."""

from __future__ import annotations

import itertools
from typing import Protocol

import pytest

from tests.workloads.source import Family, Server, Source

FAMILIES = pytest.mark.parametrize("family", ["postgresql", "mariadb"])

_NUMBERS = itertools.count(1)


class LivingServer(Server, Protocol):
    """A server that makes databases, and can be killed and started again."""

    def create_database(self, database: str) -> None:
        """Create an empty database."""

    def kill(self) -> None:
        """End it as ``kill -9`` does."""

    def start(self) -> None:
        """Start it again with its data."""


def server_of(family: Family, request: pytest.FixtureRequest) -> LivingServer:
    """Return the session's server of a family; it starts with the first test that asks."""
    name = "postgres" if family == "postgresql" else "mariadb"
    server: LivingServer = request.getfixturevalue(name)
    return server


def new_source(server: LivingServer, family: Family, name: str) -> Source:
    """Return an empty database that no other test has."""
    database = f"{name}_{next(_NUMBERS)}"
    server.create_database(database)
    return Source(server, database, family)
