"""A table is loaded anew from its topic, as a user does it who corrects what the table is."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply import lake as lake_steps
from lakeingest.apply import run
from lakeingest.apply.batch import publish, writer
from lakeingest.apply.choice.reload import Reloading
from lakeingest.apply.inspect.status import pipeline_status
from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.demo import demo_folder
from lakeingest.errors import DataError, UsageError
from lakeingest.reader import open_lake
from tests.apply.crash import crashing_at
from tests.apply.maintained import maintain_quickly
from tests.apply.published import history
from tests.forms import further
from tests.logs.shop import Shop
from tests.logs.written import PREFIX, Sent, WrittenLog, topic_of

pytestmark = pytest.mark.slow

A, B = "public.a", "public.b"


def reload(shop: Shop, *tables: str) -> Reloading:
    return lakeingest.reload(shop.spark, shop.configured(), *(tables or (B,)))


def values(shop: Shop, name: str, as_of: int | None = None) -> dict[object, object]:
    frame = open_lake(shop.spark, str(shop.lake)).snapshot(as_of).table(name)
    return {row["id"]: row["v"] for row in frame.collect()}


def folders(shop: Shop) -> list[str]:
    return sorted(path.name for path in shop.lake.iterdir() if path.name.startswith("public."))


def snapshotted(spark: SparkSession, tmp_path: Path, rows: int = 1) -> Shop:
    """Return a shop whose source copied this many rows of each table in its initial snapshot."""
    shop = Shop(spark, WrittenLog(tmp_path / "log", "postgresql"), tmp_path / "lake", {}, rows)
    sent = [(name, id_) for name in "ab" for id_ in range(1, rows + 1)]
    ends = {("a", rows): "last_in_data_collection", sent[0]: "first", sent[-1]: "last"}
    for name, id_ in sent:
        mark = ends.get((name, id_), "true")
        place = {"schema": "public", "table": name, "lsn": 50, "snapshot": mark}
        shop.log.put(Sent(f"public.{name}", id_, 10 * id_ + (name == "b"), place, "r"))
    return shop


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A shop of which two rows of each table came by its snapshot; b was then loaded anew.

    The load begins behind the snapshot alone. To be copied.
    """
    shop = snapshotted(spark, tmp_path_factory.mktemp("loaded"), 2)
    shop.commit(a=30, b=31)
    config = shop.log.configured(shop.lake)
    run_pipeline(spark, config, max_batches=1)
    assert reload(shop) == Reloading(2, (B,), 3)
    status = pipeline_status(spark, config)
    assert (status["end_offset"], status["reloading_tables"]) == (-1, [B])
    # The first window has one of the three rows of b.
    shop.run(batch_max_events="1", window_max_records="1")
    return shop


@pytest.mark.soak
def test_a_corrected_type_is_that_of_a_load_that_comes_whole_and_older_snapshots_keep_theirs(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql", declared=False)
    shop = Shop(spark, log, tmp_path / "lake", {})
    prices = [b64encode(n.to_bytes(2, "big")).decode() for n in (1234, 1999, 250)]

    def commit() -> None:
        shop.commit(a=shop.number + 1, b=prices[shop.number])  # type: ignore[arg-type]

    commit()
    commit()
    shop.run()
    commit()
    shop.settings[f"table.{B}.schema"] = "id BIGINT, v DECIMAL(6, 2)"
    reload(shop)
    # Its topic is read in several windows: the first one has one of the rows that are published.
    shop.run(batch_max_events="1", window_max_records="1")
    earlier = {A: {1: 1, 2: 2}, B: {1: "BNI=", 2: "B88="}}
    corrected = {1: Decimal("12.34"), 2: Decimal("19.99"), 3: Decimal("2.50")}
    newest = {A: {1: 1, 2: 2, 3: 3}, B: corrected}
    assert history(spark, shop.lake) == {1: earlier, 2: earlier, 3: newest}


@pytest.mark.parametrize("mode", [further("grouped"), "per-transaction"])
def test_a_later_load_has_its_own_folder_and_each_publication_is_one_commit_with_either_versions(
    loaded: Shop, tmp_path: Path, mode: str
) -> None:
    shop = loaded.copied(tmp_path)
    shop.settings["commit_mode"] = mode
    load = reload(shop, A, B).batch
    for v in (41, 51):
        shop.commit(a=v - 1, b=v)
    shop.run()
    assert folders(shop) == [A, f"{A}__load_{load}", B, f"{B}__load_2", f"{B}__load_{load}"]
    sizes = []
    for shown in history(shop.spark, shop.lake).values():
        a, b = ({*shown[name].values()} for name in (A, B))
        assert {v + 1 for v in a} == b
        sizes.append(len(b))
    assert sizes == sorted(sizes)
    assert ({*sizes} == {2, 3, 4, 5}) is (mode == "per-transaction")
    assert shop.tables()[B] == {1: 11, 2: 21, 3: 31, 4: 41, 5: 51}


@pytest.mark.soak
def test_a_new_load_may_have_another_format(shop: Shop) -> None:
    shop.settings |= {f"table.{A}.format": "delta", "target_format": "hudi"}
    reload(shop)
    shop.commit(a=30, b=31)
    shop.run()
    shop.commit(b=41)
    shop.run()
    assert shop.tables() == {A: {1: 10, 2: 20, 3: 30}, B: {1: 11, 2: 21, 3: 31, 4: 41}}
    assert values(shop, B, as_of=1) == {1: 11, 2: 21}


@pytest.mark.soak
@pytest.mark.parametrize("at_rest", [False, True])
@pytest.mark.parametrize(
    ("module", "place"),
    [
        (run, "2.planned"),
        (lake_steps, "2.fenced"),
        (writer, "3.after-first-commit"),
        (writer, "3.after-last-commit"),
        (publish, "4.before-publication"),
        (publish, "4.after-publication"),
    ],
)
def test_a_killed_run_is_gone_on_with_and_readers_see_one_load_or_the_other(
    shop: Shop, module: object, place: str, at_rest: bool
) -> None:
    reload(shop)
    if not at_rest:
        shop.commit(a=30, b=31)
    with crashing_at(place, module):
        shop.run()
    new = {3: 30} if place == "4.after-publication" and not at_rest else {}
    assert shop.tables()[A] == {1: 10, 2: 20, **new}
    assert shop.tables()[B] == {1: 11, 2: 21, **{key: v + 1 for key, v in new.items()}}
    shop.commit(b=41)
    shop.run()
    extra = {} if at_rest else {3: 31}
    assert shop.tables()[B] == {1: 11, 2: 21, **extra, shop.number: 41}


@pytest.mark.soak
def test_a_moved_table_is_read_from_where_it_lay_after_a_killed_load_at_rest_is_gone_on_with(
    shop: Shop,
) -> None:
    (shop.lake / B).rename(shop.lake / "moved")
    shop.settings[f"table.{B}.path"] = "moved"
    shop.commit(a=30, b=31)
    shop.run()
    reload(shop)
    with crashing_at("3.after-last-commit", writer):
        shop.run()
    assert shop.tables() == {A: {1: 10, 2: 20, 3: 30}, B: {1: 11, 2: 21, 3: 31}}
    shop.commit(b=41)
    shop.run()
    shown = [rows[B] for _, rows in sorted(history(shop.spark, shop.lake).items())]
    assert shown[:2] == [{1: 11, 2: 21}, {1: 11, 2: 21, 3: 31}]
    assert shown[-1] == {1: 11, 2: 21, 3: 31, 4: 41}


@pytest.mark.soak
def test_a_table_that_was_loaded_anew_is_maintained_and_retired_and_taken_up_again(
    loaded: Shop, tmp_path: Path
) -> None:
    shop = loaded.copied(tmp_path)
    maintain_quickly(shop.spark, shop.log.configured(shop.lake, **shop.settings))
    assert values(shop, B, as_of=1) == {1: 11, 2: 21}
    shop.retire()
    shop.commit(a=40, b=41)
    shop.retire(undo=True)
    shop.commit(b=51)
    shop.run()
    assert shop.tables()[B] == {1: 11, 2: 21, 3: 31, 4: 41, 5: 51}
    assert folders(shop) == [A, B, f"{B}__load_2"]


def test_it_may_come_between_a_killed_run_and_the_ones_that_finish_its_batch_the_first_killed_too(
    shop: Shop,
) -> None:
    """The types of the table may be what stops each run after other tables are written."""
    shop.commit(a=30, b=31)
    with crashing_at("3.after-last-commit", writer):
        shop.run()
    ends = shop.log._topics[f"{PREFIX}.transaction"]
    lost, ends[4:] = ends[4:], []
    # As if the broker had lost its newest records: the tables hold rows of that END.
    with pytest.raises(DataError, match="hold transactions up to the END at offset 5 "):
        shop.run()
    ends += lost
    reload(shop)
    assert shop.tables() == {A: {1: 10, 2: 20}, B: {1: 11, 2: 21}}
    shop.commit(a=40, b=41)
    # Table a is ahead: no publication may end before what it holds, or behind it without b.
    with crashing_at("4.before-publication", publish):
        shop.run(commit_max_transactions="1")
    assert shop.tables() == {A: {1: 10, 2: 20}, B: {1: 11, 2: 21}}
    shop.run(commit_max_transactions="1")
    shown = history(shop.spark, shop.lake)
    for tables in shown.values():
        a, b = ({*tables[name].values()} for name in (A, B))
        assert {v + 1 for v in a} == b
    assert shown[max(shown)][B] == {1: 11, 2: 21, 3: 31, 4: 41}


def test_what_cannot_be_loaded_anew_is_refused_and_nothing_is_published(shop: Shop) -> None:
    with pytest.raises(
        UsageError, match=r"'public\.bb' is published; did you mean .*: delete its folder"
    ):
        reload(shop, "public.bb")
    events_on_their_own = replace(shop, settings={"transaction_mode": "none"})
    with pytest.raises(UsageError, match=r"transaction\.mode=none"):
        reload(events_on_their_own)
    path = shop.log.folder / "topics" / f"{topic_of(B)}.jsonl.gz"
    records = shop.log._topics[topic_of(B)]
    shop.log._topics[topic_of(B)] = [None, *records[1:]]
    with pytest.raises(DataError, match=r"'w\.public\.b' .* at offset 1"):
        reload(shop)
    assert path.exists()
    # Made again, it does not hold the whole table.
    shop.log.drop(B)
    shop.commit(a=30, b=31)
    with pytest.raises(DataError, match=topic_of(B)):
        reload(shop)
    assert shop.tables() == {A: {1: 10, 2: 20}, B: {1: 11, 2: 21}}
    assert open_lake(shop.spark, str(shop.lake)).snapshot().batch == 1


@pytest.mark.soak
def test_a_table_with_a_snapshot_key_changes_and_toast_is_loaded_anew_from_its_topic(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = demo_folder()
    settings = [f"lakeingest.source.path={folder}", f"lakeingest.target.path={tmp_path / 'lake'}"]
    config = load_config(folder / "pipeline.properties", settings)
    run_pipeline(spark, config)
    names = ("public.customers", "public.documents", "public.orders", "public.stock_log")
    lakeingest.reload(spark, config, *names)
    assert run_pipeline(spark, config).batches == 1
    lake = open_lake(spark, str(tmp_path / "lake"))
    for name in names:
        before, now = lake.snapshot(2).table(name), lake.snapshot().table(name)
        assert sorted(map(str, now.collect())) == sorted(map(str, before.collect()))
        assert lake.snapshot().folder(name).endswith("__load_3")


@pytest.mark.soak
def test_a_table_that_only_the_snapshot_filled_is_loaded_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = snapshotted(spark, tmp_path)
    shop.commit(a=20)
    shop.run()
    reload(shop)
    assert shop.run().batches == 1
    assert shop.tables() == {A: {1: 10, 2: 20}, B: {1: 11}}
    assert folders(shop) == [A, B, f"{B}__load_3"]
    assert shop.run().nothing_new


def test_behind_the_snapshot_alone_the_new_load_comes_whole_with_the_first_transaction(
    loaded: Shop,
) -> None:
    assert folders(loaded) == [A, B, f"{B}__load_2"]
    copied = {A: {1: 10, 2: 20}, B: {1: 11, 2: 21}}
    newest = {A: {**copied[A], 3: 30}, B: {**copied[B], 3: 31}}
    shown = history(loaded.spark, loaded.lake)
    assert shown == {1: copied, 2: copied, 3: newest}
    assert open_lake(loaded.spark, str(loaded.lake)).diff(3).tables() == [A, B]
