from __future__ import annotations

import pytest
from _pytest.capture import CaptureResult

from lakeingest.cli.guide import PAGES, Page, find_lines, read_page
from lakeingest.cli.main import execute

PAGE = Page(
    "soup",
    "# Soup\n\nHow to cook\na soup.\n\nWater first.\n\n## Salt\n\n"
    "```sh\n# Not a heading\nsalt --more\n```\n\nMore salt.\n",
)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> CaptureResult[str]:
    assert execute(["guide", *arguments]) == code
    return capsys.readouterr()


def test_without_a_page_the_pages_are_listed_with_their_sentences(
    capsys: pytest.CaptureFixture[str],
) -> None:
    header, _, *rows = shown(capsys).out.splitlines()
    assert header.split() == ["page", "what", "it", "answers"]
    assert [row.split()[0] for row in rows] == list(PAGES)
    # Whole sentences: none is cut off.
    assert all(row.endswith(".") for row in rows)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_printed_as_it_is(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, page).out == read_page(page).text


@pytest.mark.parametrize(
    ("page", "hint"),
    [
        ("conectors", "did you mean connectors?"),
        ("hudi", "did you mean hudi-tables?"),
        ("quokka", "there are: install, "),
        ("Reading", "did you mean reading?"),
    ],
)
def test_an_unknown_page_names_the_nearest_one(
    page: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    captured = shown(capsys, page, code=2)
    assert f"error: the guide has no page {page}; {hint}" in captured.err
    assert captured.out == ""


def test_find_prints_page_heading_and_line_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    header, _, *rows = shown(capsys, "--find", "pgcompatible").out.splitlines()
    assert header.split() == ["page", "heading", "line"]
    (row,) = rows
    assert row.split()[:2] == ["connectors", "YugabyteDB"]
    assert "PGCompatible" in row


def test_find_looks_into_one_page_if_one_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    rows = shown(capsys, "reading", "--find", "ledger").out.splitlines()[2:]
    assert rows
    assert {row.split()[0] for row in rows} == {"reading"}


def test_a_long_line_is_cut_around_the_word(capsys: pytest.CaptureFixture[str]) -> None:
    # At the end of a line of several hundred characters.
    find = ("configuration", "--find")
    assert "no line with" in shown(capsys, *find, "linked-cluster-of-nobody").err
    (row,) = shown(capsys, *find, "up to 1 GiB").out.splitlines()[2:]
    assert "  …" in row
    assert "up to 1 GiB" in row


def test_a_word_that_no_page_has_is_said_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    captured = shown(capsys, "--find", "quokka")
    assert captured.out == ""
    assert "the guide has no line with quokka" in captured.err


def test_a_pages_sentence_is_the_paragraph_below_its_title() -> None:
    assert PAGE.sentence == "How to cook a soup."


def test_a_line_is_found_below_its_heading_and_a_comment_in_code_is_none() -> None:
    assert find_lines("SALT", PAGE) == [
        ("Salt", "## Salt"),
        ("Salt", "salt --more"),
        ("Salt", "More salt."),
    ]
    assert find_lines("soup", PAGE) == [("Soup", "# Soup"), ("Soup", "a soup.")]
    assert find_lines("heading", PAGE) == [("Salt", "# Not a heading")]
