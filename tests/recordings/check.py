"""Run the pipeline over a recorded run and check it against the source's truth.

Usage::

    python -m tests.recordings.check RUN_FOLDER [--format json] [--max-batches N] [--set key=value]…
    python -m tests.recordings.check --all ROOT [--only NAME]… [--variant NAME]…

Prints one line per table and a summary; the exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.reader import open_lake
from lakeingest.session import session
from tests.recordings.compare import Comparison, compare_table
from tests.recordings.configure import (
    RecordedRun,
    key_of,
    recorded_run,
    run_folder,
    write_properties,
)
from tests.recordings.judged import JudgedRun
from tests.recordings.known import accepted, uncounted
from tests.recordings.log_lake import LogLake
from tests.recordings.prefix import SHOP_MEASURES, Place, PrefixChecker, shop_violations
from tests.recordings.rust import RustLake
from tests.recordings.shown import ShownLake, show_through_the_command
from tests.recordings.suite import Case, cases
from tests.recordings.totals import Published, ReadBySpark
from tests.young_jvm import generate_code

_TOLD = (
    "lakeingest.commit.mode",
    "lakeingest.commit.max.transactions",
    "lakeingest.batch.max.events",
    "lakeingest.hudi.table.type",
)
"""Settings that a case is named after."""


@dataclass(frozen=True)
class History:
    """What was found in the publications of one lake.

    Attributes:
        publications: How many there are.
        place: Commit of the source that the newest one shows; None without recorded commits.
        of: Commits of the source, 0 without recorded commits.
        violations: Publications that show no commit, or go back.
    """

    publications: int
    place: Place | None
    of: int
    violations: tuple[str, ...]

    @property
    def last(self) -> int | None:
        """Return the last commit that the newest publication may be."""
        return self.place.last if self.place else None


@dataclass(frozen=True)
class Report:
    """Outcome of one case."""

    title: str
    tables: tuple[Comparison, ...]
    history: History
    seconds_of_run: float
    seconds_of_check: float
    rows: int

    @property
    def good(self) -> bool:
        """Whether nothing differs."""
        return not self.history.violations and not any(t.differences for t in self.tables)


def check_history(run: JudgedRun, lake: Published, most: int | None = None) -> History:
    """Check every publication of ``lake``, oldest first.

    With recorded commits each must show the totals of one, in order. Without (MariaDB) each must
    keep the shop's invariants, which hold at every commit and at hardly any other moment.
    """
    commits = run.oracle.commits
    publications = lake.publications()
    if commits is None:
        broken = [
            violation
            for publication, values in lake.totals_of(publications, SHOP_MEASURES)
            for violation in shop_violations(f"publication {publication.batch}", values)
        ]
        return History(len(publications), None, 0, tuple(broken))
    checker = PrefixChecker(commits, uncounted(run.name, run.form), most)
    for publication, values in lake.totals_of(publications, checker.measures):
        checker.check(f"publication {publication.batch}", values)
    return History(len(publications), checker.place, len(commits) - 1, tuple(checker.violations))


def check_tables(
    run: JudgedRun, configuration: Path, through_command: Sequence[str] = ()
) -> tuple[Comparison, ...]:
    """Compare what ``show --output csv`` prints with the source's final tables.

    Args:
        run: The run.
        configuration: Properties file of the pipeline.
        through_command: Tables shown by the real command in a process of its own; the others are
            shown by its functions in this process, which saves a JVM start per table.
    """
    shown = ShownLake(configuration)
    compared = []
    for table in run.oracle.tables:
        collection = run.collection(table)
        compared.append(
            compare_table(
                table,
                run.oracle.final(table),
                show_through_the_command(configuration, collection)
                if table in through_command
                else shown.rows(collection),
                schema=run.schemas[table],
                key=key_of(table),
                accepted=accepted(run.name, run.form),
            )
        )
    return tuple(compared)


def check_run(
    spark: SparkSession,
    run: RecordedRun,
    folder: Path,
    *,
    settings: Mapping[str, str] | None = None,
    max_batches: int | None = None,
    through_command: Sequence[str] = (),
    by_delta_rs: bool = False,
) -> Report:
    """Ingest ``run`` into ``folder`` and check everything that can be checked.

    With ``max_batches`` only a prefix is ingested, and the final tables are not compared; nor are
    those of a short run, which nobody knows. ``by_delta_rs``: the publications of a Delta lake are
    read by that, which is quicker, and not by our reader.
    """
    properties = {**run.configuration(folder / "lake"), **(settings or {})}
    configuration = write_properties(folder / "pipeline.properties", properties)
    started = time.monotonic()
    run_pipeline(spark, load_config(configuration), max_batches=max_batches)
    ran = time.monotonic()
    most = properties.get("lakeingest.commit.max.transactions")
    lake: Published = (
        RustLake(folder / "lake", run.namespace)
        if by_delta_rs
        else ReadBySpark(open_lake(spark, str(folder / "lake")), run.namespace)
    )
    if properties.get("lakeingest.commit.mode") == "per-transaction":
        most, lake = "1", LogLake(folder / "lake", run.namespace)
    history = check_history(run, lake, None if most is None else int(most))
    is_whole = not max_batches and run.oracle.knows_final
    tables = check_tables(run, configuration, through_command) if is_whole else ()
    done = time.monotonic()
    return Report(
        title=title(run, properties, max_batches),
        tables=tables,
        history=history,
        seconds_of_run=ran - started,
        seconds_of_check=done - ran,
        rows=sum(table.rows for table in tables),
    )


def title(run: RecordedRun, properties: Mapping[str, str], max_batches: int | None) -> str:
    """Return the name of a case as it is printed."""
    parts = [f"{run.name}/{run.form}"]
    for key in _TOLD:
        if key in properties:
            parts.append(f"{key.removeprefix('lakeingest.')}={properties[key]}")
    if max_batches:
        parts.append(f"first {max_batches} batches")
    return " ".join(parts)


def print_report(report: Report) -> None:
    """Print one line per table, then the summary."""
    print(f"== {report.title}")
    for table in report.tables:
        accepted = f", {table.accepted} values differ as known" if table.accepted else ""
        verdict = "; ".join(table.differences) or f"equal{accepted}"
        print(f"   {table.table:18} {table.rows:7} rows  {verdict}")
    for violation in report.history.violations[:20]:
        print(f"   VIOLATION {violation}")
    place = report.history.place
    shown = f", newest shows commit {place.last} of {report.history.of}" if place else ""
    print(
        f"   {'ok' if report.good else 'DIFFERENT'}: {report.history.publications} publications, "
        f"{len(report.history.violations)} violations{shown}; {report.rows} rows compared; "
        f"run {report.seconds_of_run:.1f} s, check {report.seconds_of_check:.1f} s",
        flush=True,
    )


def check_case(spark: SparkSession, case: Case, root: Path) -> Report:
    """Run one case of the list in a folder of its own and print what was found.

    The short cases, of many small commits, run as tests do: their plans run once. Whole runs, which
    come first, are run and read as a user does.
    """
    whole = case.max_batches is None
    if not whole:
        generate_code(spark, generate=False)
    with tempfile.TemporaryDirectory(prefix="lakeingest-check-") as folder:
        report = check_run(
            spark,
            recorded_run(root / case.run, case.form),
            Path(folder),
            settings=case.settings,
            max_batches=case.max_batches,
            through_command=case.through_command,
            by_delta_rs=not whole and "hudi" not in case.settings.values(),
        )
    print_report(report)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if anything differs, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.recordings.check")
    parser.add_argument("run", type=run_folder, nargs="?", help="folder of one recorded run")
    parser.add_argument("--format", default="json", help="json (default), json-schema or avro")
    parser.add_argument("--max-batches", type=int, help="ingest only so many batches")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--all", type=Path, metavar="ROOT", help="folder of all recorded runs")
    parser.add_argument("--only", action="append", default=[], metavar="RUN")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME")
    options = parser.parse_args(arguments)
    settings = dict(pair.split("=", 1) for pair in options.set)
    if (options.run is None) == (options.all is None):
        parser.error("give one RUN_FOLDER, or --all ROOT")
    if options.all is None:
        root = options.run.parent
        selection = [Case(options.run.name, options.format, settings, options.max_batches)]
    else:
        root = options.all
        selection = [
            replace(case, settings={**case.settings, **settings})
            for case in cases(options.only, options.variant)
        ]
    spark = session("recordings", kafka=False, hudi="hudi" in settings.values())
    reports = [check_case(spark, case, root) for case in selection]
    bad = [report.title for report in reports if not report.good]
    if len(reports) > 1:
        print(f"{len(reports) - len(bad)} of {len(reports)} cases are right")
        for name in bad:
            print(f"   DIFFERENT {name}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
