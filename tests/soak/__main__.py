"""``python -m tests.soak --minutes N --seed S``: faults for N minutes, and one table.

    python -m tests.soak --minutes 30 --seed 1 [--database mariadb] [--format avro]
        [--per-second 5] [--without PROTECTION]

A shop works on a real database; Debezium, a broker, a mirror that lags behind it differently in
each partition, and a continuous run bring it into the lake, where a reader compares every snapshot
that it sees with the database's own log. One part after another is killed, frozen or made to repeat
itself; nobody helps. At the end every publication is read again, and the tables are compared with
the database's, row by row. The exit code is 1 if anything differs.

With ``--without`` one protection is switched off, and the exit code should be 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lakeingest.session import session
from tests.faults.killed import RUN_COMMAND
from tests.live.ingested import Ingested, judged
from tests.live.relay import Relay
from tests.live.run import LiveRun
from tests.live.stage import Play, Stage
from tests.rig.chain import Chain
from tests.rig.connectors import Format
from tests.rig.debian import DebianPackageError
from tests.soak.account import Account
from tests.soak.faults import Fault, Faults, NotStruckError
from tests.workloads.crew import Pace
from tests.workloads.shop import Schedule
from tests.young_jvm import compile_quickly

RECOVERY_SECONDS = 300.0
"""What takes longer is not recovering."""

UNPROTECTED = (sys.executable, "-m", "tests.soak.unprotected")

_ROUNDS = 20
_TRUNCATE_FROM = 150
_INTERVAL_SECONDS = 2.0


def soak(chain: Chain, play: Play, options: argparse.Namespace, folder: Path) -> Account:
    """Do everything for the given minutes, and return the account of it."""
    rng = random.Random(options.seed)
    stage = Stage(chain, play, folder)
    run = replace(stage.run(options.format), mirrored=True)
    stage.workload.start()
    run.capture(chain)
    run.wait_until_streaming(chain)
    stage.workload.release()
    relay = Relay(chain.broker.bootstrap, run.prefix, run.read_prefix, options.seed)
    relay.start()
    mirrored(chain, run)
    account = Account(play.family, run.form, options.seed)
    usual = (*UNPROTECTED, options.without, "run") if options.without else RUN_COMMAND
    ingested = Ingested(stage, run, _INTERVAL_SECONDS, usual)
    if not ingested.watcher.wait_until_shown(1, RECOVERY_SECONDS, ingested.ingest.is_alive):
        account.violations.append(f"never began: {ingested.ingest.writer.said()}")
    over = time.monotonic() + 60 * options.minutes
    for fault in Faults(stage, ingested.ingest, ingested.watcher, relay, rng).planned(_ROUNDS):
        if time.monotonic() > over or account.violations or ingested.watcher.violations:
            break
        strike(fault, ingested, account)
    began = time.monotonic()
    account.counts = stage.workload.stop()
    account.violations += stage.workload.violations()
    stage.oracle.follow()
    account.violations += ingested.finish(len(stage.oracle.states) - 1)
    account.seconds_to_the_end = time.monotonic() - began
    relay.stop()
    account.facts["records copied again"] = relay.copied_again
    stage.oracle.end()
    account.checks = ingested.watcher.checks
    account.ends = ingested.ingest.ends
    # Not before: a second Spark would take the cores from the one that is struck.
    spark = session("lakeingest tests", cores=2)
    account.violations += judged(run, ingested)
    account.take(spark, run, ingested.lake, chain)
    return account


def mirrored(chain: Chain, run: LiveRun) -> None:
    """Wait until the mirror has the topics that the pipeline is told of.

    Raises:
        TimeoutError: It has not.
    """
    topics = {f"{run.read_prefix}.transaction"}
    topics |= {f"{run.read_prefix}.{run.collection(table)}" for table in run.captured}
    deadline = time.monotonic() + RECOVERY_SECONDS
    while not topics <= set(chain.broker.admin().list_topics(timeout=10).topics):
        if time.monotonic() > deadline:
            message = f"the mirror lacks topics: {sorted(topics)}"
            raise TimeoutError(message)
        time.sleep(0.2)


def strike(fault: Fault, ingested: Ingested, account: Account) -> None:
    """Strike once, and wait until the lake shows what was committed until the part was back."""
    try:
        fault.strike()
    except NotStruckError as error:
        account.missed.append(f"{fault.name}: {error}")
        return
    began = time.monotonic()
    watcher = ingested.watcher
    commit = watcher.commits
    shown = watcher.wait_until_shown(commit, RECOVERY_SECONDS, ingested.ingest.is_alive)
    seconds = time.monotonic() - began
    account.struck(fault, seconds)
    print(f"{fault.name:34} recovered in {seconds:5.1f} s, commit {commit}", flush=True)
    if not shown:
        said = ingested.ingest.writer.said()
        account.violations.append(f"{fault.name}: commit {commit} not shown after it: {said}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=("postgresql", "mariadb"), default="postgresql")
    parser.add_argument("--format", type=Format, choices=list(Format), default=Format.JSON)
    parser.add_argument("--per-second", type=float, default=5.0)
    parser.add_argument("--without", metavar="PROTECTION", help="see tests.soak.unprotected")
    options = parser.parse_args(arguments)
    compile_quickly()
    play = Play(
        "shop",
        options.database,
        options.seed,
        Pace(per_second=options.per_second, hold_at=_TRUNCATE_FROM - 1),
        Schedule(
            giant_every=200,
            giant_rows=1_500,
            alter_at=600,
            signal_every=400,
            truncate_from=_TRUNCATE_FROM,
        ),
    )
    with tempfile.TemporaryDirectory(prefix="lakeingest-soak-") as name:
        folder = Path(name)
        chain = Chain(
            folder / "rig",
            postgres=options.database == "postgresql",
            mariadb=options.database == "mariadb",
            registry=options.format is Format.AVRO,
        )
        try:
            with chain:
                account = soak(chain, play, options, folder)
        except DebianPackageError as error:
            print(error, file=sys.stderr)
            return 69
    account.print_table()
    return 1 if account.violations else 0


if __name__ == "__main__":
    sys.exit(main())
