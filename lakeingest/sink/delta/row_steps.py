"""Plan the versions of a table, one per source transaction: which rows each hides and shows.

The rows of all versions are written once, before the first version. A version then shows the rows
that its transaction wrote, and hides those that these replace, in the files of the batch and in
the files that the table had. This module only counts rows; ``engine/delta/versions.py`` writes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from lakeingest.engine.delta.versioned_file import FileStep


class RowStep(NamedTuple):
    """What a transaction makes of one row.

    Attributes:
        end: Offset of the transaction's END.
        image: Number of the row as the transaction leaves it, among those that the batch writes;
            None: the row is gone.
        replaced: Number of the row that it replaces among these; None: it replaces none of them.
        file: Name of the table's file with the row that it replaces; None: there is none.
        row: Index of that row in its file.
    """

    end: int
    image: int | None
    replaced: int | None = None
    file: str | None = None
    row: int | None = None


def only_insert(steps: Iterable[RowStep]) -> bool:
    """Return whether no row is replaced or removed."""
    return all(
        step.image is not None and step.replaced is None and step.file is None for step in steps
    )


def rows_per_transaction(steps: Iterable[RowStep]) -> Mapping[int, int]:
    """Return how many rows each transaction writes, by its END, in the order of the ENDs."""
    numbers = Counter(step.end for step in steps if step.image is not None)
    return dict(sorted(numbers.items()))


def file_steps(
    rows: Iterable[RowStep], new_files: Sequence[tuple[str, int]]
) -> Mapping[int, Mapping[str, FileStep]]:
    """Return what each transaction does to files, by its END, in the order of the ENDs.

    Args:
        rows: The rows' steps, in any order.
        new_files: Name and number of rows of each new file; their rows are numbered through.
    """
    firsts = [0, *accumulate(size for _, size in new_files)]

    def place(image: int) -> tuple[str, int]:
        number = bisect_right(firsts, image) - 1
        return new_files[number][0], image - firsts[number]

    hides: dict[int, dict[str, list[int]]] = {}
    shows: dict[int, dict[str, list[int]]] = {}
    for step in rows:
        places = []
        if step.replaced is not None:
            places.append(place(step.replaced))
        if step.file is not None and step.row is not None:
            places.append((step.file, step.row))
        for name, index in places:
            hides.setdefault(step.end, {}).setdefault(name, []).append(index)
        if step.image is not None:
            name, index = place(step.image)
            shows.setdefault(step.end, {}).setdefault(name, []).append(index)
    steps = {}
    for end in sorted(hides.keys() | shows.keys()):
        hidden, shown = hides.get(end, {}), shows.get(end, {})
        steps[end] = {
            name: FileStep(tuple(sorted(hidden.get(name, ()))), tuple(sorted(shown.get(name, ()))))
            for name in sorted(hidden.keys() | shown.keys())
        }
    return steps
