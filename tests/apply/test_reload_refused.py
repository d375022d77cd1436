"""Where a table cannot be loaded anew, or not beside something else, nothing is published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply.choice.reload import Reloading
from lakeingest.apply.choice.reloading import refuse_source
from lakeingest.apply.inspect.explain import State, explain_pipeline
from lakeingest.errors import ConfigError, UsageError
from lakeingest.ledger.publication import Frontier
from tests.logs.shop import Shop, row
from tests.logs.written import WrittenLog, topic_of

A, B = "public.a", "public.b"


def reload(shop: Shop, *tables: str, undo: bool = False, **settings: str) -> Reloading:
    return lakeingest.reload(shop.spark, shop.configured(**settings), *tables, undo=undo)


@pytest.mark.slow
def test_its_topic_must_be_read_and_a_new_snapshot_of_all_tables_waits_meanwhile(
    shop: Shop,
) -> None:
    again = {"source_snapshot_again": "replace"}
    with pytest.raises(ConfigError, match="One at a time"):
        reload(shop, B, undo=False, **again)
    reload(shop, B)
    shop.commit(a=30, b=31)
    with pytest.raises(ConfigError, match=r"'public\.b' is published .* not read any more"):
        shop.run(source_topics=topic_of(A))
    explained = explain_pipeline(shop.spark, shop.configured(**again))
    assert (explained.state, explained.exit_code) == (State.STOPPED, ConfigError.exit_code)
    assert "To be loaded anew: public.b." in " ".join(explained.reasons)
    with pytest.raises(ConfigError, match="One at a time"):
        shop.run(**again)
    assert reload(shop, B, undo=True, **again) == Reloading(3, (B,))
    shop.run(**again)
    assert shop.tables() == {A: {1: 10, 2: 20, 3: 30}, B: {1: 11, 2: 21, 3: 31}}


def test_a_source_whose_rows_alone_have_places_is_refused(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path / "log", "oracle")
    log.put(replace(row(A, 1, 1, 1, 10), source={"schema": "public", "table": "a"}))
    with pytest.raises(UsageError, match="does not say where a transaction stands"):
        refuse_source(log.configured(tmp_path / "lake"), Frontier())


@pytest.mark.slow
def test_rows_without_key_and_run_are_not_read_again(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    shop = Shop(spark, log, lake, {f"table.{B}.keyless": "append"})

    def commit(number: int) -> None:
        without_key = replace(row(B, number, 2, number, 11), key=False, op="c")
        with_key = row(A, number, 1, number, 1)
        log.transaction(f"{number}:{1000 * number + 100}", with_key, without_key)

    commit(1)
    shop.run()
    with pytest.raises(UsageError, match=rf"rows of table '{B}', which has no key"):
        reload(shop, B)
    shop.retire()
    commit(2)
    with pytest.raises(UsageError, match=rf"rows of table '{B}', which has no key"):
        shop.retire(undo=True)
    # Those of a table with a key are, though the other one is retired.
    assert reload(shop, A) == Reloading(3, (A,), 2)
