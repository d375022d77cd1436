"""Define the supported connectors, and the refused ones that a user may well name.

An unknown name is a misspelling. A refused name gets an error with the reason, because the user
must know whether to wait, to change the connector or to look for another tool.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator

from lakeingest.connectors import CONNECTORS

REFUSED = {
    "mongodb": "out of scope: its events hold documents, not rows of a table with columns. Send "
    "it through a tool for documents",
}
"""Refused connectors that a user may well name, with the reason."""


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
"""The keys of ``connectors.CONNECTORS``; a type checker needs them spelt out."""


def event_column_problems(connector: str, snapshot_again: str) -> list[str]:
    """Return why RFC-39's columns are impossible: none are defined, or no event fills them."""
    problems = []
    if not CONNECTORS[connector].streamer_source:
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
