"""Merge a batch of payloads with rows of a table: join them and apply the merge law.

The sinks read different rows and write the result in different ways. What becomes of each row is
decided here for all of them, and by the engine's MERGE under the same clauses.

A row of a table always has a position, and so has a payload. So after the join, a NULL position
shows that the other side is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.cast import cast_to, null_of, typed_columns, typed_values
from lakeingest.engine.known_columns import Addition, Filter, Selection, Steps, made_once
from lakeingest.frame_schemas import OURS
from lakeingest.named import all_named
from lakeingest.sink.contract import Changeset
from lakeingest.sink.merge_law import Clause, MergeLaw, source, target

SMALL_BYTES = 16 * 1024 * 1024
"""Largest text size of a changeset that Spark broadcasts instead of shuffling the table."""

OUTCOME = f"{OURS}outcome"
"""What becomes of a joined row: ``REMOVED``, ``UNCHANGED`` or the number of the clause's values."""

REMOVED, UNCHANGED = -1, 0


def small(frame: DataFrame, changeset: Changeset) -> DataFrame:
    """Mark a frame of the changeset's rows for broadcast if it is small.

    Spark cannot decide this: a checkpointed frame keeps the size estimate of the plan that the
    checkpoint cut off.
    """
    return F.broadcast(frame) if changeset.size <= SMALL_BYTES else frame


def merged_rows(
    table: DataFrame,
    payloads: DataFrame,
    law: MergeLaw,
    how: str = "full",
    *,
    every: bool = True,
    more: tuple[Column, ...] = (),
) -> DataFrame:
    """Return rows of a table after the merge of a changeset.

    Args:
        table: Rows of the table, in the law's schema.
        payloads: The changeset's frame.
        law: The merge law of the changeset.
        how: ``full``; ``left``: without the payloads that have no row in ``table``; ``right``:
            without the rows that have no payload.
        every: Whether to return rows that do not change, too.
        more: Further columns, over the aliases ``t`` (the table) and ``s`` (the payloads).
    """
    steps = _decision(law, how, every=True, more=more)
    stays = steps.stays if every else steps.changes
    return Steps(steps.outcome, stays, steps.rows).of(_joined(table, payloads, law, how))


def decided_rows(
    table: DataFrame, payloads: DataFrame, law: MergeLaw, *, more: tuple[Column, ...] = ()
) -> DataFrame:
    """Return the rows that have a payload as they are after the merge, each with its ``OUTCOME``.

    Rows with the outcome ``UNCHANGED`` or ``REMOVED`` have only the values of the key: so columns
    that the law does not ask for are not read.

    Args:
        table: See ``merged_rows``.
        payloads: See ``merged_rows``.
        law: See ``merged_rows``.
        more: See ``merged_rows``.
    """
    steps = _decision(law, "inner", every=False, more=more)
    joined = _joined(table, payloads, law, "inner")
    return Steps(steps.outcome, steps.rows_with_outcome).of(joined)


def _joined(table: DataFrame, payloads: DataFrame, law: MergeLaw, how: str) -> DataFrame:
    return table.alias("t").join(payloads.alias("s"), law.same_key(), how)


class _Decision(NamedTuple):
    """What is done to joined rows.

    Attributes:
        outcome: Adds ``OUTCOME``.
        stays: Keeps the rows that the merge does not remove.
        changes: Keeps those of them that it changes.
        rows: Gives the rows as they are after the merge.
        rows_with_outcome: Gives them with ``OUTCOME``.
    """

    outcome: Addition
    stays: Filter
    changes: Filter
    rows: Selection
    rows_with_outcome: Selection


@made_once
def _decision(law: MergeLaw, how: str, *, every: bool, more: tuple[Column, ...]) -> _Decision:
    outcome, values_of = _outcomes(law, how)
    columns = []
    for item in law.schema:
        keeps = every or item.name in law.key
        value = target(item.name) if keeps else null_of(item.dataType)
        for number, values in values_of.items():
            if item.name in values:
                new_value = cast_to(values[item.name], item.dataType)
            elif keeps:
                continue
            else:
                new_value = target(item.name)
            value = F.when(_has_outcome(number), new_value).otherwise(value)
        columns.append(value.alias(item.name))
    stays = F.col(OUTCOME) != REMOVED
    return _Decision(
        Addition({OUTCOME: outcome}),
        Filter(stays),
        Filter(stays & (F.col(OUTCOME) != UNCHANGED)),
        Selection(*columns, *more),
        Selection(*columns, *more, OUTCOME),
    )


@made_once
def _has_outcome(number: int) -> Column:
    return F.col(OUTCOME) == number


def _outcomes(law: MergeLaw, how: str) -> tuple[Column, dict[int, Mapping[str, Column]]]:
    """Return the outcome of a joined row, and the values of each outcome that has some.

    A row's outcome is decided once, in a column of its own. Rejected: the clauses' conditions in
    front of every column's value. They grow with the square of the number of columns.
    """
    has_payload = source(law.names.position).isNotNull()
    has_row = target(law.names.position).isNotNull()
    cases = [(has_payload & has_row, clause) for clause in law.matched()]
    swept = law.swept()
    if swept is not None:
        cases.append((~has_payload, swept))
    if how in ("full", "right"):
        inserted = law.inserted()
        values = typed_values(law.schema, inserted.values or {})
        cases.append((~has_row, replace(inserted, values=values)))
        cases.append((~has_row, Clause(F.lit(True), None)))
    outcome, values_of = F.lit(UNCHANGED), {}
    for number, (applies, clause) in reversed([*enumerate(cases, UNCHANGED + 1)]):
        result = REMOVED if clause.values is None else number
        outcome = F.when(applies & clause.condition, result).otherwise(outcome)
        if clause.values is not None:
            values_of[number] = clause.values
    return outcome, values_of


def unmatched(changeset: Changeset, matched: DataFrame) -> DataFrame:
    """Return the payloads whose key no row of ``matched`` has."""
    keys = matched.select(*all_named(changeset.key))
    return changeset.frame.join(keys, list(changeset.key), "left_anti")


def inserted_rows(payloads: DataFrame, law: MergeLaw) -> DataFrame:
    """Return payloads without a row in the table as new rows, in the law's schema.

    Args:
        payloads: The changeset's frame, or a part of it.
        law: The merge law of the changeset.
    """
    return _insertion(law).of(payloads.alias("s"))


def decided_inserts(payloads: DataFrame, law: MergeLaw, more: tuple[Column, ...]) -> DataFrame:
    """Return all payloads without a row in the table as they are after the merge; ``OUTCOME``.

    Those that leave no row have the outcome ``REMOVED``.

    Args:
        payloads: See ``inserted_rows``.
        law: See ``inserted_rows``.
        more: Further columns, over the alias ``s``.
    """
    clause = law.inserted()
    outcome = F.when(clause.condition, UNCHANGED + 1).otherwise(REMOVED)
    values = typed_columns(law.schema, clause.values or {})
    return payloads.alias("s").select(*values, *more, outcome.alias(OUTCOME))


@made_once
def _insertion(law: MergeLaw) -> Steps:
    clause = law.inserted()
    return Steps(
        Filter(clause.condition), Selection(*typed_columns(law.schema, clause.values or {}))
    )
