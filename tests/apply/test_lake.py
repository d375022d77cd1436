"""Taking over a lake: nothing that another driver did meanwhile is overlooked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from lakeingest.apply.lake import LakeState, read_lake, same_progress, take_over, with_tables
from lakeingest.engine.delta.log import java_log
from lakeingest.errors import ConfigError
from lakeingest.folders import LEDGER_FOLDER, LakeFolders
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Frontier, Publication
from lakeingest.sink.contract import Sink, TableState
from tests.apply.published import table as table_of
from tests.logs.shop import Shop
from tests.notes import commit_note


def table(name: str, run: str = "first") -> TableState:
    return TableState(3, commit_note(name, run=run, token=1, end_offset=0))


@dataclass
class Claimed:
    """A ledger whose claim brings what was published since."""

    newest: Publication

    def claim(self, _: Publication) -> Publication:
        return self.newest

    def head(self) -> Publication:
        return self.newest


@dataclass
class Tables:
    """Tables that are there, and which of them were looked at and fenced."""

    names: tuple[str, ...]
    fenced: list[str] = field(default_factory=list)
    looked_at: list[str] = field(default_factory=list)
    ahead: tuple[str, ...] = ()

    def state(self, collection: str, _: int | None = None) -> TableState | None:
        self.looked_at.append(collection)
        table_state = table(collection) if collection in self.names else None
        if table_state is None or collection not in self.ahead:
            return table_state
        return replace(table_state, note=replace(table_state.note, batch=3, end_offset=9))

    def fence(self, state: TableState, _: int, run: str) -> TableState:
        self.fenced.append(state.note.collection)
        return replace(state, note=replace(state.note, run=run))


def test_a_table_that_another_driver_made_and_published_meanwhile_is_fenced_too() -> None:
    head = Publication(batch=2, writer=2, run="second", tables={"a": 3, "b": 3})
    sink = Tables(("a", "b"))
    state = LakeState(Publication(batch=1, writer=1, tables={"a": 2}), {"a": table("a")})
    taken = take_over(cast(DeltaLedger, Claimed(head)), cast(Sink, sink), state)
    assert sorted(sink.fenced) == ["a", "b"]
    assert taken.ours
    assert taken.head == head
    assert {name: one.note.run for name, one in taken.tables.items()} == {
        "a": "second",
        "b": "second",
    }


def read(ledger: Claimed, sink: Tables, *names: str, **paths: str) -> LakeState:
    return read_lake(
        cast(DeltaLedger, ledger), cast(Sink, sink), names, LakeFolders("/lake", paths)
    )


def test_an_idle_table_whose_folder_is_another_one_is_looked_at() -> None:
    """The next publication names the folder, whatever it changes."""
    published = replace(RELEASED, paths={"idle0": "old"})
    sink = Tables(("a", *IDLE))
    read(Claimed(published), sink, idle0="old")
    assert sink.looked_at == []
    for paths, looked_at in (({}, "idle0"), ({"idle0": "old", "idle7": "new"}, "idle7")):
        read(Claimed(published), sink, **paths)
        assert sink.looked_at == [looked_at]
        sink.looked_at.clear()


def test_a_published_table_that_is_not_there_is_refused_and_not_made_anew() -> None:
    ledger = Claimed(Publication(batch=2, writer=2, run="first", tables={"a": 3, "b": 3}))
    with pytest.raises(ConfigError, match="no table of the configured format: b"):
        read(ledger, Tables(("a", "c")), "a", "b", "c")


def test_one_that_was_taken_up_again_and_is_not_shown_yet_is_not_made_anew_either() -> None:
    ledger, tables = Claimed(replace(RELEASED, paths={"b": "b"})), Tables(("a", "b", *IDLE))
    assert read(ledger, tables).paths({"a": 4}, LakeFolders("/lake")) == {"b": "b"}
    with pytest.raises(ConfigError, match="no table of the configured format: b"):
        read(ledger, Tables(("a", *IDLE)))


def test_tables_of_an_adoption_that_was_given_up_are_not_begun_in_the_middle() -> None:
    frontier = Frontier(offsets={"shop.a": {0: 7}, "shop.b": {0: 5}})
    with pytest.raises(ConfigError, match=r"shop\.a, shop\.b was begun .* only none is adopted"):
        read(Claimed(Publication(writer=1, frontier=frontier)), Tables(("a",)), "a", "b")


def test_a_table_that_was_put_back_to_before_its_publication_is_refused() -> None:
    ledger = Claimed(Publication(batch=2, writer=2, run="first", tables={"a": 3, "b": 4}))
    with pytest.raises(ConfigError, match="behind the newest publication.*missing from them: b\\."):
        read(ledger, Tables(("a", "b")), "a", "b")


def test_what_changes_no_table_publishes_adopted_ones_though_it_is_the_first_publication() -> None:
    mine, other = table("a"), table("b")
    adopted = replace(other, version=5, note=replace(other.note, adopted_at="0001"))
    state = LakeState(Publication(writer=2), {"a": mine, "b": adopted})
    folders = LakeFolders("/lake", {"b": "old/b"})
    made = state.unchanged(Publication(batch=1, writer=2), folders)
    assert (made.tables, made.paths) == ({"b": 5}, {"b": "old/b"})


IDLE = tuple(f"idle{number}" for number in range(95))
RELEASED = Publication(
    batch=2, writer=2, run="first", tables={"a": 3, **dict.fromkeys(IDLE, 3)}, released=True
)


def test_after_a_release_only_the_tables_of_the_window_are_looked_at_and_none_is_fenced() -> None:
    sink = Tables(("a", *IDLE))
    ledger = Claimed(replace(RELEASED, run="second", writer=3))
    state = read(Claimed(RELEASED), sink, "a", *IDLE)
    assert sink.looked_at == []
    state = with_tables(state, cast(Sink, sink), ("a", "new"))
    taken = take_over(cast(DeltaLedger, ledger), cast(Sink, sink), state)
    assert (sink.looked_at, sink.fenced) == (["a", "new"], [])
    assert same_progress(state, taken)
    assert with_tables(taken, cast(Sink, sink), ("a",)) == taken


def test_a_claim_that_meets_an_unreleased_one_fences_every_table_that_is_published() -> None:
    sink = Tables(("a", *IDLE))
    state = with_tables(LakeState(RELEASED, {}), cast(Sink, sink), ("a",))
    killed = replace(RELEASED, run="second", writer=4, released=False)
    take_over(cast(DeltaLedger, Claimed(killed)), cast(Sink, sink), state)
    assert sorted(sink.fenced) == sorted(("a", *IDLE))


def test_what_was_looked_at_before_another_run_published_and_ended_is_looked_at_again() -> None:
    sink = Tables(("a",))
    state = with_tables(LakeState(RELEASED, {}), cast(Sink, sink), ("a",))
    later = replace(RELEASED, batch=3, run="second", writer=4)
    taken = take_over(cast(DeltaLedger, Claimed(later)), cast(Sink, sink), state)
    assert taken.tables == {}
    assert not same_progress(state, taken)


def test_a_table_that_was_made_and_never_published_is_found_by_its_records_and_fenced() -> None:
    # No topic has the name of "Order Items", so nothing but its records tells of it.
    sink = Tables(("a", "Order Items"), ahead=("Order Items",))
    state = read(Claimed(RELEASED), sink, "a", "Order_Items")
    assert state.through is None
    assert with_tables(state, cast(Sink, sink), ("a", "Order Items")).through == 9
    ledger = Claimed(replace(RELEASED, run="second", writer=3))
    taken = take_over(cast(DeltaLedger, ledger), cast(Sink, sink), state)
    assert with_tables(taken, cast(Sink, sink), ("Order Items",)).through == 9
    assert sink.fenced == ["Order Items"]


def test_a_table_that_was_never_published_is_ahead_though_its_batch_was_numbered_again() -> None:
    # A driver slept after its claim; others published batches of other sizes under its numbers.
    made = TableState(0, commit_note("new", run="first", token=1, batch=2, end_offset=9))
    head = replace(RELEASED, batch=7, frontier=Frontier(end_offset=5))
    assert LakeState(head, {"new": made}).through == 9
    # Also where it was published: a publication of a command may have the number of its batch.
    assert LakeState(replace(head, tables={"new": 0}), {"new": made}).through == 9


def test_a_run_leaves_idle_tables_as_they_are_and_reads_progress_that_log_clean_up_took(
    shop: Shop,
) -> None:
    """It adds no ledger file but its publication, in which the progress stands, too."""
    spark, lake = shop.spark, shop.lake
    path = lake / "public.a"
    # What a month of VACUUM does to an idle table: the commits of its rows leave the log.
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('team' = 'shop')")
    _, java = java_log(spark, str(path))
    java.checkpoint()
    (path / "_delta_log" / f"{0:020d}.json").unlink()

    def files(name: str) -> set[str]:
        return {path.name for path in (lake / name).rglob("*") if not path.name.startswith(".")}

    idle = files("public.b")
    ledger = set((lake / LEDGER_FOLDER).glob("*.parquet"))
    shop.commit(a=30)
    shop.run()
    # The published one has one commit more, the idle one has none.
    assert files("public.b") == idle
    commits = {f"{version:020d}.json" for version in (1, 2)}
    assert {name for name in files("public.a") if name.endswith("json")} == commits
    assert len(set((lake / LEDGER_FOLDER).glob("*.parquet")) - ledger) == 1
    assert table_of(spark, lake, "public.a") == {1: 10, 2: 20, 3: 30}
