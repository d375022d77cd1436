"""Tables with names that no folder, or no SQL, takes as they are: from log to lake and views."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.table import new_tables
from lakeingest.engine.file_names import is_case_sensitive
from lakeingest.errors import ConfigError
from lakeingest.reader import open_lake
from tests.apply.published import read_table
from tests.apply.test_rewritten_names import log_of, sent
from tests.logs.shop import Shop

pytestmark = pytest.mark.slow

ROWS = {1: 10, 2: 20}


@pytest.mark.soak
def test_no_name_leads_out_of_the_lake_or_into_another_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = ("public./../../escaped", "public.orders", "public.orders/sub", "public.a`b'c\"d")
    outer = tmp_path / 'la`ke\'s "of" 100% #1'
    lake = outer / "lake"
    log_of(tmp_path / "log", *tables).ingest(spark, lake, deletes="hard")
    assert {path.name for path in tmp_path.iterdir()} == {"log", outer.name}
    assert [path.name for path in outer.iterdir()] == ["lake"]
    made = {path.parent.relative_to(lake) for path in lake.rglob("_delta_log")}
    assert len(made - {Path("_lakeingest/ledger")}) == len(tables)
    assert all(len(path.parts) == 1 for path in made - {Path("_lakeingest/ledger")})
    assert {name: read_table(spark, lake, name) for name in tables} == dict.fromkeys(tables, ROWS)
    for view, name in open_lake(spark, str(lake)).snapshot().create_views("odd_").tables.items():
        assert name in tables
        assert spark.table("`" + view.replace("`", "``") + "`").count() == 2


@pytest.mark.soak
def test_tables_that_one_folder_would_hold_are_refused_before_one_is_written(
    spark: SparkSession, tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_tables, "is_case_sensitive", lambda _: False)
    log = log_of(tmp_path / "log", "public.Orders", "public.orders")
    with pytest.raises(ConfigError, match=r"'public\.Orders' and 'public\.orders' would lie in"):
        log.ingest(spark, lake)
    assert not lake.exists()
    log.ingest(spark, lake, **{"table.public.orders.path": "small"})
    assert (
        read_table(spark, lake, "public.orders") == read_table(spark, lake, "public.Orders") == ROWS
    )


def test_a_disk_that_finds_a_folder_with_its_case_swapped_tells_no_case_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lake" / "public.orders"
    assert is_case_sensitive(str(folder))
    monkeypatch.setattr(Path, "exists", lambda _: True)
    monkeypatch.setattr(Path, "samefile", lambda *_: True)
    assert not is_case_sensitive(f"file://{folder}")
    assert is_case_sensitive("s3://bucket/lake")


def test_a_folder_that_holds_another_table_is_refused(shop: Shop) -> None:
    (shop.lake / "public.a").rename(shop.lake / "c")
    shop.commit(c=30)
    with pytest.raises(
        ConfigError, match=r"folder of table 'public\.c', .* holds table 'public.a'"
    ):
        shop.run(**{"table.public.c.path": "c"})


@pytest.mark.soak
def test_a_lake_whose_folders_an_earlier_version_named_is_read_and_can_go_on(
    spark: SparkSession, tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path / "log", "public.Order Items")
    with monkeypatch.context() as patch:
        patch.setattr("lakeingest.folders.folder_name", lambda name: name)
        log.ingest(spark, lake)
    assert (lake / "public.Order Items").is_dir()
    assert read_table(spark, lake, "public.Order Items") == ROWS
    log.begin("3:3000")
    log.rows("3:3000", [sent("public.Order Items", 3001, 3, 30, 3000)])
    log.end("3:3100", {"public.Order Items": 1})
    with pytest.raises(ConfigError, match=r"'public\.Order Items' to 'public\.Order_x0020_Items'"):
        log.ingest(spark, lake)
    (lake / "public.Order Items").rename(lake / "public.Order_x0020_Items")
    log.ingest(spark, lake)
    assert read_table(spark, lake, "public.Order Items") == {**ROWS, 3: 30}
