"""The list of cases that must be right: every recorded run, and small and large commits.

The variants bound what shares a commit from both sides. They run over a prefix, because a commit
per transaction over a whole run measures patience, not correctness.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One run of the pipeline with what to set and how far to go.

    Attributes:
        run: Name of the recorded run.
        form: ``json``, ``json-schema`` or ``avro``.
        settings: Properties beyond the run's own.
        max_batches: Batches to ingest; None for everything.
        through_command: Tables to show through the real command.
    """

    run: str
    form: str = "json"
    settings: Mapping[str, str] = field(default_factory=dict)
    max_batches: int | None = None
    through_command: tuple[str, ...] = ()


DEFAULT = "default"

VARIANTS: Mapping[str, tuple[Mapping[str, str], int | None]] = {
    # As configured by a user who set nothing: all that fits a batch shares its commit.
    DEFAULT: ({}, None),
    # 100 source transactions, a publication each.
    "commit-1": ({"lakeingest.commit.max.transactions": "1"}, 100),
    # 1,000 source transactions: 143 publications of 7.
    "commit-7": ({"lakeingest.commit.max.transactions": "7"}, 143),
    # Every source transaction, a version of each table and a publication for each.
    "per-transaction": ({"lakeingest.commit.mode": "per-transaction"}, None),
    # Batches far smaller than the largest transactions.
    "batch-500": ({"lakeingest.batch.max.events": "500"}, 40),
}
"""Settings and number of batches by name."""

RUNS: tuple[tuple[str, str], ...] = (
    ("pg-shop-small", "json"),
    ("pg-shop-small", "json-schema"),
    ("pg-shop-null-defaults", "json-schema"),
    ("pg-kill", "json"),
    ("pg-kill-replay", "json"),
    ("mariadb-kill", "json"),
    ("mariadb-kill-replay", "json"),
    ("mariadb-shop", "json"),
    ("pg-shop", "json"),
    ("pg-shop", "json-schema"),
    ("pg-shop", "avro"),
    ("pg-bench", "json"),
)
"""Runs in the order of their cost, so that a mistake shows early."""


def cases(only: Collection[str] = (), variants: Collection[str] = ()) -> list[Case]:
    """Return the cases of the chosen runs and variants, by default all of them.

    Raises:
        ValueError: A name is not in the list.
    """
    unknown = {*only} - {run for run, _ in RUNS} | {*variants} - {*VARIANTS}
    if unknown:
        message = f"not in the list of cases: {', '.join(sorted(unknown))}"
        raise ValueError(message)
    chosen = [
        Case(run, form, *VARIANTS[variant])
        for variant in VARIANTS
        if not variants or variant in variants
        for run, form in RUNS
        if not only or run in only
    ]
    # One real command in the list: the others go through the same function in this process.
    for at, case in enumerate(chosen):
        if case.max_batches is None:
            first_table = "witness" if case.run == "pg-bench" else "orders"
            chosen[at] = Case(case.run, case.form, through_command=(first_table,))
            break
    return chosen
