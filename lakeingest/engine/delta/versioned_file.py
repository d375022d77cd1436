"""Follow a data file through the versions of a batch: which of its rows each of them hides.

A version that hides or shows rows of a file removes it from the table and adds it again, with
another deletion vector. What it has to remove is what the version before it added.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from lakeingest.engine.delta.files import DataFile
from lakeingest.engine.delta.log_entry import Action, addition, removal
from lakeingest.engine.delta.vector_file import HiddenRows, VectorFile


@dataclass(frozen=True)
class FileStep:
    """Indexes of rows of one file that a version hides, and of rows that it shows, ascending."""

    hides: tuple[int, ...] = ()
    shows: tuple[int, ...] = ()


class VersionedFile:
    """A data file as the versions so far leave it.

    Attributes:
        template: The action that adds it as it was written, or as it was before the batch.
        hidden: Its hidden rows; None: no version has shown a row of it yet.
        added: The newest action that added it; None: it is not in the table.
    """

    def __init__(self, file: DataFile, hidden: HiddenRows | None = None) -> None:
        """Begin with a file.

        Args:
            file: The file.
            hidden: Its hidden rows in the table; None: it is new.
        """
        self._rows = file.rows or 0
        self.template: Action = json.loads(file.action.json())["add"]
        self.hidden = hidden
        self.added: Action | None = None if hidden is None else self.template

    def after(self, step: FileStep, vectors: VectorFile) -> list[Action]:
        """Take a step; return the actions of the log that say so."""
        actions = [] if self.added is None else [{"remove": removal(self.added)}]
        if self.hidden is None and len(step.shows) == self._rows:
            self.hidden = vectors.none()
        else:
            self.hidden = self.hidden or vectors.all(self._rows)
            self.hidden.show(step.shows)
        self.hidden.hide(step.hides)
        self.added = None
        if self.hidden.number < self._rows:
            vector = vectors.write(self.hidden) if self.hidden.number else None
            self.added = addition(self.template, vector)
            actions.append({"add": self.added})
        return actions
