"""Which epochs runs of ENDs open: domains that follow one another, return, and come again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeingest.position.encoding import after
from lakeingest.position.epochs import Epoch, epoch_number, leading_component
from lakeingest.transaction.epochs import Run, epochs_after, epochs_up_to


def holds(epoch: Epoch, domain: str, number: int) -> bool:
    """Return whether an epoch contains a transaction."""
    is_within = epoch.lowest <= number and (epoch.highest is None or number <= epoch.highest)
    return epoch.domain == domain and is_within


def runs(*words: str) -> list[Run]:
    """Read ``A1-9``: a run of domain A with these numbers; offsets count from 10, by 10.

    ``A*1-9`` is one of tags.
    """
    result = []
    for place, word in enumerate(words, 1):
        name, tagged, numbers = word.rpartition("*") if "*" in word else (word[0], "", word[1:])
        domain = f"{name}:*" if tagged else name
        lowest, _, highest = numbers.partition("-")
        result.append(Run(domain, int(lowest), int(highest or lowest), 10 * place))
    return result


def shown(epochs: Sequence[Epoch]) -> str:
    return " ".join(
        f"{each.number}:{each.domain}{each.lowest}-{each.highest or ''}@{each.end_offset}"
        for each in epochs
    )


CASES: dict[str, tuple[list[str], str]] = {
    "one server": (["A1-9"], "0:A0-@10"),
    "another one takes over with lower numbers": (["A1-90", "B1-5"], "0:A0-90@10 1:B0-@20"),
    "the connector goes back before the seam and over it": (
        ["A1-90", "B1-5", "A80-90", "B1-7"],
        "0:A0-90@10 1:B0-@20",
    ),
    "the first server returns": (["A1-90", "B1-5", "A91-99"], "0:A0-90@10 1:B0-5@20 2:A91-@30"),
    "it returns and its old transactions come again before": (
        ["A1-90", "B1-5", "A85-99"],
        "0:A0-90@10 1:B0-5@20 2:A91-@30",
    ),
    "all of it comes again": (
        ["A1-90", "B1-5", "A91-99", "A1-90", "B1-5", "A91-100"],
        "0:A0-90@10 1:B0-5@20 2:A91-@30",
    ),
    "a server that uses tags in turns": (
        ["A1-9", "A*1-2", "A10", "A*3", "A11-90", "A*1"],
        "0:A0-9@10 1:A:*0-@20",
    ),
    "it goes back before its first tag": (
        ["A1-9", "A*1-2", "A5-9", "A*1-2", "A10"],
        "0:A0-9@10 1:A:*0-@20",
    ),
    "it begins with a tag": (["A*1", "A5-9", "A*2"], "0:A:*0-@10"),
    "another one takes over from it, and the connector goes back over the seam": (
        ["A1-9", "A*1", "A10", "B1-5", "A10", "A*1", "B1-7"],
        "0:A0-9@10 1:A:*0-@20 2:B0-@40",
    ),
    "servers that take turns": (["A1", "B1", "A2", "B2"], "0:A0-1@10 1:B0-1@20 2:A2-2@30 3:B2-@40"),
}


@pytest.mark.parametrize("name", CASES)
def test_runs_of_ends_open_epochs(name: str) -> None:
    words, expected = CASES[name]
    assert shown(epochs_after((), runs(*words), 0, 0)) == expected


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_epochs_are_the_same_however_the_log_is_cut_into_windows(name: str, cut: int) -> None:
    words, expected = CASES[name]
    whole = runs(*words)
    first = epochs_after((), whole[:cut], 0, 0)
    applied = max(
        (run.highest for run in whole[:cut] if holds(first[-1], run.domain, run.highest)), default=0
    )
    assert shown(epochs_after(first, whole[cut:], 0, applied)) == expected


def test_a_window_read_again_after_a_crash_gives_the_same_epochs() -> None:
    window_runs = runs("A1-90", "B1-5", "A91-99")
    epochs = epochs_after((), window_runs, 0, 0)
    assert epochs_after(epochs, window_runs, 0, 0) == epochs
    for published in (10, 15, 20, 30):
        before = epochs_up_to(epochs, published)
        assert before[-1].highest is None
        assert epochs_after(before, window_runs, 0, 0) == epochs


def test_nothing_is_held_before_the_first_epoch() -> None:
    assert epochs_up_to(epochs_after((), runs("A1-9"), 0, 0), 5) == ()


def test_an_epoch_is_read_off_a_position() -> None:
    place = after(300, 41, 7)
    assert (epoch_number(place), leading_component(place)) == (300, 41)


Transaction = tuple[str, int]
"""Domain and number."""


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Transaction], list[list[Transaction]]]:
    """Commits of servers that take over from one another, and windows of their delivery.

    The connector goes back any number of times and then on in order, as a restarted one does.
    """
    numbers = {name: draw(st.integers(1, 20)) for name in "ABC"}
    commits: list[Transaction] = []
    for name, count in draw(
        st.lists(st.tuples(st.sampled_from("ABC"), st.integers(1, 4)), min_size=1, max_size=6)
    ):
        for _ in range(count):
            commits.append((name, numbers[name]))
            numbers[name] += draw(st.integers(1, 3))
    delivered: list[Transaction] = []
    place = 0
    for step in draw(st.lists(st.integers(1, 8), max_size=8)):
        delivered += commits[place : place + step]
        place = draw(st.integers(0, min(len(commits), place + step)))
    delivered += commits[place:]
    cuts = sorted({0, len(delivered), *draw(st.lists(st.integers(0, len(delivered)), max_size=4))})
    return commits, [delivered[start:end] for start, end in itertools.pairwise(cuts)]


def runs_of(window: Sequence[Transaction], offset: int) -> list[Run]:
    result = []
    for name, group in itertools.groupby(enumerate(window, offset), key=lambda at: at[1][0]):
        places = list(group)
        inside = [number for _, (_, number) in places]
        result.append(Run(name, min(inside), max(inside), places[0][0]))
    return result


@settings(max_examples=500, deadline=None)
@given(histories())
def test_epoch_and_number_order_transactions_as_they_were_committed(
    history: tuple[list[Transaction], list[list[Transaction]]],
) -> None:
    commits, windows = history
    epochs: tuple[Epoch, ...] = ()
    offset, applied = 0, 0
    for place, window in enumerate(windows, 1):
        epochs = epochs_after(epochs, runs_of(window, offset), 0, applied)
        offset += len(window)
        seen = [item for done in windows[:place] for item in done]
        applied = max((n for name, n in seen if holds(epochs[-1], name, n)), default=0)
    places = []
    for name, number in commits:
        (holding,) = [epoch.number for epoch in epochs if holds(epoch, name, number)]
        places.append((holding, number))
    assert places == sorted(places)
    assert len(set(places)) == len(places)
