"""Read the columns of a source database from its catalogue, by JDBC.

Only ``lakeingest init`` asks the database. A run never does: what it writes must follow from the
records alone. Rejected: a Python driver per database. Spark reads JDBC, on a platform as here, with
the driver that stands there already.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeingest.engine.java_errors import java_errors
from lakeingest.errors import (
    AccessError,
    ConfigError,
    LakeingestError,
    UnavailableError,
    UsageError,
)

PASSWORD_VARIABLE = "LAKEINGEST_JDBC_PASSWORD"
"""Environment variable with the password, where the URL has none."""

_POSTGRESQL = """
SELECT n.nspname || '.' || c.relname AS collection, a.attname::text AS name,
  CASE WHEN b.typtype = 'e' THEN 'enum'
    ELSE format_type(b.oid, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END)
  END AS type
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p')
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
WHERE a.attnum > 0 AND NOT a.attisdropped
"""
_MYSQL = """
SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) AS collection, COLUMN_NAME AS name,
  COLUMN_TYPE AS type
FROM information_schema.COLUMNS
"""

_REFUSED = "28"
"""Class of SQLSTATE: invalid authorization specification."""

_MARIADB_DRIVER = "org.mariadb.jdbc.Driver"
_DRIVERS: Mapping[str, tuple[str, str, str]] = {
    "jdbc:postgresql:": ("org.postgresql.Driver", "postgresql", _POSTGRESQL),
    "jdbc:mysql:": (_MARIADB_DRIVER, "mysql", _MYSQL),
    "jdbc:mariadb:": (_MARIADB_DRIVER, "mysql", _MYSQL),
}
"""By the beginning of the URL: driver, family of types, query."""


@dataclass(frozen=True)
class Catalogue:
    """The columns of a database's tables.

    Attributes:
        family: The names of types: ``postgresql`` or ``mysql``.
        tables: Per table, the type of each column as the database writes it.
    """

    family: str
    tables: Mapping[str, Mapping[str, str]]


def read_catalogue(spark: SparkSession, url: str) -> Catalogue:
    """Read the catalogue of a database.

    Args:
        spark: Session with the driver of the database.
        url: JDBC URL, with user; the password may stand in it or in ``PASSWORD_VARIABLE``.

    Raises:
        UsageError: The URL is of another database.
        ConfigError: The session lacks the driver.
        AccessError: The database refuses the login.
        UnavailableError: It does not answer.
    """
    beginning = next((start for start in _DRIVERS if url.startswith(start)), None)
    if beginning is None:
        problem = f"--jdbc reads the catalogues of {', '.join(f'{start}//…' for start in _DRIVERS)}"
        raise UsageError(problem)
    driver, family, query = _DRIVERS[beginning]
    options = {"url": _for_spark(url), "driver": driver, "query": query}
    password = os.environ.get(PASSWORD_VARIABLE)
    if password is not None:
        options["password"] = password
    try:
        # The columns of a database are few.
        rows = spark.read.format("jdbc").options(**options).load().collect()
    except (PySparkException, Py4JJavaError) as error:
        raise _problem(error, driver) from None
    tables: dict[str, dict[str, str]] = {}
    for row in rows:
        tables.setdefault(row["collection"], {})[row["name"]] = row["type"]
    return Catalogue(family, tables)


def _for_spark(url: str) -> str:
    """Return the URL by which Spark knows how MySQL quotes names: it does not know MariaDB's."""
    for beginning in ("jdbc:mariadb:", "jdbc:mysql:"):
        if url.startswith(beginning):
            rest = url.removeprefix(beginning)
            return f"jdbc:mysql:{rest}{'&' if '?' in rest else '?'}permitMysqlScheme"
    return url


def _problem(error: Exception, driver: str) -> LakeingestError:
    """Return what went wrong, without the URL: it may hold a password."""
    causes = list(java_errors(error))
    if any(cause.name == "java.lang.ClassNotFoundException" for cause in causes):
        message = f"The running Spark session has no {driver}. Start it with the driver's jar."
        return ConfigError(message)
    states = [cause.sql_state for cause in causes if cause.sql_state]
    if any(state.startswith(_REFUSED) for state in states):
        message = (
            "The database refuses the login. Check the user in --jdbc, and the password, in "
            f"{PASSWORD_VARIABLE} or in --jdbc."
        )
        return AccessError(message)
    message = (
        "The database's catalogue cannot be read"
        f"{f' (SQLSTATE {states[-1]})' if states else ''}. Check --jdbc: host, port, name of the "
        "database, user; and that this machine can reach it."
    )
    return UnavailableError(message)
