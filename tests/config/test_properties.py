from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakeingest.config.file.properties import Entry, from_mapping, read_properties
from lakeingest.errors import ConfigError, UsageError


def written(folder: Path, text: str) -> Path:
    path = folder / "pipeline.properties"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_line_that_ends_in_a_backslash_goes_on_in_the_next_line(tmp_path: Path) -> None:
    path = written(tmp_path, "columns = id BIGINT, \\\n    name STRING\nnext=1\n")
    properties = read_properties(path)
    assert properties.value("columns").text == "id BIGINT, name STRING"
    assert properties.value("next").text == "1"


@pytest.mark.parametrize("line", ["key=value", "key: value", "key value", "  key  =  value  "])
def test_every_separator_of_java_is_read(tmp_path: Path, line: str) -> None:
    assert read_properties(written(tmp_path, line)).value("key").text == "value"


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.properties"
    path.write_bytes(b"\xef\xbb\xbfkey=gr\xc3\xbc\xc3\x9fe")
    assert read_properties(path).value("key").text == "grüße"


def test_a_missing_file_names_every_place_looked_at(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        read_properties(tmp_path / "shop")
    for place in ("shop", "shop.properties", "shop/pipeline.properties"):
        assert f"\n  {tmp_path / place}" in str(error.value)


def test_a_folder_stands_for_the_file_in_it(tmp_path: Path) -> None:
    written(tmp_path, "key=1")
    assert read_properties(tmp_path).value("key").text == "1"


def test_a_key_that_is_there_twice_is_a_warning_and_the_last_one_counts(tmp_path: Path) -> None:
    properties = read_properties(written(tmp_path, "a=1\n# between\na=2\n"))
    assert properties.value("a").text == "2"
    (warning,) = properties.warnings
    assert "lines 1 and 3" in warning


def test_a_file_that_is_not_utf_8_says_so(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.properties"
    path.write_bytes(b"key=gr\xfc\xdfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_properties(path)


def test_a_broken_unicode_escape_names_the_line_and_not_the_value(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 2") as error:
        read_properties(written(tmp_path, "a=1\npassword=hunter\\u00zz\n"))
    assert "hunter" not in str(error.value)


def test_an_override_replaces_the_setting_of_the_file() -> None:
    properties = from_mapping({"a": "1", "b": "2"}).overridden(["a=x=y", "c=3"])
    assert [properties.value(key).text for key in "abc"] == ["x=y", "2", "3"]


def test_an_override_without_equals_is_a_usage_error_that_does_not_repeat_it() -> None:
    with pytest.raises(UsageError, match="number 2") as error:
        from_mapping({}).overridden(["a=1", "hunter2"])
    assert "hunter2" not in str(error.value)


def test_references_are_resolved_inside_a_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_USER", "ingest-user")
    (tmp_path / "secret").write_text("from-the-file\n", encoding="utf-8")
    value = from_mapping({"a": f"u=${{env:LAKE_USER}} p=${{file:{tmp_path}/secret}}"}).value("a")
    assert value.text == "u=ingest-user p=from-the-file"
    assert value.referenced


def test_a_reference_of_a_value_that_nobody_uses_is_not_resolved() -> None:
    assert from_mapping({"a": "1", "b": "${env:LAKEINGEST_TEST_NOT_SET}"}).value("a").text == "1"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("${env:LAKEINGEST_TEST_NOT_SET}", "LAKEINGEST_TEST_NOT_SET"),
        ("${file:/nowhere/secret}", "/nowhere/secret"),
        ("${vault:kv/shop}", "${env:NAME}"),
        ("${SHOP_JAAS}", "${env:NAME}"),
        ("${HOME}/lake", "${env:NAME}"),
        ("${env:HOME", "${env:NAME}"),
        ("${env:PATH} and ${", "${env:NAME}"),
    ],
)
def test_a_reference_to_nothing_names_the_key_and_what_it_pointed_to(text: str, named: str) -> None:
    with pytest.raises(ConfigError, match="sasl.password") as error:
        from_mapping({"sasl.password": text}).value("sasl.password")
    assert named in str(error.value)


def test_what_a_reference_stands_for_may_look_like_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEINGEST_TEST_SECRET", "a${env:HOME")
    (tmp_path / "secret").write_text("b${HOME}", encoding="utf-8")
    properties = from_mapping({"a": f"${{env:LAKEINGEST_TEST_SECRET}}${{file:{tmp_path}/secret}}"})
    value = properties.value("a")
    assert value.text == "a${env:HOMEb${HOME}"
    again = Entry(value.key, value.text, "another file", value.referenced)
    assert replace(properties, entries={"a": again}).value("a").text == value.text


def test_blanks_between_a_backslash_and_the_end_of_a_line_are_a_problem(tmp_path: Path) -> None:
    lines = ["include=base.properties", "a=1,\\ ", "  2,\\\t", "  3", "# \\ ", "b=C:\\\\ ", "c=1"]
    (tmp_path / "base.properties").write_text("d=1\\ \n 2\n")
    properties = read_properties(written(tmp_path, "\n".join(lines)))
    assert [said.partition(": ")[0].rpartition("/")[2] for said in properties.problems] == [
        "pipeline.properties, line 2",
        "pipeline.properties, line 3",
        "base.properties, line 1",
    ]
    assert properties.value("a").text == "1,2,3"
    assert properties.value("b").text == "C:\\"


def test_an_included_file_counts_in_its_place_and_lies_beside_the_one_that_names_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "base.properties").write_text("a=base\nb=base\ninclude=deep.properties\n")
    (tmp_path / "more" / "deep.properties").write_text("c=deep\n")
    properties = read_properties(
        written(tmp_path, "a=before\ninclude=more/base.properties\nb=after\n")
    )
    assert [properties.value(key).text for key in "abc"] == ["base", "after", "deep"]
    assert properties.warnings == ()


def test_a_file_may_be_named_by_its_uri_but_not_one_that_lies_elsewhere(tmp_path: Path) -> None:
    path = written(tmp_path, "a=1\n")
    assert read_properties(f"file://{path}").value("a").text == "1"
    with pytest.raises(ConfigError, match="must lie on this machine"):
        read_properties("s3a://bucket/pipeline.properties")
