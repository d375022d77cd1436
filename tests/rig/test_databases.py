from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.rig import debian
from tests.rig.debian import DebianPackageError, programs
from tests.rig.fixtures import skips_without_packages
from tests.rig.mariadb import MariadbServer
from tests.rig.postgres import PostgresServer

pytestmark = pytest.mark.slow


def test_postgres_that_is_killed_comes_back_on_its_port_with_every_commit(
    postgres: PostgresServer,
) -> None:
    postgres.create_database("killed")
    with postgres.connect("killed") as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS id")
    open_one = postgres.connect("killed")
    open_one.execute("INSERT INTO kept VALUES (2)")
    before, dsn = postgres.pid, postgres.dsn("killed")
    postgres.kill()
    with pytest.raises(psycopg.OperationalError):
        open_one.execute("SELECT 1")
    open_one.close()
    postgres.start()
    assert postgres.pid != before
    assert postgres.dsn("killed") == dsn
    with postgres.connect("killed") as connection:
        assert connection.execute("SELECT id FROM kept").fetchall() == [(1,)]
        assert connection.execute("SHOW wal_level").fetchall() == [("logical",)]


def test_postgres_that_is_frozen_answers_nobody_until_it_is_thawed(
    postgres: PostgresServer,
) -> None:
    with postgres.connect() as connection:
        postgres.freeze()
        try:
            with pytest.raises(psycopg.OperationalError):
                postgres.connect(connect_timeout=2)
        finally:
            postgres.thaw()
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_pgbench_runs_against_the_cluster(postgres: PostgresServer) -> None:
    postgres.create_database("bench")
    filling = postgres.pgbench("bench", "-i", "-q")
    said = filling.communicate()[0]
    assert filling.returncode == 0, said


def test_mariadb_that_is_killed_comes_back_on_its_port_with_every_commit(
    mariadb: MariadbServer,
) -> None:
    mariadb.create_database("killed")
    with closing(mariadb.connect("killed")) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kept (id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO kept VALUES (1)")
        connection.commit()
        cursor.execute("INSERT INTO kept VALUES (2)")
        before, port = mariadb.pid, mariadb.port
        mariadb.kill()
    mariadb.start()
    assert mariadb.pid != before
    assert mariadb.port == port
    with closing(mariadb.connect("killed")) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM kept")
        assert cursor.fetchall() == ((1,),)
    assert "kept" in mariadb.read_binlog("--base64-output=decode-rows", "-v")


def test_program_that_no_package_can_bring_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "CACHE", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DebianPackageError, match="no-such-program: not installed.*no-such-package"):
        programs(("no-such-package",), ("no-such-program",))


def test_package_that_cannot_be_had_is_a_skipped_test_and_nothing_else_is() -> None:
    missing = DebianPackageError("libfoo")
    with pytest.raises(pytest.skip.Exception, match="libfoo"), skips_without_packages():
        raise missing
    with pytest.raises(RuntimeError), skips_without_packages():
        raise RuntimeError
