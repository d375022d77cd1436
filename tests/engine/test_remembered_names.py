"""Classes are looked up among the jars once, not at every call."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

from lakeingest.engine.delta.log import has_log
from lakeingest.engine.remembered_names import _remember, remember_names

LOOKUP = "r\n"
"""First line of py4j's command that asks what a name or a class's member is."""


@pytest.fixture
def lookups(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names that were asked for, as they come."""
    session: Any = spark
    client = session._jvm._gateway_client
    send = client.send_command
    commands: list[str] = []

    def noted(command: str, *arguments: Any, **named: Any) -> Any:
        if command.startswith(LOOKUP):
            commands.append(command)
        return send(command, *arguments, **named)

    monkeypatch.setattr(client, "send_command", noted)
    return commands


def test_columns_are_made_without_asking_for_a_class(
    spark: SparkSession, lookups: list[str]
) -> None:
    remember_names(spark)
    lookups.clear()
    F.when(F.col("a") > 1, F.lit("b")).otherwise(F.coalesce(F.col("c"), F.lit("d")))
    assert lookups == []


def test_delta_is_found_without_asking_for_each_of_its_packages(
    spark: SparkSession, lookups: list[str]
) -> None:
    remember_names(spark)
    lookups.clear()
    assert has_log(spark)
    assert lookups == []


def test_a_class_that_is_not_there_is_asked_for_again_as_its_jar_may_come_later(
    spark: SparkSession, lookups: list[str]
) -> None:
    session: Any = spark
    _remember(session._jvm, ["org", "example", "Missing"])
    lookups.clear()
    _ = session._jvm.org.example.Missing
    assert any("org.example.Missing" in command for command in lookups)
