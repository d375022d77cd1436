"""Kill a run at every failpoint and at many random moments, and print one table.

Usage::

    python -m tests.faults.soak RUN_FOLDER [--format json] [--random 20] [--seed 1]
        [--failpoint NAME]… [--no-failpoints] [--set key=value]…

The exit code is 1 if a published snapshot was ever torn or a final table differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from lakeingest.apply.failpoints import FAILPOINTS
from lakeingest.session import session
from tests.faults.killed import FORMAT_HUDI, Ordeal, Outcome, Writer, failpoint_kills, random_kills
from tests.recordings.configure import RecordedRun, recorded_run, run_folder, write_properties
from tests.young_jvm import compile_quickly

SMALL_BATCHES = {"lakeingest.batch.max.events": "1000"}
"""Some fifteen batches of the small runs: enough moments between two publications."""


def seconds_of_a_whole_run(run: RecordedRun, folder: Path, settings: dict[str, str]) -> float:
    """Return how long a run takes that nobody kills: random moments must fall inside it."""
    properties = {**run.configuration(folder / "measured"), **settings}
    configuration = write_properties(folder / "measured.properties", properties)
    writer = Writer(configuration, folder / "measured.log")
    code = writer.wait()
    if code != 0:
        message = f"the run fails even when nobody kills it, with {code}: {writer.said()}"
        raise RuntimeError(message)
    return time.monotonic() - writer.started


def print_table(outcome: Outcome, seconds: float) -> None:
    """Print kills by failpoint, then what was compared and what was wrong."""
    print(f"{'kills':34} {'times':>6}")
    for label, times in sorted(outcome.kills.items()):
        print(f"{label:34} {times:6}")
    for label in outcome.unreached:
        print(f"{label:34} {'never reached':>6}")
    print(f"{'all kills':34} {sum(outcome.kills.values()):6}")
    print(f"{'lakes ingested to the end':34} {outcome.lakes:6}")
    print(f"{'publications compared':34} {outcome.publications:6}")
    print(f"{'snapshots read meanwhile':34} {outcome.reader_checks:6}")
    print(f"{'violations':34} {len(outcome.violations):6}")
    print(f"{'seconds':34} {seconds:6.0f}")
    for violation in outcome.violations[:30]:
        print(f"VIOLATION {violation}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if anything was wrong, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak")
    parser.add_argument("run", type=run_folder, help="folder of one recorded run with commits")
    parser.add_argument("--format", default="json")
    parser.add_argument("--random", type=int, default=20, help="kills at random moments")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failpoint", action="append", choices=FAILPOINTS, help="default: all")
    parser.add_argument("--no-failpoints", action="store_true", help="random moments only")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args(arguments)
    compile_quickly()
    run = recorded_run(options.run, options.format)
    settings = {**SMALL_BATCHES, **dict(pair.split("=", 1) for pair in options.set)}
    started = time.monotonic()
    spark = session("soak", kafka=False, hudi=FORMAT_HUDI in settings.items())
    with tempfile.TemporaryDirectory(prefix="lakeingest-soak-") as name:
        folder = Path(name)
        whole = seconds_of_a_whole_run(run, folder, settings)
        print(f"{run.name}/{run.form}, a whole run takes {whole:.0f} s, seed {options.seed}")
        kills = [] if options.no_failpoints else failpoint_kills(options.failpoint or FAILPOINTS)
        # From half-way through the start of the JVM to almost the end of a whole run.
        kills += random_kills(options.random, options.seed, earliest=4.0, latest=0.9 * whole)
        ordeal = Ordeal(spark, run, folder, settings, say=lambda line: print(line, flush=True))
        outcome = ordeal.suffer(kills)
    print_table(outcome, time.monotonic() - started)
    return 1 if outcome.violations or outcome.unreached else 0


if __name__ == "__main__":
    sys.exit(main())
