"""Define the policies for changes of a source's tables: one per kind of change, and per table.

Each kind has its own setting. Rejected: one setting for all kinds; a user who accepts new and
dropped columns need not accept that a number turns into text. ``plan/evolution.py`` describes the
kinds and the effect of each policy.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lakeingest.config.model.fields import ConfigModel

Choice = Literal["evolve", "ignore", "stop"]
Unlikely = Literal["ignore", "stop"]


class SchemaChanges(ConfigModel):
    """Policies of a pipeline, or those of one table that are not the pipeline's."""

    added: Choice = Field(default="evolve")
    """A column that is new: `evolve` adds it, with its DEFAULT in old rows where the records'
    schema tells it; `ignore` leaves it out of the lake; `stop`, here and below, ends the run before
    anything of the batch is published. Default: nothing is lost."""
    dropped: Choice = Field(default="evolve")
    """A column that is gone: `evolve` keeps it in the lake, with the values of its rows, NULL in
    later ones, and warns; `ignore` does not warn. Default: nothing is lost."""
    widened: Choice = Field(default="evolve")
    """A type that holds more (INT to BIGINT): `evolve` widens the lake's column; `ignore` keeps it,
    and a value that does not fit ends the run. Default: nothing is lost."""
    narrowed: Choice = Field(default="evolve")
    """A type that holds less: the lake keeps the wider one, with `evolve` and `ignore` alike.
    Default: nothing is lost."""
    retyped: Unlikely = Field(default="stop")
    """A type that neither holds the old one's values nor is held by it (INT to TEXT): `ignore`
    keeps the lake's, and a value that it cannot hold ends the run; there is no `evolve`. Default:
    somebody must say what the column is from now on."""
    reordered: Choice = Field(default="evolve")
    """Another order of columns: the lake keeps its own, with `evolve` and `ignore` alike. Default:
    columns go by name."""
    nullability: Choice = Field(default="evolve")
    """NOT NULL set or dropped: nothing is done, with `evolve` and `ignore` alike. Default: the
    lake's columns take NULL anyhow."""
    default: Choice = Field(default="evolve")
    """Another DEFAULT: nothing is done, with `evolve` and `ignore` alike. Default: it concerns rows
    that come later, which carry it."""


KINDS: tuple[str, ...] = tuple(name for name in SchemaChanges.model_fields if name != "referenced")
"""The kinds of changes, by the names in keys."""
