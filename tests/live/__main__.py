"""``python -m tests.live WORKLOAD``: one workload through the whole chain, compared at its end.

    python -m tests.live bank [--database postgresql|mariadb] [--format json --format avro]…
    python -m tests.live shop --database mariadb --transactions 1500
    python -m tests.live bank --per-second 100 --set lakeingest.commit.mode=per-transaction

The workload runs before, while and after the connectors take their initial snapshots. The first
format is ingested while it runs, the others afterwards; all must end with the database's tables,
and every publication must show one of its commits. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lakeingest.session import session
from tests.live.ingested import PATIENCE_SECONDS, Ingested, judged
from tests.live.stage import WORKLOADS, Play, Stage
from tests.rig.chain import Chain
from tests.rig.connectors import Format
from tests.rig.debian import DebianPackageError
from tests.workloads.crew import Pace
from tests.workloads.shop import Schedule
from tests.young_jvm import compile_quickly


def end_to_end(
    chain: Chain,
    play: Play,
    formats: Sequence[Format],
    folder: Path,
    settings: Mapping[str, str] | None = None,
) -> list[str]:
    """Play on a database, ingest it in every format, and return what was wrong."""
    stage = Stage(chain, play, folder)
    runs = stage.captured(formats)
    done: list[Ingested] = []
    wrong: list[str] = []
    with stage.step("workload, once captured"):
        done.append(Ingested(stage, runs[0], interval=1.0, settings=settings))
        counts = stage.workload.finish(PATIENCE_SECONDS)
    print(counts.as_json(), flush=True)
    wrong += stage.workload.violations()
    stage.oracle.follow()
    last = len(stage.oracle.states) - 1
    with stage.step(f"last commit published, {runs[0].form}"):
        wrong += done[0].finish(last)
    for run in runs[1:]:
        with stage.step(f"ingest all of it, {run.form}"):
            done.append(Ingested(stage, run, interval=1.0, settings=settings))
            wrong += done[-1].finish(last)
    with stage.step("end oracle"):
        stage.oracle.end()
    for run, ingested in zip(runs, done, strict=True):
        with stage.step(f"compare, {run.form}"):
            wrong += judged(run, ingested)
    stage.print_seconds()
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; return 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.live")
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--database", choices=("postgresql", "mariadb"), default="postgresql")
    parser.add_argument("--format", type=Format, choices=list(Format), action="append")
    parser.add_argument("--transactions", type=int, default=2_000)
    parser.add_argument("--per-second", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args(arguments)
    settings = dict(text.split("=", 1) for text in options.set)
    compile_quickly()
    formats: list[Format] = options.format or [Format.JSON, Format.AVRO]
    number: int = options.transactions
    play = Play(
        options.workload,
        options.database,
        options.seed,
        Pace(per_second=options.per_second, transactions=number, hold_at=number // 2 - 1),
        Schedule(
            giant_every=number // 5,
            giant_rows=3_000,
            alter_at=number * 6 // 10,
            signal_every=number // 4,
            # PostgreSQL shows a TRUNCATE to older snapshots, too: what Debezium's initial snapshot
            # then reads was the state of no commit.
            truncate_from=number // 2,
        ),
    )
    session("lakeingest tests", cores=2)  # in which tables are shown
    with tempfile.TemporaryDirectory(prefix="lakeingest-live-") as name:
        folder = Path(name)
        chain = Chain(
            folder / "rig",
            postgres=options.database == "postgresql",
            mariadb=options.database == "mariadb",
            registry=Format.AVRO in formats,
        )
        try:
            with chain:
                wrong = end_to_end(chain, play, formats, folder, settings)
        except DebianPackageError as error:
            print(error, file=sys.stderr)
            return 69
    for line in wrong[:20]:
        print(f"VIOLATION {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
