"""Rows that ``ExtractNewRecordState`` took out of their envelopes leave the same tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakeingest.errors import DataError
from tests.vectors import wire
from tests.vectors.conftest import Lake

pytestmark = pytest.mark.slow

SETTINGS = {"lakeingest.source.envelope": "flattened"}
BEFORE_THE_TRUNCATE = 32
"""The transform drops truncates, which END has counted: such a transaction stays incomplete."""

SOURCE = ("ts_ms", "snapshot", "db", "schema", "table", "sequence", "lsn")


def flattened(event: dict[str, Any], *, without: str = "") -> list[dict[str, Any]]:
    """Return what is left of an event: ``rewrite`` for deletes, ``add.fields`` of the README."""
    value = event["v"]
    if value is None:
        return []
    if value.get("op") not in ("c", "r", "u", "d"):
        return [event]
    block = value["transaction"] or {}
    added = {
        "op": value["op"],
        **{f"source_{name}": value["source"].get(name) for name in SOURCE},
        "transaction_id": block.get("id"),
        "transaction_total_order": block.get("total_order"),
    }
    row = {
        **(value["after"] or value["before"]),
        "__deleted": "true" if value["op"] == "d" else "false",
        **{f"__{name}": field for name, field in added.items() if name != without},
    }
    return [{**event, "v": row}]


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the raw events be flattened before they are written."""
    whole = wire.events

    def through(**more: str) -> None:
        def events(*runs: str) -> Any:
            some = list(whole(*runs))[:BEFORE_THE_TRUNCATE]
            return [one for event in some for one in flattened(event, **more)]

        monkeypatch.setattr(wire, "events", events)

    return through


def test_rows_without_envelopes_leave_each_commit_as_the_source_had_it(
    lake: Callable[..., Lake], stream: Callable[..., None]
) -> None:
    stream()
    found = lake("statements", settings=SETTINGS)
    before = {1: ("s1",), 2: ("s2",)}
    start = {**before, 3: ("c3",), 4: ("c4",)}
    assert found.history("a", "id", "v") == [
        before,
        start,
        {**start, 1: ("u1",)},
        {1: ("u1",), 2: ("s2",), 30: ("c3",), 4: ("c4",)},
        {1: ("u1",), 2: ("s2",), 30: ("c3",), 4: ("c4",), 5: ("c5",)},
    ]
    assert found.rows("b", "id", "v", "nn") == {2: ("y", 7)}


@pytest.mark.parametrize("field", ["op", "source_sequence"])
def test_a_row_that_does_not_say_what_it_is_or_where_stops_the_run(
    lake: Callable[..., Lake], stream: Callable[..., None], field: str
) -> None:
    stream(without=field)
    with pytest.raises(DataError, match=r"lakeingest\.source\.envelope"):
        lake("statements", settings=SETTINGS)


def test_rows_without_envelopes_are_told_where_envelopes_are_expected(
    lake: Callable[..., Lake], stream: Callable[..., None]
) -> None:
    stream()
    with pytest.raises(DataError, match=r"lakeingest\.source\.envelope=flattened"):
        lake("statements")
