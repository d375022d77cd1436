"""When a Delta table has so many small files that they are joined at once."""

from __future__ import annotations

from typing import Any

import pytest

from lakeingest.engine.delta.files import TableSize
from lakeingest.engine.delta.maintenance import SMALL_BYTES
from lakeingest.sink.delta import maintenance
from lakeingest.sink.delta.maintenance import MANY_FILES, is_crowded

MIB = 1024 * 1024


class _Table:
    spark = path = None


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(
    ("sizes", "answer"),
    [
        ([MIB] * (MANY_FILES - 1), False),
        ([MIB] * MANY_FILES, True),
        # No two of them fit together, so nothing could be joined.
        ([SMALL_BYTES // 2 + MIB] * 146, False),
    ],
)
def test_a_table_is_crowded_by_small_files_alone(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], answer: bool, listed: bool
) -> None:
    assert files_crowd(monkeypatch, sizes, listed=listed) is answer


def test_large_files_hide_no_small_ones_where_the_files_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert files_crowd(monkeypatch, [1024 * MIB] * 5 + [MIB] * 67, listed=True)
    assert not files_crowd(monkeypatch, [120 * MIB] * 50 + [MIB] * 28, listed=True)


def files_crowd(monkeypatch: pytest.MonkeyPatch, sizes: list[int], *, listed: bool) -> bool:
    monkeypatch.setattr(maintenance, "plain_size", lambda *_: TableSize(len(sizes), sum(sizes)))
    monkeypatch.setattr(maintenance, "listed_sizes", lambda *_: sizes if listed else None)
    table: Any = _Table
    return is_crowded(table)
