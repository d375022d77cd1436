"""Entries of a log on a local disk, which another writer's rename may replace."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from lakeingest.engine.delta.log_writer import (
    LogBrokenError,
    VersionReplacedError,
    VersionTakenError,
    _LocalWriter,
)


@pytest.fixture
def writer(tmp_path: Path) -> _LocalWriter:
    writer = _LocalWriter(tmp_path, Mock(spec=[]))  # It has nothing that could be called.
    for version in (5, 6, 7):
        writer.write(version, [f"entry {version}"])
    return writer


def entry(folder: Path, version: int) -> Path:
    return folder / f"{version:020d}.json"


def replace(folder: Path, version: int) -> None:
    """Commit as Delta's writers do: rename a file to a name that was free a moment ago."""
    other = folder / "other"
    other.write_text("other", "utf-8")
    other.replace(entry(folder, version))


def test_entries_appear_whole_and_leave_nothing_else(writer: _LocalWriter, tmp_path: Path) -> None:
    writer.check()
    names = [entry(tmp_path, version).name for version in (5, 6, 7)]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert entry(tmp_path, 6).read_text("utf-8") == "entry 6\n"


def test_a_version_that_is_taken_stays(writer: _LocalWriter, tmp_path: Path) -> None:
    replace(tmp_path, 8)
    with pytest.raises(VersionTakenError):
        writer.write(8, ["ours"])
    assert entry(tmp_path, 8).read_text("utf-8") == "other"


def test_nothing_is_written_behind_an_entry_that_was_replaced(
    writer: _LocalWriter, tmp_path: Path
) -> None:
    replace(tmp_path, 7)
    with pytest.raises(VersionReplacedError, match="7"):
        writer.write(8, ["ours"])
    with pytest.raises(VersionReplacedError, match="7"):
        writer.check()
    assert not entry(tmp_path, 8).exists()


def test_an_entry_that_others_build_on_is_named_when_it_was_replaced(
    writer: _LocalWriter, tmp_path: Path
) -> None:
    replace(tmp_path, 6)
    writer.write(8, ["ours"])
    with pytest.raises(LogBrokenError) as broken:
        writer.check()
    assert broken.value.version == 6
    entry(tmp_path, 8).unlink()
    with pytest.raises(LogBrokenError, match="6"):
        writer.write(9, ["ours"])
