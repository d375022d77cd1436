"""Where tables lie: what is configured, what is the default, and what cannot be."""

from __future__ import annotations

import pytest

from lakeingest.errors import ConfigError
from lakeingest.folders import LakeFolders


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
