"""The plan is pure: it starts no job, runs no Python on rows, and its stages fit one another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

import lakeingest
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.decode.types.composed import array
from lakeingest.decode.types.decimals import decimal
from lakeingest.decode.types.logical import PRIMITIVES, SEMANTIC
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.frame_schemas import BOUNDARY, CHANGE, ENVELOPE, RECORD
from lakeingest.plan import table as table_plan
from lakeingest.plan.batches import in_batches
from lakeingest.plan.inference import readable_counts
from lakeingest.plan.spec import PipelineSpec, TableSpec
from lakeingest.plan.window import is_counted, window_boundaries, window_changes, window_metadata
from lakeingest.position import after
from lakeingest.transaction import completeness
from lakeingest.transaction.completeness import incomplete_transactions, without_whole_incarnation
from lakeingest.transaction.cut import Cut
from tests.envelope.records import frame, vectors

ROOT = Path(lakeingest.__file__).parent
PURE = ("decode", "envelope", "transaction", "payload", "plan", "position")

FORBIDDEN_ATTRIBUTES = {
    *("_jdf", "_jvm", "rdd", "read", "readStream", "sparkContext", "sparkSession"),
    *("cache", "checkpoint", "localCheckpoint", "persist", "write", "writeStream", "writeTo"),
    *("collect", "count", "first", "foreach", "foreachPartition", "head", "isEmpty", "show"),
    *("take", "toLocalIterator", "toPandas"),
}
FORBIDDEN_NAMES = {"SparkContext", "SparkSession", "pandas_udf", "udf"}
FORBIDDEN_MODULES = {"datetime", "os", "pathlib", "random", "time"}
"""Clocks, files and chance: what a plan must be told as an argument."""


def impurities(source: str) -> Iterator[str]:
    """Yield what a module may not mention; functions of ``F`` are expressions, not actions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            of_functions = isinstance(node.value, ast.Name) and node.value.id == "F"
            names = FORBIDDEN_NAMES if of_functions else FORBIDDEN_NAMES | FORBIDDEN_ATTRIBUTES
            if node.attr in names:
                yield f"line {node.lineno}: .{node.attr}"
        elif isinstance(node, ast.Name) and node.id in FORBIDDEN_NAMES:
            yield f"line {node.lineno}: {node.id}"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            for name in (module, *(alias.name for alias in node.names)):
                if name and name.partition(".")[0] in FORBIDDEN_NAMES | FORBIDDEN_MODULES:
                    yield f"line {node.lineno}: import {name}"


def modules(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_module_of_the_plan_mentions_no_action_session_or_clock() -> None:
    pure = modules(*PURE)
    assert {path.relative_to(ROOT).parts[0] for path in pure} == {*PURE}
    mentions = {named(path): [*impurities(path.read_text("utf-8"))] for path in pure}
    assert {name: lines for name, lines in mentions.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "frame.collect()",
        "frame.count()",
        "frame.cache().select(1)",
        "frame.write.format('delta')",
        "frame.rdd.map(f)",
        "spark.readStream",
        "F.udf(f)",
        "from pyspark.sql import SparkSession",
        "from pyspark.sql.functions import udf",
        "frame.first()",
        "session._jvm.x",
        "frame.toPandas()",
        "import time",
        "from datetime import datetime",
    ],
)
def test_the_checker_sees_what_is_forbidden(line: str) -> None:
    assert list(impurities(line)) != []
    assert list(impurities("F.count('x'); F.first('x'); F.collect_set('x')")) == []


def test_no_module_is_longer_than_400_lines() -> None:
    lines = {named(path): len(path.read_text("utf-8").splitlines()) for path in modules(".")}
    assert len(lines) > 100
    assert {name: number for name, number in lines.items() if number > 400} == {}


SPEC = PipelineSpec("postgresql", Encodings())
TABLE = TableSpec(
    "public.b",
    (
        SourceColumn("id", PRIMITIVES["int32"]),
        SourceColumn("v", PRIMITIVES["string"]),
        SourceColumn("n", decimal(38, 2)),
        SourceColumn("d", SEMANTIC["io.debezium.time.Date"]),
        SourceColumn("tz", SEMANTIC["io.debezium.time.ZonedTimestamp"]),
        SourceColumn("days", array(SEMANTIC["io.debezium.time.Date"])),
    ),
    ("id",),
)


def whole_plan(records: DataFrame) -> list[DataFrame]:
    """Build every frame that a window and its tables need; run none."""
    window = window_changes(records, SPEC)
    ends = window_boundaries(window_metadata(records, SPEC), SPEC)
    counted = is_counted(F.col("data_collection").isin("public.a"), ("public.e",))
    cuts = [Cut(0, 5, after(0, 9, 0), 2, 3), Cut(6, 9, after(0, 12, 0), 1, 1)]
    batched = in_batches(window, ends, cuts, after(0, 1, 0), snapshot=True)
    rows = table_plan.rows_above(window, after(0, 1, 0))
    return [
        window,
        ends,
        incomplete_transactions(window, ends, counted),
        without_whole_incarnation(window, ends, counted),
        batched,
        table_plan.payload_of_whole_rows(rows, TABLE, SPEC),
        table_plan.payload_of_partial_rows(table_plan.decoded_rows(rows, TABLE, SPEC), TABLE, SPEC),
        readable_counts(rows, ["id", "v"]),
    ]


@pytest.fixture(scope="module")
def records(spark: SparkSession) -> DataFrame:
    return frame(spark, vectors("postgresql"))


def has(built: DataFrame, pattern: str) -> bool:
    """Return whether a kind of expression is in a plan as it was asked for.

    That Spark makes it quicker afterwards adds no Python.
    """
    frame: Any = built
    kinds = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    return bool(frame._jdf.queryExecution().analyzed().containsPattern(getattr(kinds, pattern)()))


def steps(built: DataFrame) -> str:
    """Return the plan as text, with the name of each step."""
    return str(built._jdf.queryExecution().analyzed().toString())


def test_building_the_plan_of_a_window_and_of_its_payloads_starts_no_job_and_has_no_python(
    spark: SparkSession, records: DataFrame
) -> None:
    context = spark.sparkContext
    context.setJobGroup("building", "nothing may run in it")
    try:
        frames = whole_plan(records)
        assert all(built.schema for built in frames)
        assert list(context.statusTracker().getJobIdsForGroup("building")) == []
        # The group does see jobs: this one is the counter-example.
        records.limit(1).collect()
        assert list(context.statusTracker().getJobIdsForGroup("building")) != []
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
    for built in frames:
        assert has(built, "JSON_TO_STRUCT")
        assert not has(built, "PYTHON_UDF")
        text = steps(built)
        for word in ("Python", "Pandas", "InArrow"):
            assert word not in text
    counter = records.select(F.udf(lambda value: value, "string")("topic"))
    assert has(counter.where("topic = 't'").groupBy().count(), "PYTHON_UDF")


def fits(output: StructType, contract: StructType) -> list[str]:
    """Say where an output is not what the next stage was promised."""

    def columns(schema: StructType) -> list[tuple[str, DataType]]:
        return [(field.name, field.dataType) for field in schema]

    problems = [] if columns(output) == columns(contract) else [f"{output} is not {contract}"]
    promised = {field.name for field in contract if not field.nullable}
    loose = {field.name for field in output if field.nullable} & promised
    return problems + [f"{name} may be null" for name in sorted(loose)]


def test_each_stage_gives_what_the_next_one_takes(records: DataFrame) -> None:
    assert records.schema == RECORD
    envelopes = decode_envelope(records)
    assert fits(envelopes.schema, ENVELOPE) == []
    window = changes(envelopes, ChangeSpec("postgresql"))
    assert fits(window.schema, CHANGE) == []
    assert fits(changes(envelopes, ChangeSpec("mariadb")).schema, CHANGE) == []
    ends = window_boundaries(window_metadata(records, SPEC), SPEC)
    assert fits(ends.drop("domain").schema, BOUNDARY) == []
    assert fits(completeness.with_end_offset(window, ends).drop("end_offset").schema, CHANGE) == []


def test_both_folds_give_payloads_of_one_shape(records: DataFrame) -> None:
    window = window_changes(records, SPEC)
    whole = table_plan.payload_of_whole_rows(window, TABLE, SPEC)
    partial = table_plan.payload_of_partial_rows(
        table_plan.decoded_rows(window, TABLE, SPEC), TABLE, SPEC
    )

    def types(built: DataFrame) -> list[tuple[str, str]]:
        return [
            (field.name, field.dataType.simpleString())
            for field in built.schema
            if field.name != "__lakeingest_link"
        ]

    assert types(whole) == types(partial)
    assert types(whole)[: len(TABLE.columns)] == [
        (column.name, column.type.spark.simpleString()) for column in TABLE.columns
    ]
