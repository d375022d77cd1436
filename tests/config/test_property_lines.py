"""The files of Hudi's streamer are read line by line, as Hudi reads them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from lakeingest.cli.streamer_arguments import read_arguments
from lakeingest.config.file.java_lines import Line, java_lines
from lakeingest.config.streamer.command_line import streamer_config
from lakeingest.config.streamer.hudi_lines import hudi_lines
from lakeingest.config.streamer.options import OPTIONS
from tests.config.test_streamer import COMMAND

LOGIN = r'sasl.jaas.config=org.apache.Login required username="a" password="b\"c";'


def values(text: str) -> dict[str, str]:
    lines, problems = hudi_lines(text, "streamer.properties")
    assert problems == []
    return {line.key: line.text for line in lines}


@pytest.mark.parametrize("line", [r"sasl.password=ab\cd", r"sasl.password=ab\u00", LOGIN])
def test_a_backslash_is_a_letter_like_any_other(line: str) -> None:
    key, _, value = line.partition("=")
    assert values(line) == {key: value}


def test_the_same_backslash_takes_the_meaning_of_the_next_letter_in_our_own_files() -> None:
    lines, _ = java_lines("sasl.password=ab\\cd", "pipeline.properties")
    assert lines == [Line(1, "sasl.password", "abcd")]


@pytest.mark.parametrize("end", ["\\\n", "\\  \n", "\\\r\n"])
def test_a_line_that_ends_in_a_backslash_goes_on(end: str) -> None:
    lines, _ = hudi_lines(f"a=1,{end}  2\nb=3\n", "streamer.properties")
    assert lines == [Line(1, "a", "1, 2"), Line(3, "b", "3")]


def test_a_comment_does_not_go_on_and_a_last_line_may() -> None:
    assert values("# C:\\\na=1\nb=2\\") == {"a": "1", "b": "2"}


def test_the_first_separator_counts_and_white_space_is_one_blank() -> None:
    text = "a=b=c\nurl=http://registry:8081\n  key  value  here \nempty=\n!x=1\nalone\n\n"
    pairs = {"a": "b=c", "url": "http://registry:8081", "key": "value here", "empty": "", "!x": "1"}
    assert values(text) == pairs


def test_a_password_with_a_backslash_reaches_the_client_from_a_file_of_hudis_streamer(
    tmp_path: Path,
) -> None:
    (tmp_path / "common.properties").write_text(f"{LOGIN}\n", encoding="utf-8")
    props = tmp_path / "streamer.properties"
    props.write_text("include=common.properties\nsasl.password=ab\\cd\n", encoding="utf-8")
    words = shlex.split(f"{COMMAND} --props {props}")
    options = streamer_config(read_arguments("hoodie-streamer", "", OPTIONS, words)[0])
    client = options.source.kafka_client_options()
    assert client["sasl.password"] == r"ab\cd"
    assert client["sasl.jaas.config"] == LOGIN.partition("=")[2]
