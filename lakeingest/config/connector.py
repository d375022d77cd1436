"""The connectors that can be named, and those that a user may well name but that are refused.

A name that is merely unknown is a misspelling; one that is refused says why, because a user who
meets it must know whether to wait, to change the connector or to look for another tool.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator

REFUSED = {
    "mongodb": "out of scope: its events hold documents, not rows of a table with columns. Send "
    "it through a tool for documents",
}
"""Connectors that a user may well name, and why they are refused."""


def _not_refused(connector: object) -> object:
    if isinstance(connector, str) and connector in REFUSED:
        message = f"{connector} is {REFUSED[connector]}"
        raise ValueError(message)
    return connector


Connector = Annotated[
    Literal[
        "postgresql",
        "mysql",
        "mariadb",
        "sqlserver",
        "oracle",
        "db2",
        "yugabytedb",
        "yugabytedb-grpc",
    ],
    BeforeValidator(_not_refused),
]
EVENT_CONNECTORS = ("postgresql", "mysql", "mariadb", "yugabytedb")
"""Those for whose tables RFC-39 has columns."""


def parts_of_a_collection(connector: str) -> int:
    """Return of how many parts, with dots between, the name of a table is."""
    return 3 if connector == "sqlserver" else 2


def event_column_problems(connector: str, snapshot_again: str) -> list[str]:
    """Tell why RFC-39's columns cannot be: there are none, or nothing fills them."""
    problems = []
    if connector not in EVENT_CONNECTORS:
        problems.append(
            "lakeingest.metadata.columns=hudi: Hudi Streamer has no tables of a "
            f"{connector} connector whose columns could be kept; set it to own, or remove it"
        )
    if snapshot_again != "stop":
        problems.append(
            "lakeingest.source.snapshot.again=replace: rows that a new snapshot lacks are deleted "
            "by no event, which lakeingest.metadata.columns=hudi could tell of; set one of the two "
            "back to its default"
        )
    return problems
