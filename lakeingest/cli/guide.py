"""``lakeingest guide``: the pages of the guide, listed, printed or searched.

The pages are Markdown files in the package (``lakeingest/guide``), so they are those of the
installed version and need no network. The rejected way is a website: it describes one version, and
a reader may have another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated

import typer

from lakeingest.cli.output import message, write_lines, write_table
from lakeingest.errors import UsageError

PAGES = (
    "install",
    "configuration",
    "reading",
    "guarantees",
    "per-transaction",
    "operations",
    "messages",
    "connectors",
    "schema-changes",
    "hudi-tables",
    "from-hudi-streamer",
    "architecture",
    "testing",
)
"""Names of the pages, in the order in which a newcomer reads them."""

_WIDEST = 100
"""Characters of a sentence, or of the line around a hit, that a table shows."""

_BEFORE_A_HIT = 30

_LIKENESS = 0.5
"""Low enough that `hudi` is near `hudi-tables`."""


@dataclass(frozen=True)
class Page:
    """One page of the guide.

    Attributes:
        name: What the command calls it; its file is ``<name>.md``.
        text: Its Markdown.
    """

    name: str
    text: str

    @property
    def sentence(self) -> str:
        """What the page answers: the paragraph below its title."""
        return " ".join(self.text.split("\n\n", 2)[1].split())

    def headed_lines(self) -> Iterator[tuple[str, str]]:
        """Yield the lines that are not empty, each with the heading that it stands below.

        A heading stands below itself. A ``#`` in a block of code begins a comment.
        """
        heading, in_code = "", False
        for line in self.text.splitlines():
            if line.startswith("```"):
                in_code = not in_code
            elif line.startswith("#") and not in_code:
                heading = line.lstrip("#").strip()
            if line.strip():
                yield heading, line.strip()


def guide(
    page: Annotated[
        str | None,
        typer.Argument(
            metavar="PAGE", help="The page to print. Default: list the pages.", show_default=False
        ),
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(
            "--find",
            metavar="WORD",
            help="Print each line that holds this text, with page and heading. Upper and lower "
            "case are the same.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print a page of the guide; without a page, list the pages."""
    if find is not None:
        _print_hits(find, PAGES if page is None else (page,))
    elif page is not None:
        write_lines([read_page(page).text.rstrip("\n")])
    else:
        rows = [(name, read_page(name).sentence) for name in PAGES]
        write_table(("page", "what it answers"), rows, widest=_WIDEST)


def read_page(name: str) -> Page:
    """Return a page of the installed version.

    Raises:
        UsageError: There is no such page; names the nearest one.
    """
    from lakeingest.config.spelling import nearest

    if name not in PAGES:
        near = nearest(name, PAGES, likeness=_LIKENESS)
        hint = f"did you mean {near}?" if near else f"there are: {', '.join(PAGES)}"
        problem = f"the guide has no page {name}; {hint}"
        raise UsageError(problem)
    return Page(name, (files("lakeingest") / "guide" / f"{name}.md").read_text("utf-8"))


def find_lines(word: str, page: Page) -> list[tuple[str, str]]:
    """Return the lines of a page that hold a text in any case, each with its heading."""
    sought = word.casefold()
    return [(heading, line) for heading, line in page.headed_lines() if sought in line.casefold()]


def _print_hits(word: str, names: tuple[str, ...]) -> None:
    hits = [
        (name, heading, _around(word, line))
        for name in names
        for heading, line in find_lines(word, read_page(name))
    ]
    if hits:
        write_table(("page", "heading", "line"), hits, widest=_WIDEST)
    else:
        message(f"the guide has no line with {word}; `lakeingest guide` lists the pages")


def _around(word: str, line: str) -> str:
    """Return the part of a long line that shows the word."""
    start = max(0, line.casefold().find(word.casefold()) - _BEFORE_A_HIT)
    if len(line) <= _WIDEST or start == 0:
        return line
    return f"…{line[start:]}"
