"""From an empty folder and a live database to right tables: init, validate, run, none by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.cli.main import execute
from lakeingest.errors import AccessError, UnavailableError, UsageError
from lakeingest.source.catalogue import read_catalogue
from tests.rig.chain import Chain
from tests.rig.connectors import Capture, Format
from tests.rig.mariadb import PASSWORD, USER

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

SECONDS = 120.0
MOMENT = datetime.fromisoformat("2026-03-04T05:06:07.123456")
MILLIS = MOMENT.replace(microsecond=123000)

Run = Callable[[str], Any]


@dataclass(frozen=True)
class Database:
    """A database as a test needs it.

    Attributes:
        create: Its tables.
        before: Statements that run before the connector takes its snapshot.
        after: Statements that run behind it, in one transaction.
        rows: What the table ``things`` has then, in the lake's values, by column.
        namespace: What stands before a table's name; empty: the database's name.
    """

    create: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    rows: tuple[Mapping[str, object], ...]
    namespace: str


THINGS = {
    "amount": Decimal("-12.50"),
    "day": date(2026, 3, 4),
    "stamp": MOMENT,
    "milli": MILLIS,
    "zoned": MOMENT,
    "hour": "05:06:07.123456",
    "flag": True,
    "note": "it's",
}
EMPTY = dict.fromkeys(THINGS)

POSTGRESQL = Database(
    (
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE DOMAIN cents AS numeric(12,2)",
        """CREATE TABLE things (id bigint PRIMARY KEY, amount cents, day date, stamp timestamp,
           milli timestamp(3), zoned timestamptz, hour time, flag boolean, note text,
           loose numeric, doc jsonb, octets bytea, parts int[], mood mood)""",
        "CREATE TABLE notes (id int PRIMARY KEY, words varchar(20), done boolean)",
    ),
    (
        "INSERT INTO things (id, loose) VALUES (1, 1.5), (2, 7)",
        "INSERT INTO notes VALUES (1, 'first', true), (2, 'second', false)",
    ),
    (
        """INSERT INTO things VALUES (3, -12.50, '2026-03-04', '2026-03-04 05:06:07.123456',
           '2026-03-04 05:06:07.123', '2026-03-04 05:06:07.123456Z', '05:06:07.123456', true,
           'it''s', 0.125, '{"a": 1}', '\\x00ff', '{1,2}', 'glad')""",
        "DELETE FROM things WHERE id = 2",
        "UPDATE notes SET words = 'changed', done = false WHERE id = 1",
        "DELETE FROM notes WHERE id = 2",
    ),
    (
        {"id": 1, **EMPTY, "loose": "1.5", "doc": None, "octets": None, "parts": None}
        | {"mood": None},
        {"id": 3, **THINGS, "loose": "0.125", "doc": '{"a": 1}', "octets": b"\x00\xff"}
        | {"parts": [1, 2], "mood": "glad"},
    ),
    "public",
)

MARIADB = Database(
    (
        """CREATE TABLE things (id bigint PRIMARY KEY, amount decimal(12,2), day date,
           stamp datetime(6), milli datetime(3), zoned timestamp(6) NULL, hour time(6),
           flag bit(1), note text, large bigint unsigned, small tinyint(1), octets varbinary(8),
           mood enum('sad','glad'))""",
        "CREATE TABLE notes (id int PRIMARY KEY, words varchar(20), done bit(1))",
    ),
    (
        "INSERT INTO things (id, large) VALUES (1, 18446744073709551615), (2, 7)",
        "INSERT INTO notes VALUES (1, 'first', 1), (2, 'second', 0)",
    ),
    (
        "SET time_zone = '+00:00'",
        """INSERT INTO things VALUES (3, -12.50, '2026-03-04', '2026-03-04 05:06:07.123456',
           '2026-03-04 05:06:07.123', '2026-03-04 05:06:07.123456', '05:06:07.123456', 1,
           'it''s', 1, 1, x'00ff', 'glad')""",
        "DELETE FROM things WHERE id = 2",
        "UPDATE notes SET words = 'changed', done = 0 WHERE id = 1",
        "DELETE FROM notes WHERE id = 2",
    ),
    (
        {"id": 1, **EMPTY, "large": Decimal(18446744073709551615), "small": None}
        | {"octets": None, "mood": None},
        {"id": 3, **THINGS, "large": Decimal(1), "small": 1, "octets": b"\x00\xff", "mood": "glad"},
    ),
    "",
)
NOTES = [{"id": 1, "words": "changed", "done": False}]
DATABASES = {"postgresql": POSTGRESQL, "mariadb": MARIADB}


@contextmanager
def session(chain: Chain, family: str, name: str) -> Iterator[Run]:
    """Give what runs a statement; all of one session are one transaction."""
    if family == "postgresql":
        with chain.postgres.connect(name) as connection:
            yield connection.execute
        return
    with closing(chain.mariadb.connect(name)) as own, own.cursor() as cursor:
        yield cursor.execute
        own.commit()


def jdbc_url(chain: Chain, family: str, name: str) -> str:
    if family == "postgresql":
        return f"jdbc:postgresql://127.0.0.1:{chain.postgres.port}/{name}?user=postgres"
    return f"jdbc:mariadb://127.0.0.1:{chain.mariadb.port}/{name}?user={USER}"


def as_in_the_lake(value: object) -> object:
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    return value


def generated(name: str, *values: object) -> ParameterSet:
    """Return a further form, in generated code; CI has all types in it by ``tests/decode``."""
    return pytest.param(*values, id=name, marks=[pytest.mark.soak, pytest.mark.generated])


@pytest.mark.parametrize(
    ("family", "written", "jdbc", "tables"),
    [
        pytest.param("postgresql", Format.JSON, True, ("things", "notes"), id="jdbc"),
        generated("mariadb", "mariadb", Format.JSON, True, ("things", "notes")),
        generated("avro", "postgresql", Format.AVRO, False, ("things", "notes")),
        generated("no-jdbc", "postgresql", Format.JSON, False, ("notes",)),
        generated("schemas", "postgresql", Format.JSON_SCHEMA, False, ("things", "notes")),
    ],
)
def test_a_file_that_wrote_itself_makes_the_lake_equal_the_database(
    spark: SparkSession,
    chain: Chain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    family: str,
    written: Format,
    jdbc: bool,
    tables: tuple[str, ...],
) -> None:
    database = DATABASES[family]
    name = prefix = f"mile_{family}_{written.name.lower()}{'_jdbc' if jdbc else ''}"
    server = chain.postgres if family == "postgresql" else chain.mariadb
    server.create_database(name)
    with session(chain, family, name) as execute_sql:
        for statement in (*database.create, *database.before):
            execute_sql(statement)
    namespace = database.namespace or name
    capture = Capture(
        prefix,
        ",".join(f"{namespace}.{table}" for table in tables),
        written=written,
        registry=chain.registry.url if written is Format.AVRO else None,
    )
    make = chain.capture_postgres if family == "postgresql" else chain.capture_mariadb
    make(prefix, name, capture)
    deadline = time.monotonic() + SECONDS
    while not {f"{prefix}.{namespace}.{table}" for table in tables} <= chain.broker.topics():
        assert time.monotonic() < deadline
        time.sleep(0.5)
    # What comes behind the snapshot is streamed, and makes the transaction topic.
    while f"{prefix}.transaction" not in chain.broker.topics():
        with session(chain, family, name) as execute_sql:
            execute_sql(f"UPDATE notes SET words = '{time.monotonic()}' WHERE id = 1")
        assert time.monotonic() < deadline
        time.sleep(0.5)
    with session(chain, family, name) as execute_sql:
        for statement in database.after:
            execute_sql(statement)

    file, lake = str(tmp_path / "mile.properties"), str(tmp_path / "lake")
    arguments = ["--prefix", prefix, "--target", lake, "--broker", chain.broker.bootstrap]
    if jdbc:
        monkeypatch.setenv("LAKEINGEST_JDBC_PASSWORD", PASSWORD)
        arguments += ["--jdbc", jdbc_url(chain, family, name)]
    elif written is Format.JSON:
        arguments += ["--set", "lakeingest.types.guess=accept"]
    if written is Format.AVRO:
        arguments += ["--registry", chain.registry.url]
    deadline = time.monotonic() + SECONDS
    assert execute(["init", file, *arguments]) == 0
    assert execute(["validate", file]) == 0, capsys.readouterr()
    expected: dict[str, object] = {"notes": NOTES}
    if "things" in tables:
        expected["things"] = list(database.rows)
    while True:
        assert execute(["run", file]) == 0, capsys.readouterr()
        shown = rows_of(spark, lake, namespace, tables)
        if shown == expected or time.monotonic() > deadline:
            break
    assert shown == expected, Path(file).read_text("utf-8")
    chain.connect.delete_connector(prefix)


def rows_of(
    spark: SparkSession, lake: str, namespace: str, tables: tuple[str, ...]
) -> dict[str, object]:
    """Return the rows of the newest publication, without the columns that lakeingest adds."""
    snapshot = lakeingest.open(spark, lake).snapshot()
    shown: dict[str, object] = {}
    for table in tables:
        rows = snapshot.table(f"{namespace}.{table}").orderBy("id").collect()
        shown[table] = [
            {
                name: as_in_the_lake(value)
                for name, value in row.asDict().items()
                if not name.startswith("_")
            }
            for row in rows
        ]
    return shown


def test_a_database_that_refuses_or_does_not_answer_is_told_apart_and_no_password_is_shown(
    spark: SparkSession, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEINGEST_JDBC_PASSWORD", "swordfish")
    refused = jdbc_url(chain, "mariadb", "mysql")
    with pytest.raises(AccessError, match="refuses the login") as access:
        read_catalogue(spark, refused)
    away = "jdbc:postgresql://127.0.0.1:9/x?user=a&password=swordfish"
    with pytest.raises(UnavailableError, match="Check --jdbc: host, port") as unavailable:
        read_catalogue(spark, away)
    missing = jdbc_url(chain, "postgresql", "nowhere")
    with pytest.raises(UnavailableError, match="SQLSTATE 3D000"):
        read_catalogue(spark, missing)
    assert "swordfish" not in f"{access.value}{unavailable.value}"
    with pytest.raises(UsageError, match="jdbc:postgresql"):
        read_catalogue(spark, "jdbc:oracle:thin:@db")
