"""Where tables lie: what is configured, what is the default, and what cannot be."""

from __future__ import annotations

import re

import pytest

from lakeingest.errors import ConfigError
from lakeingest.folders import LakeFolders, folder_name


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("sales/orders", "s3://lake/shop/sales/orders"),
        ("./orders/", "s3://lake/shop/orders"),
        (".", "s3://lake/shop"),
        ("/data/orders", "/data/orders"),
        ("abfss://c@a/orders", "abfss://c@a/orders"),
    ],
)
def test_a_path_is_relative_to_the_lake_unless_it_is_absolute(path: str, folder: str) -> None:
    folders = LakeFolders("s3://lake/shop", {"public.orders": path})
    assert folders.table("public.orders") == folder
    assert folders.problems() == []


def test_a_table_without_a_path_has_the_name_of_its_collection() -> None:
    assert LakeFolders("lake", {"a": "x"}).table("public.orders") == "lake/public.orders"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x", "x/"),
        ("x", "./y/../x"),
        ("x", "x/deeper"),
        (".", "x"),
        ("/lake/x", "x"),
        ("file:///lake/x", "/lake/x"),
    ],
)
def test_two_tables_in_one_folder_or_one_inside_the_other_are_a_problem(
    one: str, other: str
) -> None:
    (said,) = LakeFolders("/lake", {"a": one, "b": other}).problems()
    assert "tables a and b" in said


def test_folders_whose_names_only_begin_alike_are_apart() -> None:
    assert LakeFolders("/lake", {"a": "x", "b": "x2", "c": "s3://x/x"}).problems() == []


def test_the_folder_of_a_table_without_a_path_is_not_given_to_another_one() -> None:
    with pytest.raises(ConfigError, match=r"tables public\.b and public\.a"):
        LakeFolders("/lake", {"public.a": "public.b"}).table("public.b")


def test_a_table_that_is_the_whole_lake_has_no_other_table_inside() -> None:
    folders = LakeFolders("/lake", {"public.a": "."})
    assert folders.table("public.a") == "/lake"
    with pytest.raises(ConfigError, match=r"lakeingest\.table\.public\.b\.path"):
        folders.table("public.b")


@pytest.mark.parametrize("path", ["_lakeingest", "_lakeingest/ledger", "/lake/_lakeingest/x"])
def test_no_table_lies_where_the_ledger_is(path: str) -> None:
    (said,) = LakeFolders("/lake", {"a": path}).problems()
    assert "ledger" in said


ODD = [
    "/../../escaped",
    "public.orders/sub",
    "..",
    "./x",
    "public.Order Items",
    "public.prix$",
    "public.größe",
    "public.a`b'c\"d",
    "public.100%",
    "public.a=b",
    "public.a:b*c?",
    "public.\N{GRINNING FACE}",
    "public.line\nbreak",
    "_lakeingest",
    "public.orders__tombstones",
    "public.a/b__tombstones",
]


@pytest.mark.parametrize("name", ["public.orders", "_app.x", "shop.dbo.Order-Items", "a._x0020_b"])
def test_a_plain_name_is_a_folders_name(name: str) -> None:
    assert folder_name(name) == name


@pytest.mark.parametrize("name", ODD)
def test_any_other_name_is_one_folder_in_the_lake(name: str) -> None:
    folder = folder_name(name)
    assert folder != name
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", folder)
    assert not folder.endswith("__tombstones")
    assert LakeFolders("/lake", {}).table(name) == f"/lake/{folder}"


def test_an_odd_name_stays_readable() -> None:
    assert folder_name("public.Order Items") == "public.Order_x0020_Items"
    assert folder_name("public.größe") == "public.gr_x00F6__x00DF_e"


def test_names_that_differ_have_folders_that_differ() -> None:
    tricky = ["é_x0020_", "é x0020_", "é_x005F_x0020_", "_x00E9 ", "éx0020_", " a", "_x0020_ a"]
    names = {*ODD, *tricky}
    assert len({folder_name(name) for name in names}) == len(names)


def test_a_name_that_is_too_long_for_a_folder_asks_for_a_path() -> None:
    name = "shop.dbo." + 40 * "語"
    with pytest.raises(ConfigError, match=r"too long for a folder.*\.path"):
        LakeFolders("/lake").table(name)
    assert LakeFolders("/lake", {name: "words"}).table(name) == "/lake/words"


def test_folders_that_are_not_the_tables_names_are_published() -> None:
    folders = LakeFolders("/lake", {"a": "x", "b": "b", "elsewhere": "/y"})
    assert folders.named(["a", "b", "c", "d e"]) == {"a": "x", "d e": "d_x0020_e"}
