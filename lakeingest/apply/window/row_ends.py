"""Read how far rows alone show that transactions are over; refuse what they cannot show.

See ``plan/row_boundaries.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from pyspark.sql import DataFrame

from lakeingest.apply.window.end_markers import EndMarker
from lakeingest.apply.window.window import Bounds
from lakeingest.envelope.headers import RUN_HEADER
from lakeingest.errors import DataError
from lakeingest.plan.row_boundaries import row_evidence
from lakeingest.position.epochs import IN_FILE_ORDER

_REMEDY = (
    "Set provide.transaction.metadata=true in the connector and load the lake anew with "
    "lakeingest.transaction.mode=metadata (another lakeingest.target.path). The lake stands at its "
    "last publication."
)


def read_settled(changes: DataFrame, bounds: Bounds) -> str | None:
    """Return the commit below which no row is under way; None: the source gets no more records.

    Args:
        changes: The window's changes.
        bounds: How long a record may be under way.

    Raises:
        DataError: A streamed row does not show its transaction, or, in a source that goes on, who
            sent it.
    """
    evidence = row_evidence(changes, bounds.delay_seconds).first()
    if evidence is not None and evidence["unnamed"]:
        message = (
            f"{evidence['unnamed']} rows do not show which transaction they are of "
            "(lakeingest.transaction.mode=boundary): their source block has no transaction id "
            "(MySQL and MariaDB: no GTID, gtid_mode=OFF; flattened rows of PostgreSQL: add "
            "source.txId to add.fields). " + _REMEDY
        )
        raise DataError(message)
    if evidence is not None and evidence["anonymous"] and not bounds.final:
        message = (
            f"{evidence['anonymous']} rows do not show which run of the connector sent them "
            f"(header {RUN_HEADER}), so rows that a killed connector has yet to send again cannot "
            "be told from rows that were sent (lakeingest.transaction.mode=boundary). Use Debezium "
            "3.3 or later with extended.headers.enabled=true, and keep its headers. The lake "
            "stands at its last publication."
        )
        raise DataError(message)
    settled = evidence["settled"] if evidence is not None else None
    return None if bounds.final else settled or ""


def refuse_other_servers(domains: Collection[str]) -> None:
    """Stop where rows are of servers, or of tags, whose transactions have no order by rows.

    Args:
        domains: The domains of a window's transactions and of the lake's.

    Raises:
        DataError: There are several, or transactions have tags.
    """
    if len(domains) > 1 or any(domain.endswith(IN_FILE_ORDER) for domain in domains):
        shown = ", ".join(sorted(domains)[:3])
        message = (
            f"The transactions are of several servers, or have tags ({shown}): only the "
            "transaction topic shows their order, not the rows "
            "(lakeingest.transaction.mode=boundary). " + _REMEDY
        )
        raise DataError(message)


def refuse_shared_places(ends: Sequence[EndMarker]) -> None:
    """Stop where two transactions have one place in the log: rows cannot tell which is over.

    Raises:
        DataError: There are two such transactions.
    """
    for one, other in pairwise(ends):
        if one.position == other.position:
            message = (
                f"Transactions {one.transaction} and {other.transaction} have one place in the "
                "source's log (lakeingest.transaction.mode=boundary), so nothing tells them apart. "
                + _REMEDY
            )
            raise DataError(message)
