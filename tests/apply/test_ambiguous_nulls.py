"""A recorded run whose unchanged values come as NULL, as Debezium sends bytea in base64 modes."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import lakeingest
from lakeingest.apply.run import run_pipeline
from lakeingest.cli.output import NULL
from lakeingest.config import load_config
from lakeingest.errors import DataError
from tests.recordings.altered import Line, altered
from tests.recordings.configure import packaged_run, write_properties

pytestmark = pytest.mark.slow

COLLECTION = "public.documents"
PLACEHOLDER = "__debezium_unavailable_value"


def as_octets(found: list[Line]) -> list[Line]:
    """Return the records with ``body`` as bytea: what was unavailable is NULL."""
    return [{**line, "v": _with_octets(line["v"])} for line in found]


def _with_octets(text: str | None) -> str | None:
    value = json.loads(text) if text else {}
    row = value.get("after")
    if row is None:
        return text
    body = row["body"]
    absent = body is None or body == PLACEHOLDER
    octets = None if absent else base64.b64encode(body.encode()).decode()
    return json.dumps({**value, "after": {**row, "body": octets}})


def configured(folder: Path, policy: str) -> tuple[Path, dict[str, str | None]]:
    """Write a configuration; return it and the bodies that the source has at the end."""
    run = altered(packaged_run(), folder / "log", documents=as_octets)
    properties = run.configuration(
        folder / "lake",
        source_topics=",".join(f"{run.prefix}.{name}" for name in (COLLECTION, "public.carts")),
        source_binary_handling_mode="base64",
        ambiguous_nulls=policy,
        batch_max_events="4000",
    )
    schema = f"lakeingest.table.{COLLECTION}.schema"
    properties[schema] = properties[schema].replace("body STRING", "body BINARY")
    final = run.oracle.final("documents")
    at = final.header.index("body")
    return write_properties(folder / "pipeline.properties", properties), {
        str(row[0]): None if row[at] == NULL else row[at] for row in final.rows
    }


@pytest.mark.soak
def test_kept_values_are_those_of_the_source_across_changed_keys(
    spark: SparkSession, tmp_path: Path
) -> None:
    configuration, expected = configured(tmp_path, "keep")
    assert run_pipeline(spark, load_config(configuration)).batches > 2
    table = lakeingest.open(spark, str(tmp_path / "lake")).snapshot().table(COLLECTION)
    rows = table.select(F.col("id").cast("string"), F.decode("body", "utf-8")).collect()
    found = {row[0]: row[1] for row in rows}
    assert found.keys() == expected.keys()
    assert sum(body is not None for body in expected.values()) > 30
    # A NULL that an update did set cannot be told from an unchanged value: that is the price.
    assert {key: body for key, body in found.items() if expected[key] is not None} == {
        key: body for key, body in expected.items() if body is not None
    }


@pytest.mark.soak
def test_the_run_stops_at_such_a_null_where_the_user_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    configuration, _ = configured(tmp_path, "fail")
    with pytest.raises(DataError, match=f"Table '{COLLECTION}', column 'body'.*FULL"):
        run_pipeline(spark, load_config(configuration))
