"""Tables of Hudi Streamer, gone on with in their place, against the source's truth."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakeingest.apply.adoption import adopt
from lakeingest.apply.failpoints import ADOPTION_FAILPOINTS
from lakeingest.apply.inspect.validate import validate_pipeline
from lakeingest.apply.run import run_pipeline
from lakeingest.commit_note import CommitNote
from lakeingest.config import PipelineConfig, load_config
from lakeingest.engine.hudi.table import READ_OPTIONS, commits
from lakeingest.errors import DataError, TransientError
from lakeingest.reader import open_lake
from lakeingest.source.recorded import RecordedSource
from lakeingest.topic_names import TopicNames
from tests.adoption.streamer import PLACEHOLDER, Streamed
from tests.adoption.test_adopted_table import FIRST, streamed
from tests.apply.test_schemas import OLD, Log
from tests.forms import further
from tests.recordings.altered import PartOracle, short_run
from tests.recordings.configure import RecordedRun, packaged_run, write_properties
from tests.recordings.prefix import PrefixChecker
from tests.recordings.totals import TotalsOfLake, publications

# Real Hudi commits, some seconds each.
pytestmark = pytest.mark.slow

Parts = Mapping[str, Sequence[float]]

PARTS: Parts = {"customers": (0.3, 0.6), "documents": (0.25, 0.5)}
"""How much of its topic a table's Hudi Streamer has read with each of its commits.

The tables end at other places in the source's log.
"""

SHORT_PARTS: Parts = {"customers": (0.85,), "documents": (0.95,)}
"""The same of the short run: the least with which the whole snapshot has been read."""

LOST_BY_HUDI = frozenset({"documents.crc_body", "documents.crc_extra"})
"""Values that the old table does not have any more: see ``by_moved_keys``."""


def run_of(tables: Parts, folder: Path, end: int | None = None) -> RecordedRun:
    """Return the packaged run, up to a commit, as a pipeline of some tables sees it."""
    if end is not None:
        return short_run(folder / "log", end, *tables)
    run = packaged_run()
    return replace(run, oracle=PartOracle(run.oracle.folder, tuple(tables)))


def stream(
    spark: SparkSession, run: RecordedRun, target: Path, table_type: str, parts: Parts = PARTS
) -> Mapping[str, Streamed]:
    """Let a Hudi Streamer write each table, in commits that cut transactions."""
    source = RecordedSource(spark, str(run.events), TopicNames(run.prefix))
    streamed = {}
    for table in run.oracle.tables:
        old = Streamed(spark, run, table, target, table_type)
        marks = source.watermarks([old.topic])
        begin = {place.partition: bounds.earliest for place, bounds in marks.items()}
        stops = [
            {place.partition: int(bounds.high * part) for place, bounds in marks.items()}
            for part in parts[table]
        ]
        for start, stop in pairwise([begin, *stops]):
            old.take(start, stop)
        streamed[table] = old
    return streamed


def properties_of(run: RecordedRun, target: Path) -> dict[str, str]:
    """Return a pipeline that adopts the tables; they say their columns themselves."""
    given = run.configuration(target)
    names = [run.collection(table) for table in run.oracle.tables]
    return {
        **{key: value for key, value in given.items() if not key.endswith(".schema")},
        "lakeingest.target.format": "hudi",
        "lakeingest.deletes": "hard",
        "lakeingest.toast.missing": "null",
        "lakeingest.source.topics": ",".join(f"{run.prefix}.{name}" for name in names),
        **{f"lakeingest.table.{name}.adopt": "hudi-streamer" for name in names},
    }


def checked(spark: SparkSession, run: RecordedRun, target: Path) -> PrefixChecker:
    """Compare every publication with the source's commits."""
    assert run.oracle.commits is not None
    checker = PrefixChecker(run.oracle.commits, LOST_BY_HUDI)
    lake = open_lake(spark, str(target))
    totals = TotalsOfLake(lake, run.namespace, checker.measures)
    for publication, values in totals.of(publications(lake)):
        checker.check(f"publication {publication.batch}", values)
    return checker


def raw(spark: SparkSession, path: str) -> DataFrame:
    """Return a table as any reader of Hudi finds it."""
    return spark.read.format("hudi").options(**READ_OPTIONS).load(path)


class CrashError(Exception):
    """Stands for the end of the process."""


def crash_at(place: str, crash: pytest.MonkeyPatch) -> None:
    """Let the next run end at a failpoint of the adoption."""

    def failpoint(passed: str) -> None:
        if passed == place:
            raise CrashError

    crash.setattr(adopt, "failpoint", failpoint)
    if place == "0.first-adopted":
        # Tables are adopted side by side: the other one must not get so far.
        one = adopt.Adoption._adopt_one

        def adopt_one(
            self: adopt.Adoption, note: CommitNote, versions: Mapping[str, int], collection: str
        ) -> None:
            if collection.endswith("documents"):
                raise CrashError
            one(self, note, versions, collection)

        crash.setattr(adopt.Adoption, "_adopt_one", adopt_one)


# All steps by hand (`-m soak`); what differs between the types is in ``test_adopted_table.py``.
@pytest.mark.parametrize(
    ("table_type", "crashes", "events", "end"),
    [
        further("COPY_ON_WRITE", ADOPTION_FAILPOINTS, "100", None),
        ("MERGE_ON_READ", ("0.first-adopted",), None, 100),
    ],
)
def test_adopted_tables_show_a_commit_of_the_source_in_every_publication(
    spark: SparkSession,
    tmp_path: Path,
    table_type: str,
    crashes: Sequence[str],
    events: str | None,
    end: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After crashes between the steps of the adoption."""
    run, target = run_of(PARTS, tmp_path, end), tmp_path / "lake"
    streamed = stream(spark, run, target, table_type, SHORT_PARTS if end else PARTS)
    given = properties_of(run, target) | {"lakeingest.batch.max.events": "20"}
    if end:
        given |= {"lakeingest.batch.max.events": "40", "hoodie.metadata.enable": "false"}
    config = load_config(write_properties(tmp_path / "p.properties", given))
    for place in crashes:
        with monkeypatch.context() as crash:
            crash_at(place, crash)
            with pytest.raises(CrashError):
                run_pipeline(spark, config)
        assert said_to_be_adopted(spark, config, PARTS) == (place != "0.adopted")
    # A first batch that is smaller than what lies between the tables must reach all the same.
    run_pipeline(spark, config, max_batches=1 if events else None)
    if events:
        given |= {"lakeingest.batch.max.events": events}
        run_pipeline(spark, load_config(write_properties(tmp_path / "p.properties", given)))
    checker = checked(spark, run, target)
    assert checker.violations == []
    assert checker.place is not None
    assert checker.place.last == checker.newest
    if run.oracle.knows_final:
        by_moved_keys(spark, run, target)
    # No key is there twice, and what readers of Hudi see is what is published.
    table = raw(spark, streamed["customers"].path).select("id", "_event_lsn").collect()
    assert run.oracle.commits is not None
    expected = run.oracle.commits[-1]["customers"]["count"]
    assert len(table) == len({row["id"] for row in table}) == expected
    assert all(row["_event_lsn"] is not None for row in table)


def said_to_be_adopted(
    spark: SparkSession, config: PipelineConfig, tables: Collection[str]
) -> bool:
    """Tell whether a look at the pipeline finds its tables still to be adopted."""
    summary, *_ = validate_pipeline(spark, config).seen
    return f"{len(tables)} tables to be adopted" in summary


def test_a_look_at_a_pipeline_that_will_adopt_reads_its_log_as_the_run_and_a_late_commit_stops_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An Avro log of three rows without the last END; read as JSON it would have nothing."""
    log = Log(tmp_path / "log")
    for number in (1, 2, 3):
        log.commit(2, OLD, {"id": number, "n": number})
    del log.ends[-1]
    log.write(1, 2, 3)
    orders = "public.orders"
    path = str(tmp_path / "lake" / orders)
    streamed(spark, path, "COPY_ON_WRITE", FIRST)
    given = {
        "pipeline.name": "orders",
        "source.kind": "recorded",
        "source.path": str(log.folder),
        "source.format": "avro",
        "source.connector": "postgresql",
        "source.topic.prefix": "shop",
        "source.topics": f"shop.{orders}",
        "target.path": str(tmp_path / "lake"),
        "target.format": "hudi",
        "deletes": "hard",
        f"table.{orders}.adopt": "hudi-streamer",
    }

    def config(taken: int) -> PipelineConfig:
        """Say how many of the rows Hudi Streamer has read."""
        named = {**given, f"table.{orders}.checkpoint": f"shop.{orders},0:{taken}"}
        return load_config({f"lakeingest.{key}": text for key, text in named.items()})

    with pytest.raises(DataError, match="changes of 1 rows whose transaction has no END"):
        validate_pipeline(spark, config(3))

    def failpoint(passed: str) -> None:
        if passed == "0.before-adoption":
            streamed(spark, path, "COPY_ON_WRITE", FIRST)

    # A commit of Hudi Streamer's: the frontier that was found knows nothing of it.
    monkeypatch.setattr(adopt, "failpoint", failpoint)
    with pytest.raises(TransientError, match="written to while it was about to be adopted"):
        run_pipeline(spark, config(2))
    assert [commit.metadata for commit in commits(spark, path)] == [None, None]


def by_moved_keys(spark: SparkSession, run: RecordedRun, target: Path) -> None:
    """A value that Hudi had stored fills later changes that leave it out.

    Hudi stores the placeholder for what a key change left out: the old key's row is another one.
    """
    final = run.oracle.final("documents")
    columns = (final.header.index("id"), final.header.index("body"))
    expected = {row[columns[0]]: row[columns[1]] for row in final.rows}
    shown = open_lake(spark, str(target)).table(run.collection("documents"))
    assert shown.where(f"body = '{PLACEHOLDER}' OR extra = '{PLACEHOLDER}'").isEmpty()
    bodies = {str(row["id"]): row["body"] for row in shown.select("id", "body").collect()}
    assert bodies.keys() == expected.keys()
    different = [key for key, body in expected.items() if body not in (bodies[key], "\\N")]
    assert all(int(key) > 10_000_000 and bodies[key] is None for key in different), different
    assert len(different) < len(expected) / 10
