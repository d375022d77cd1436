"""The ENDs of a window: offset, count and position of each, never what they counted row by row."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.errors import DataError
from lakeingest.plan.spec import PipelineSpec
from lakeingest.transaction.cut import End


@dataclass(frozen=True)
class SeenEnd(End):
    """An END with the number of its BEGINs."""

    begins: int = 0


def seen_ends(boundaries: DataFrame, spec: PipelineSpec) -> list[SeenEnd]:
    """Bring the END summaries to the driver, in commit order.

    Raises:
        DataError: A record of the transaction topic cannot be read, or its ids cannot be ordered.
    """
    # One row with a line per END: rows of their own cost five times as much to bring here.
    line = F.concat_ws(" ", "end_offset", "event_count", "begins", "end_position")
    asked = boundaries.agg(
        F.collect_list(line).alias("lines"), F.collect_set("domain").alias("domains")
    )
    row = asked.first()
    ends = sorted(map(_end, row["lines"] if row else ()), key=attrgetter("offset"))
    unreadable = [end.offset for end in ends if not end.position]
    if unreadable:
        message = (
            f"The record at offset {unreadable[0]} of the transaction topic cannot be read (broken "
            f"JSON, or an id without a position for a {spec.connector} connector); "
            f"{len(unreadable)} such in all. Without it a transaction's rows cannot be counted. "
            "Look at the record; load the lake anew if the topic cannot be repaired."
        )
        raise DataError(message)
    domains = sorted(row["domains"] if row else ())
    if len(domains) > 1:
        message = (
            f"The transaction ids of this {spec.connector} connector come from {len(domains)} "
            f"domains ({', '.join(domains[:3])}), whose numbers cannot be compared. One pipeline "
            "follows one GTID domain or server uuid; after a failover load the lake anew."
        )
        raise DataError(message)
    return ends


def _end(line: str) -> SeenEnd:
    offset, events, begins, position = line.split(" ")
    return SeenEnd(int(offset), int(events), position, int(begins))
