"""A source names its columns as it likes; Spark reads a dot in a name as "field of"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from tests.forms import further
from tests.recordings.altered import Line, altered
from tests.recordings.configure import packaged_run, write_properties
from tests.recordings.shown import ShownLake

pytestmark = [pytest.mark.slow, pytest.mark.soak]

DOTTED = {"id": "i.d", "body": "bo.dy"}
"""A key that changes, and a column that TOAST leaves out."""

COLLECTION = "public.documents"


@pytest.mark.parametrize("deletes", [further("soft"), "hard"])
def test_columns_with_a_dot_in_their_name_hold_what_the_source_holds(
    spark: SparkSession, tmp_path: Path, deletes: str
) -> None:
    run = altered(packaged_run(), tmp_path / "log", documents=dotted)
    topics = [f"{run.prefix}.{table}" for table in (COLLECTION, "public.carts")]
    properties = run.configuration(
        tmp_path / "lake", batch_max_events="4000", deletes=deletes, source_topics=",".join(topics)
    )
    schema = f"lakeingest.table.{COLLECTION}.schema"
    for name, dots in DOTTED.items():
        properties[schema] = properties[schema].replace(f"{name} ", f"`{dots}` ", 1)
    configuration = write_properties(tmp_path / "pipeline.properties", properties)
    assert run_pipeline(spark, load_config(configuration)).batches > 2
    shown, final = ShownLake(configuration).rows(COLLECTION), run.oracle.final("documents")
    assert shown.header == tuple(DOTTED.get(name, name) for name in final.header)
    assert shown.rows == final.rows


def dotted(lines: list[Line]) -> list[Line]:
    """Return the records with other column names, in the headers of a changed key, too."""
    return [
        {
            **line,
            "k": renamed(line["k"]),
            "v": renamed(line["v"]),
            "h": [[name, renamed(value)] for name, value in line.get("h") or ()],
        }
        for line in lines
    ]


def renamed(text: str | None) -> str | None:
    """Rename the columns of an envelope or a key; other text stays as it is."""
    if text is None or not text.startswith("{"):
        return text
    read = json.loads(text)
    if "op" not in read:
        return json.dumps(_row(read))
    return json.dumps({**read, "before": _row(read["before"]), "after": _row(read["after"])})


def _row(row: dict[str, Any] | None) -> dict[str, Any] | None:
    return row and {DOTTED.get(name, name): value for name, value in row.items()}
