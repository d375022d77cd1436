"""``python -m tests.benchmarks.ingest``: ours against the recipes and the floor, in one process.

Absolute figures of a shared machine are worth little; ratios taken inside one process within
minutes are. So a *round* runs every contestant once on the same batches, each into a new target
that was loaded with the snapshot and the first batch beforehand, the order rotates from round to
round, and the ratio is taken inside each round before the median is. A first round warms up the JVM
and is not counted; it is as long as the others, because what runs only from the second batch on
would be compiled in the first round that counts (ours and the tuned recipe take a quarter longer in
it, measured). The tables of every run are compared with the truth; a wrong one ends the benchmark
with an error, since the speed of a wrong answer means nothing.

Where others use the machine meanwhile, the seconds that the cores worked say more than the clock.
A figure is *data* events per second: BEGIN and END of the transaction topic, which only ours has
to read, are work but not counted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from lakeingest.session import session
from lakeingest.sink.hudi.options import TableType
from tests.benchmarks.contestant import Contestant, Stream, cut
from tests.benchmarks.effort import Effort, effort
from tests.benchmarks.floor import Floor
from tests.benchmarks.generate import generate
from tests.benchmarks.hudi_recipe import HudiRecipe
from tests.benchmarks.ours import Ours
from tests.benchmarks.recipe import Recipe
from tests.benchmarks.target import Target, targets
from tests.benchmarks.truth import Totals, expected, totals
from tests.benchmarks.workload import EVENTS_PER_TRANSACTION, TABLES, EventFolder, Shape, Table


def contestants(into: Target) -> tuple[Contestant, ...]:
    """Return who writes ``into`` that format, the reference first."""
    recipes: tuple[Contestant, ...]
    tuned = "recipe, tuned"
    if into.hudi:
        kind = TableType(into.properties["lakeingest.hudi.table.type"])
        recipes = (HudiRecipe(kind), HudiRecipe(kind, tuned, tuned=True))
    else:
        recipes = (Recipe(), Recipe(tuned, tuned=True))
    return (Ours(into), *recipes, Floor())


_AFTER_LOAD = 400
"""Transactions that follow a snapshot whose load is timed."""


class WrongTablesError(AssertionError):
    """A contestant's tables are not what the transactions make of them."""


@dataclass(frozen=True)
class Round:
    """What each contestant took, one after another over the same batches."""

    efforts: dict[str, Effort]

    def ratio(self, name: str, reference: str) -> float:
        """Return how many times as fast ``reference`` was as ``name``."""
        return self.efforts[name].seconds / self.efforts[reference].seconds


def run_round(
    racers: Sequence[Contestant],
    stream: Stream,
    truth: dict[Table, Totals],
    folder: Path,
    *,
    load: bool = False,
) -> Round:
    """Run every contestant once over ``stream`` and compare its tables with ``truth``.

    Args:
        racers: The contestants, in the order of this round.
        stream: What to run over.
        truth: Totals of the tables after it.
        folder: Folder of the targets.
        load: Whether the load of the snapshot is timed, too.

    Raises:
        WrongTablesError: A table differs.
    """
    efforts: dict[str, Effort] = {}
    for number, contestant in enumerate(racers):
        target = folder / f"target-{number}"
        if load:
            taken = effort(partial(start, contestant, stream, target))
        else:
            start(contestant, stream.first, target)
            taken = effort(partial(contestant.run, stream.rest, target))
        efforts[contestant.name] = taken
        say(f"  {contestant.name}: {taken.seconds:.2f} s, {taken.cores:.2f} s of the cores")
        for table in TABLES:
            sums = totals(contestant.table(stream, target, table), table)
            if sums != truth[table]:
                msg = f"{contestant.name}: {table.name} is {sums}, must be {truth[table]}"
                raise WrongTablesError(msg)
        shutil.rmtree(target)
    return Round(efforts)


def start(contestant: Contestant, stream: Stream, target: Path) -> None:
    """Bring snapshot and stream into a new ``target``."""
    contestant.load(stream, target)
    contestant.run(stream, target)


def report(rounds: Sequence[Round], events: int, reference: str) -> str:
    """Return the table of medians; ratios say how many times as fast ``reference`` is."""
    head = f"{'contestant':<16}{'seconds':>9}{'events/s':>11}{reference + ' is':>11}"
    lines = [f"{head}{'cores (s)':>11}  runs (s)"]
    for name in sorted(rounds[0].efforts):
        runs = [one.efforts[name].seconds for one in rounds]
        typical, cores = median(runs), median(one.efforts[name].cores for one in rounds)
        ratio = median(one.ratio(name, reference) for one in rounds)
        lines.append(
            f"{name:<16}{typical:>9.2f}{events / typical:>11,.0f}{ratio:>10.2f}x{cores:>11.1f}  "
            + " ".join(f"{run:.2f}" for run in runs)
        )
    return "\n".join(lines)


def benchmark(
    racers: Sequence[Contestant],
    stream: Stream,
    truth: dict[Table, Totals],
    folder: Path,
    *,
    runs: int,
    load: bool = False,
) -> list[Round]:
    """Return the timed rounds over ``stream``, after a warm-up round."""
    rounds = []
    for number in range(runs + 1):
        turn = number % len(racers)
        say(f"{f'run {number}' if number else 'warm-up'} (load {os.getloadavg()[0]:.1f})")
        done = run_round([*racers[turn:], *racers[:turn]], stream, truth, folder, load=load)
        if number:
            rounds.append(done)
    return rounds


def say(text: str) -> None:
    """Write progress to stderr; stdout carries the result only."""
    sys.stderr.write(f"{text}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark as the command line says."""
    names = ", ".join(into.value for into in Target)
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ingest", description=__doc__)
    parser.add_argument("--events", type=int, default=200_000, help="data events, 4 a transaction")
    parser.add_argument(
        "--tables", type=targets, default=(Target.DELTA,), help=f"some of {names}, with commas"
    )
    parser.add_argument("--batch", type=int, default=50_000, help="data events per batch")
    parser.add_argument(
        "--load", type=int, default=0, metavar="ROWS", help="time the load of a snapshot instead"
    )
    parser.add_argument(
        "--accounts", type=int, default=Shape.accounts, help="rows of the largest table"
    )
    parser.add_argument("--runs", type=int, default=3, help="timed rounds")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    transactions = chosen.events // EVENTS_PER_TRANSACTION
    shape = Shape(transactions, accounts=chosen.accounts, seed=chosen.seed)
    if chosen.load:
        # A few transactions follow it, whose totals show whether the load was right.
        shape = replace(shape, transactions=_AFTER_LOAD, accounts=chosen.load)
    spark = session(hudi=any(into.hudi for into in chosen.tables))
    with tempfile.TemporaryDirectory(prefix="lakeingest-benchmark-") as name:
        folder = Path(name)
        log = EventFolder(folder / "log")
        generate(spark, log, shape)
        truth = expected(spark, log, shape, shape.transactions)
        stream = cut(spark, log, shape.transactions, chosen.batch)
        for into in chosen.tables:
            say(into.value)
            racers = contestants(into)
            rounds = benchmark(
                racers, stream, truth, folder, runs=chosen.runs, load=bool(chosen.load)
            )
            rest = stream.rest
            what = (
                f"snapshot of {shape.accounts:,} rows"
                if chosen.load
                else f"{rest.events:,} events ({rest.transactions:,} transactions over "
                f"{len(TABLES)} tables, {shape.accounts:,} accounts) in batches of {chosen.batch:,}"
            )
            events = chosen.load or rest.events
            sys.stdout.write(
                f"{what} into {into.value}; median of {chosen.runs}\n"
                f"{report(rounds, events, racers[0].name)}\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
