"""From a commit in a database to a record in the broker, over every part of the rig."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from tests.rig.arrived import arrived
from tests.rig.connect import ConnectError, ConnectWorker
from tests.rig.connectors import Capture, Format
from tests.rig.kafka import KafkaBroker
from tests.rig.mariadb import MariadbServer
from tests.rig.postgres import PostgresServer
from tests.rig.registry import SchemaRegistry
from tests.rig.replay import Record

pytestmark = [pytest.mark.slow, pytest.mark.kafka]


def orders(server: PostgresServer, database: str) -> None:
    server.create_database(database)
    with server.connect(database) as connection:
        connection.execute("CREATE TABLE orders (id INT PRIMARY KEY, note TEXT)")


def arrive(broker: KafkaBroker, topic: str, wanted: set[int]) -> None:
    """Wait for rows by their ids; after a kill some arrive again."""

    def all_there(records: list[Record]) -> bool:
        found = {json.loads(record.value)["after"]["id"] for record in records if record.value}
        return found >= wanted

    arrived(broker.bootstrap, topic, all_there)


def ended(records: list[Record]) -> int:
    """How many transactions ended, each counted once."""
    boundaries = [json.loads(record.value or b"") for record in records]
    return len({entry["id"] for entry in boundaries if entry["status"] == "END"})


def insert(server: PostgresServer, database: str, number: int) -> None:
    with server.connect(database) as connection:
        connection.execute("INSERT INTO orders VALUES (%s, %s)", (number, f"n{number}"))


def test_commit_in_postgres_arrives_and_whoever_is_killed_goes_on_by_itself(
    postgres: PostgresServer, broker: KafkaBroker, connect: ConnectWorker
) -> None:
    orders(postgres, "killing")
    insert(postgres, "killing", 1)
    connect.create_connector("killing", Capture("killing").postgres(postgres, "killing"))
    connect.wait_running("killing")
    arrived(broker.bootstrap, "killing.public.orders", 1)
    for number, part in enumerate((postgres, broker, connect), start=2):
        part.kill()
        part.start()
        insert(postgres, "killing", number)
        arrive(broker, "killing.public.orders", set(range(1, number + 1)))
    arrived(broker.bootstrap, "killing.transaction", lambda records: ended(records) == 3)
    connect.delete_connector("killing")


def test_commit_in_mariadb_arrives_and_a_killed_server_s_connector_goes_on_by_itself(
    mariadb: MariadbServer, broker: KafkaBroker, connect: ConnectWorker
) -> None:
    mariadb.create_database("shop")
    with closing(mariadb.connect("shop", autocommit=True)) as connection:
        connection.cursor().execute("CREATE TABLE orders (id INT PRIMARY KEY, note TEXT)")
        connection.cursor().execute("INSERT INTO orders VALUES (1, 'snapshot')")
    config = Capture("mshop", written=Format.JSON_SCHEMA).mariadb(mariadb, "shop", broker.bootstrap)
    connect.create_connector("mshop", config)
    connect.wait_running("mshop")
    arrived(broker.bootstrap, "mshop.shop.orders", 1)
    for number in (2, 3):
        with closing(mariadb.connect("shop", autocommit=True)) as connection:
            connection.cursor().execute("INSERT INTO orders VALUES (%s, 'more')", (number,))
        arrived(broker.bootstrap, "mshop.shop.orders", number)
        if number == 2:
            mariadb.kill()
            mariadb.start()
    records = arrived(broker.bootstrap, "mshop.shop.orders", 3)
    values = [json.loads(record.value or b"") for record in records]
    assert {value["payload"]["after"]["id"] for value in values} == {1, 2, 3}
    assert values[0]["schema"]["type"] == "struct"
    connect.delete_connector("mshop")


def test_record_in_avro_names_a_schema_that_a_killed_registry_still_has(
    postgres: PostgresServer,
    broker: KafkaBroker,
    connect: ConnectWorker,
    registry: SchemaRegistry,
) -> None:
    orders(postgres, "avro")
    insert(postgres, "avro", 1)
    capture = Capture("avro-1", written=Format.AVRO, registry=registry.url)
    connect.create_connector("avro", capture.postgres(postgres, "avro"))
    connect.wait_running("avro")
    (record,) = arrived(broker.bootstrap, "avro-1.public.orders", 1)
    assert record.value is not None
    assert record.value[:1] == b"\0"
    number = int.from_bytes(record.value[1:5], "big")
    schema = registry.schema(number)
    assert schema["name"] == "Envelope"
    registry.kill()
    registry.start()
    assert registry.schema(number) == schema
    connect.delete_connector("avro")


def test_task_that_fails_is_told_with_its_reason(
    postgres: PostgresServer, connect: ConnectWorker
) -> None:
    config = Capture("none").postgres(postgres, "no_such_database")
    with pytest.raises(ConnectError, match="no_such_database"):
        connect.create_connector("none", config)
