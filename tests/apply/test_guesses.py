"""Types that JSON alone does not tell: refused before anything is published, all tables at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply.inspect.validate import validate_pipeline
from lakeingest.apply.table.guesses import Guesses
from lakeingest.config import load_config
from lakeingest.errors import ConfigError, LakeingestError
from lakeingest.plan.inference import InferredType
from tests.config.settings import RECORDED
from tests.forms import with_all
from tests.logs.written import Sent, WrittenLog, place_of

A, B = "public.a", "public.b"


def a_log(folder: Path) -> WrittenLog:
    log = WrittenLog(folder, "postgresql", declared=False)
    rows = (Sent(name, 1, 10, place_of(name, 150, 100, txId=1), "c") for name in (A, B))
    log.transaction("1:200", *rows)
    return log


@with_all
def test_nothing_is_published_on_a_guess(spark: SparkSession, tmp_path: Path) -> None:
    log, lake = a_log(tmp_path / "log"), tmp_path / "lake"
    with pytest.raises(ConfigError, match="tell these types"):
        validate_pipeline(spark, log.configured(lake, types_guess="stop"))
    with pytest.raises(ConfigError) as stopped:
        log.ingest(spark, lake, types_guess="stop")
    lines = [line for line in str(stopped.value).splitlines() if ".schema=" in line]
    assert [line.partition("=")[0] for line in lines] == [
        f"lakeingest.table.{name}.schema" for name in (A, B)
    ]
    with pytest.raises(LakeingestError):
        lakeingest.open(spark, str(lake)).snapshot()


def guesses(**settings: str) -> Guesses:
    return Guesses(load_config({**RECORDED, **settings}))


def test_a_line_keeps_what_is_declared_and_quotes_strange_names() -> None:
    refused = guesses(**{"lakeingest.table.public.t.schema": "id BIGINT, day DATE"})
    columns = {"a.b": InferredType("string", False), "n": InferredType("int64", False)}
    refused.add("public.t", {**columns, "sure": InferredType("boolean", True)})
    with pytest.raises(ConfigError, match=r"schema=id BIGINT, day DATE, `a\.b` STRING, n BIGINT\n"):
        refused.refuse()


def test_a_fraction_may_be_a_decimal_only_where_decimals_are_numbers() -> None:
    fraction = {"price": InferredType("float64", True)}
    refused = guesses()
    refused.add("public.t", fraction)
    refused.refuse()
    for key, mode in (("decimal.format", "NUMERIC"), ("decimal.handling.mode", "double")):
        refused = guesses(**{f"lakeingest.source.{key}": mode})
        refused.add("public.t", fraction)
        with pytest.raises(ConfigError, match="price DOUBLE"):
            refused.refuse()


def test_the_lines_to_add_are_read_as_they_are_printed(tmp_path: Path) -> None:
    refused = guesses()
    refused.add("public.Order Items", {"a\\b c": InferredType("int64", False)})
    with pytest.raises(ConfigError) as error:
        refused.refuse()
    (line,) = (text for text in str(error.value).splitlines() if text.startswith("lakeingest."))
    file = tmp_path / "p.properties"
    file.write_text("".join(f"{k}={v}\n" for k, v in RECORDED.items()) + line, "utf-8")
    assert load_config(file).tables["public.Order Items"].ddl == "`a\\b c` BIGINT"
