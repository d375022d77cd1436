"""Taking over a lake: nothing that another driver did meanwhile is overlooked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from lakeingest.apply.lake import LakeState, read_lake, take_over
from lakeingest.errors import ConfigError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.sink.contract import CommitNote, Sink, TableState


def table(name: str, run: str = "first") -> TableState:
    return TableState(3, CommitNote("shop", name, run, 1, 1, 0, ""))


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
    """Tables that are there, and which of them were fenced."""

    names: tuple[str, ...]
    fenced: list[str] = field(default_factory=list)

    def state(self, collection: str) -> TableState | None:
        return table(collection) if collection in self.names else None

    def fence(self, state: TableState, _: int, run: str) -> TableState:
        self.fenced.append(state.note.collection)
        return replace(state, note=replace(state.note, run=run))


def test_a_table_that_another_driver_made_and_published_meanwhile_is_fenced_too() -> None:
    head = Publication(batch=2, writer=2, run="second", tables={"a": 3, "b": 3})
    sink = Tables(("a", "b"))
    state = LakeState(Publication(batch=1, writer=1, tables={"a": 2}), {"a": table("a")})
    taken = take_over(cast(DeltaLedger, Claimed(head)), cast(Sink, sink), state, "second")
    assert sorted(sink.fenced) == ["a", "b"]
    assert taken.ours
    assert taken.head == head
    assert {name: one.note.run for name, one in taken.tables.items()} == {
        "a": "second",
        "b": "second",
    }


def test_a_published_table_that_is_not_there_is_refused_and_not_made_anew() -> None:
    ledger = Claimed(Publication(batch=2, writer=2, run="first", tables={"a": 3, "b": 3}))
    with pytest.raises(ConfigError, match="no table of the configured format: b"):
        read_lake(cast(DeltaLedger, ledger), cast(Sink, Tables(("a", "c"))), ("a", "b", "c"))


def test_a_table_that_was_put_back_to_before_its_publication_is_refused() -> None:
    ledger = Claimed(Publication(batch=2, writer=2, run="first", tables={"a": 3, "b": 4}))
    with pytest.raises(ConfigError, match="behind the newest publication.*missing from them: b\\."):
        read_lake(cast(DeltaLedger, ledger), cast(Sink, Tables(("a", "b"))), ("a", "b"))
