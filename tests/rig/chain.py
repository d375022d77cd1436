"""A whole chain from a database to a broker: the parts that are asked for, started and stopped.

Parts that do not wait for one another start at once: databases, registry and broker together, then
Connect. What is not there yet is fetched first, one after the other, for resolvers share caches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from tests.rig.connect import ConnectWorker
from tests.rig.connectors import Capture, Format
from tests.rig.kafka import KafkaBroker
from tests.rig.mariadb import MariadbServer
from tests.rig.postgres import PostgresServer
from tests.rig.process import Server
from tests.rig.registry import SchemaRegistry

__all__ = ["Chain"]


class Chain:
    """A broker, Connect and what else is asked for; a context manager that starts and stops them.

    Args:
        folder: Where the parts keep their data.
        postgres: Whether there is a PostgreSQL cluster.
        mariadb: Whether there is a MariaDB server.
        registry: Whether there is a schema registry, which Avro needs.
        exactly_once: Whether Connect may write in transactions.

    Attributes:
        seconds: How long each step took, by its name.
    """

    def __init__(
        self,
        folder: Path,
        *,
        postgres: bool = False,
        mariadb: bool = False,
        registry: bool = False,
        exactly_once: bool = False,
    ) -> None:
        self.seconds: dict[str, float] = {}
        self.broker = KafkaBroker(folder / "kafka")
        self._folder = folder
        self._exactly_once = exactly_once
        self._postgres = PostgresServer(folder / "postgres") if postgres else None
        self._mariadb = MariadbServer(folder / "mariadb") if mariadb else None
        self._registry = SchemaRegistry(folder / "registry") if registry else None
        self._connect: ConnectWorker | None = None
        self._running = ExitStack()

    @property
    def postgres(self) -> PostgresServer:
        """The PostgreSQL cluster."""
        assert self._postgres is not None, "no PostgreSQL was asked for"
        return self._postgres

    @property
    def mariadb(self) -> MariadbServer:
        """The MariaDB server."""
        assert self._mariadb is not None, "no MariaDB was asked for"
        return self._mariadb

    @property
    def registry(self) -> SchemaRegistry:
        """The schema registry."""
        assert self._registry is not None, "no registry was asked for"
        return self._registry

    @property
    def connect(self) -> ConnectWorker:
        """The Connect worker."""
        assert self._connect is not None, "the chain was never started"
        return self._connect

    def __enter__(self) -> Chain:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start all parts.

        Raises:
            DebianPackageError: A database cannot be had on this machine; nothing runs.
            RuntimeError: A part did not come up; nothing runs.
        """
        first = [self._postgres, self._mariadb, self._registry, self.broker]
        with ExitStack() as running:
            self._together([part for part in first if part is not None], running)
            self._connect = ConnectWorker(
                self._folder / "connect",
                self.broker.bootstrap,
                avro=self._registry is not None,
                exactly_once=self._exactly_once,
            )
            self._together([self._connect], running)
            self._running = running.pop_all()

    def stop(self) -> None:
        """Stop all parts, Connect first. Safe to call twice."""
        self._timed("stop", self._running.close)

    def capture_postgres(self, name: str, database: str, capture: Capture) -> None:
        """Create a connector of a PostgreSQL database and wait until it runs."""
        self._capture(name, capture.postgres(self.postgres, database))

    def capture_mariadb(self, name: str, database: str, capture: Capture) -> None:
        """Create a connector of a MariaDB database and wait until it runs."""
        self._capture(name, capture.mariadb(self.mariadb, database, self.broker.bootstrap))

    def avro(self, prefix: str, tables: str | None = None) -> Capture:
        """Return a capture that writes Avro with this chain's registry."""
        return Capture(prefix, tables, written=Format.AVRO, registry=self.registry.url)

    def _capture(self, name: str, config: dict[str, str]) -> None:
        def create() -> None:
            self.connect.create_connector(name, config)
            self.connect.wait_running(name)

        self._timed(f"connector {name}", create)

    def _together(self, parts: Sequence[Server], running: ExitStack) -> None:
        for part in parts:
            self._timed(f"fetch {type(part).__name__}", part.fetch)
            running.callback(part.stop)
        with ThreadPoolExecutor(len(parts)) as pool:
            # All are waited for before the first failure is raised, and then all are stopped.
            starts = [(part, pool.submit(part.start)) for part in parts]
        for part, start in starts:
            start.result()
            self.seconds[f"start {type(part).__name__}"] = part.seconds_to_ready

    def _timed(self, step: str, work: Callable[[], None]) -> None:
        began = time.monotonic()
        work()
        self.seconds[step] = time.monotonic() - began
