"""What the publication that begins to load a table anew says of it, and which ones cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeingest.apply.choice.reloading import refuse_reloading, with_reloads, with_reloads_undone
from lakeingest.apply.choice.retirement import with_table, without_table
from lakeingest.errors import UsageError
from lakeingest.ledger.publication import CLAIM, PUBLICATION, RELEASE, Frontier, Publication, Reload
from lakeingest.position.epochs import Epoch
from tests.apply.published import publication_of
from tests.apply.test_retirement import HEAD, NAMES, OTHERS, TOPIC

ORDERS, LINES = "public.orders", "public.lines"


def begun(head: Publication = HEAD) -> Publication:
    return with_reloads(head, [ORDERS], NAMES, "reload")


def test_readers_see_the_earlier_load_and_the_next_window_reads_the_whole_topic() -> None:
    after = begun()
    assert (after.batch, after.run, after.tables) == (5, "reload", {LINES: 8})
    assert after.paths == {LINES: "l"}
    assert after.frontier == replace(HEAD.frontier, offsets=OTHERS)
    assert (after.shown, after.shown_paths) == (HEAD.tables, HEAD.paths)


@pytest.mark.parametrize("kind", [PUBLICATION, CLAIM, RELEASE])
def test_every_entry_of_the_ledger_repeats_what_is_loaded_anew(kind: str) -> None:
    assert publication_of(begun().to_json("shop", kind)).reloads == begun().reloads


def test_one_that_is_not_over_begins_once_more_and_keeps_what_readers_see() -> None:
    again = begun(begun())
    assert again.reloads[ORDERS] == replace(begun().reloads[ORDERS], batch=6)
    assert again.shown == HEAD.tables


def test_undone_it_goes_on_with_the_earlier_load_where_that_was_left() -> None:
    undone = with_reloads_undone(begun(), [ORDERS], "undo")
    assert (undone.tables, undone.paths, undone.reloads) == (HEAD.tables, HEAD.paths, {})
    assert undone.frontier == HEAD.frontier
    with pytest.raises(UsageError, match=r"public\.lines.*being loaded anew"):
        with_reloads_undone(begun(), [LINES], "undo")


def test_another_table_is_retired_meanwhile_and_the_load_goes_on() -> None:
    three = replace(HEAD, tables={**HEAD.tables, "public.more": 1})
    assert without_table(begun(three), LINES, NAMES, "retire").reloads == begun(three).reloads
    with pytest.raises(UsageError, match="is loaded anew"):
        without_table(begun(), ORDERS, NAMES, "retire")


def test_a_load_is_known_by_its_folder_and_stays_so_when_it_is_retired_and_taken_up_again() -> None:
    loaded = replace(HEAD, paths={ORDERS: "orders__load_2"})
    assert loaded.loads == {ORDERS: 2}
    retired = without_table(loaded, ORDERS, NAMES, "retire")
    assert retired.retired[ORDERS].path == "orders__load_2"
    shown = with_table(retired, ORDERS, "undo", shown=True, path="orders__load_2")
    assert shown.loads == {ORDERS: 2}
    waiting = with_table(retired, ORDERS, "undo", shown=False, path="orders__load_2")
    assert ORDERS not in waiting.tables
    assert waiting.frontier.offsets == HEAD.frontier.offsets


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (replace(HEAD, tables={LINES: 8}, paths={}), "published"),
        (without_table(HEAD, ORDERS, NAMES, "retire"), "is retired; take it up first"),
        (replace(HEAD, tables={LINES: 8}, paths={ORDERS: ORDERS}), "no publication shows it yet"),
        (replace(HEAD, paths={ORDERS: "."}), "lake's own"),
        (replace(HEAD, frontier=Frontier(epochs=(Epoch(1, "s"),))), "epoch 1"),
    ],
    ids=["unknown", "retired", "taken up again", "the whole lake", "another epoch"],
)
def test_what_cannot_be_loaded_anew_is_refused(head: Publication, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        refuse_reloading(head, [ORDERS], NAMES)


def test_tables_that_share_a_topic_are_not_loaded_anew() -> None:
    twins = replace(HEAD, tables={"public.a b": 1, "public.a_b": 1}, paths={})
    with pytest.raises(UsageError, match=r"rows of public\.a_b, too"):
        refuse_reloading(twins, ["public.a b"], NAMES)


def test_the_reload_says_what_it_replaces() -> None:
    reload = begun().reloads[ORDERS]
    assert reload == Reload(batch=5, version=3, path="o", topic=TOPIC, offsets={0: 5, 1: 6})
