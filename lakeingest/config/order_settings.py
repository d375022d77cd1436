"""Define the settings of the events' order: by whole transactions, or each event on its own.

Whole transactions are the purpose of this project, so they are the default. Some sources have no
transaction metadata (YugabyteDB's gRPC connector counts no rows; another tool wrote the topics).
lakeingest then still applies the changes of each row in the right order. This module refuses,
before anything runs, the settings with which that would fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from lakeingest.config.fields import ConfigModel, Text
from lakeingest.connectors import CONNECTORS


class OrderSettings(ConfigModel):
    """The part of a source's configuration that says what orders its events."""

    transaction_mode: Literal["metadata", "none"] = Field(
        default="metadata",
        description="What belongs together: `metadata`: Debezium's transaction topic says it, and "
        "a publication is a commit of the source; `none`: each event is on its own, rows are right "
        "one by one, and a publication may hold half of a transaction. Default: `metadata`, "
        "because anything else is no state that the source ever had. Fixed once a lake is begun.",
    )
    ordering_columns: tuple[Text, ...] = Field(
        default=(),
        description="What orders the changes of a row, separated by commas, most significant "
        "first: columns that every row has (whole numbers that are not negative, or timestamps), "
        "or fields of the source block (`source.ts_ms`); of equal ones the later record counts. "
        "Deletes need the whole row before them. Only with `lakeingest.transaction.mode=none`. "
        "Default: the source's log.",
    )


def order_problems(
    settings: OrderSettings, connector: str, table_columns: Sequence[str], *, needs_whole: bool
) -> list[str]:
    """Return a message for each setting that gives no order, or needs missing transactions.

    Args:
        settings: The source's settings.
        connector: The connector; it decides how positions compare.
        table_columns: Ordering columns that single tables set.
        needs_whole: Whether another setting needs whole transactions.
    """
    problems = []
    facts = CONNECTORS[connector]
    columns = [*settings.ordering_columns, *table_columns]
    if settings.transaction_mode == "metadata":
        if not facts.counts_rows:
            problems.append(
                "BEGIN and END of YugabyteDB's gRPC connector are per tablet and name no tables, "
                "so nothing tells when a transaction is whole: set "
                "lakeingest.transaction.mode=none, or use the logical replication connector "
                "(yugabytedb)"
            )
        if columns:
            problems.append(
                "ordering columns need lakeingest.transaction.mode=none: transactions are in the "
                "order of their commits. Remove the columns, or give up whole transactions"
            )
    else:
        if facts.epochs_by_ends and not settings.ordering_columns:
            problems.append(
                "lakeingest.transaction.mode=none: without the transaction topic nothing tells "
                f"that another {connector} server has taken over, whose positions start anew; set "
                "lakeingest.source.ordering.columns (source.ts_ms at least)"
            )
        if facts.partial_rows and not all(_in_source_block(name) for name in columns):
            problems.append(
                "an update of YugabyteDB's need not name a column: only fields of the source block "
                "(source.…) can order its rows; name one of these"
            )
        if needs_whole:
            problems.append(
                "lakeingest.table.*.adopt, lakeingest.metadata.columns=hudi and "
                "lakeingest.commit.max.transactions need lakeingest.transaction.mode=metadata; set "
                "it, or remove them"
            )
    return problems


def _in_source_block(name: str) -> bool:
    return name.startswith("source.")
