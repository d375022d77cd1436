"""A live source: to the checkers it is what a recorded run is, to ``lakeingest`` a Kafka source."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.recordings.configure import Schema, declared, overridden, spark_schema
from tests.recordings.oracle import Oracle
from tests.rig.chain import Chain
from tests.rig.connectors import Capture, Format
from tests.workloads.session import Session, Trouble
from tests.workloads.shop.schema import SIGNAL
from tests.workloads.source import Source, within


@dataclass(frozen=True)
class LiveRun:
    """One workload on one database, as one connector writes it.

    Attributes:
        name: Name of the workload, also of the known exceptions.
        written: How the connector writes.
        source: The database.
        captured: Bare names of the tables it captures.
        truth: Folder of the oracle.
        mirrored: Whether the lake is fed from a mirror of the connector's topics.
    """

    name: str
    written: Format
    source: Source
    captured: tuple[str, ...]
    truth: Path
    mirrored: bool = False

    @property
    def form(self) -> str:
        """``json``, ``json-schema`` or ``avro``."""
        return self.written.value

    @property
    def prefix(self) -> str:
        """Debezium's ``topic.prefix``."""
        return f"{self.name}.{self.source.family}.{self.form}"

    @property
    def read_prefix(self) -> str:
        """Prefix of the topics that the lake is fed from."""
        return f"mirror.{self.prefix}" if self.mirrored else self.prefix

    @property
    def connector(self) -> str:
        """Name of the connector in Connect."""
        return f"{self.name}-{self.source.family}-{self.form}"

    @property
    def namespace(self) -> str:
        """What stands before the table in a collection's name."""
        return self.source.namespace

    @cached_property
    def oracle(self) -> Oracle:
        """The source's truth; to be asked for when it is complete."""
        return Oracle(self.truth)

    def collection(self, table: str) -> str:
        """Return the name of ``table`` in configuration, ``show`` and ``snapshot().table()``."""
        return f"{self.namespace}.{table}"

    @property
    def declared(self) -> Mapping[str, Schema]:
        """Columns per table as they were before the run, by bare table name."""
        types = Oracle(self.truth).types
        assert types is not None, "the oracle has not begun"
        return {table: spark_schema(types[table]) for table in self.captured}

    @cached_property
    def schemas(self) -> Mapping[str, Schema]:
        """Columns per table at the end of the run; ALTER TABLE adds text in its middle."""
        return {
            table: {name: columns.get(name, "STRING") for name in self.oracle.final(table).header}
            for table, columns in self.declared.items()
        }

    def capture(self, chain: Chain, **more: str) -> None:
        """Create the connector and wait until it runs."""
        signals = self.collection(SIGNAL) if self.name.startswith("shop") else None
        tables = [*self.captured, *([SIGNAL] if signals else [])]
        capture = Capture(
            self.prefix,
            ",".join(self.collection(table).replace(".", r"\.") for table in tables),
            written=self.written,
            registry=chain.registry.url if self.written is Format.AVRO else None,
            signals=signals,
            more=more,
        )
        if self.source.family == "postgresql":
            chain.capture_postgres(self.connector, self.source.database, capture)
        else:
            chain.capture_mariadb(self.connector, self.source.database, capture)

    def wait_until_streaming(self, chain: Chain, seconds: float = 120.0) -> None:
        """Wait until the connector's snapshot is over, and write to the database meanwhile.

        A TRUNCATE or ALTER during the snapshot fails a MariaDB connector (the table is not the one
        of its snapshot any more), and what PostgreSQL's reads then was the state of no commit.

        Raises:
            ConnectError: The connector has failed.
            TimeoutError: No transaction has come.
        """
        deadline = time.monotonic() + seconds
        # Only what is streamed has BEGIN and END.
        while f"{self.prefix}.transaction" not in chain.broker.topics():
            chain.connect.wait_running(self.connector)
            if time.monotonic() > deadline:
                message = f"{self.connector} streams nothing after {seconds} s"
                raise TimeoutError(message)
            if "witness" in self.captured:
                # pgbench holds nothing: it may be done before the connector streams.
                within(self.source, _touch)
            time.sleep(0.2)

    def configuration(self, chain: Chain, target: Path, **overrides: str) -> dict[str, str]:
        """Return the properties of a pipeline that reads this run into ``target``.

        Args:
            chain: Where it is.
            target: Folder of the lake; need not exist.
            overrides: More properties; underscores stand for dots, ``lakeingest.`` is put before.
        """
        topics = ",".join(f"{self.read_prefix}.{self.collection(table)}" for table in self.captured)
        properties = {
            "lakeingest.pipeline.name": self.connector,
            "lakeingest.source.kind": "kafka",
            "bootstrap.servers": chain.broker.bootstrap,
            "lakeingest.source.format": "avro" if self.written is Format.AVRO else "json",
            "lakeingest.source.connector": self.source.family,
            "lakeingest.source.topic.prefix": self.read_prefix,
            "lakeingest.source.topics": topics,
            "lakeingest.target.path": str(target),
            # ALTER TABLE adds a column that nobody declares.
            "lakeingest.types.guess": "accept",
        }
        if self.written is Format.AVRO:
            properties["schema.registry.url"] = chain.registry.url
        # With schemas in the records the declared ones would hide a wrong decision of the decoder.
        if self.written is Format.JSON:
            properties |= declared(self.declared, self.collection)
        return properties | overridden(overrides)


def _touch(session: Session) -> None:
    """Write without changing anything, unless another session holds the row: then it writes."""
    try:
        session.execute("UPDATE witness SET n = n")
    except Exception as error:
        if session.judge(error) is not Trouble.CONFLICT:
            raise
