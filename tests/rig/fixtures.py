"""The rig's parts as fixtures: each starts when the first test of a folder asks for
it, and stops behind the last one: idle, a broker still takes its share of a small machine.

A folder's ``conftest.py`` imports those that its tests ask for. A part that cannot be had on this
machine, and only that, skips the tests that need it, with the reason: they must be runnable where
Debian's packages are not. A part that does not start is an error.

The parts are shared by the tests below one ``conftest.py`` (two that import them have a part each),
so a test that kills one starts it again, and takes names of its own for
databases, connectors and topics.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.rig.connect import ConnectWorker
from tests.rig.debian import DebianPackageError
from tests.rig.kafka import KafkaBroker, broker
from tests.rig.mariadb import MariadbServer
from tests.rig.postgres import PostgresServer
from tests.rig.registry import SchemaRegistry

__all__ = ["broker", "connect", "mariadb", "postgres", "registry", "skips_without_packages"]


@contextmanager
def skips_without_packages() -> Iterator[None]:
    """Skip a test whose programs are in Debian packages that cannot be had."""
    try:
        yield
    except DebianPackageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="package")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL cluster."""
    with skips_without_packages(), PostgresServer(tmp_path_factory.mktemp("postgres")) as running:
        yield running


@pytest.fixture(scope="package")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariadbServer]:
    """A MariaDB server."""
    with skips_without_packages(), MariadbServer(tmp_path_factory.mktemp("mariadb")) as running:
        yield running


@pytest.fixture(scope="package")
def connect(
    tmp_path_factory: pytest.TempPathFactory, broker: KafkaBroker
) -> Iterator[ConnectWorker]:
    """A Connect worker of the folder's broker."""
    with ConnectWorker(tmp_path_factory.mktemp("connect"), broker.bootstrap) as running:
        yield running


@pytest.fixture(scope="package")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistry]:
    """A schema registry."""
    with SchemaRegistry(tmp_path_factory.mktemp("registry")) as running:
        yield running
