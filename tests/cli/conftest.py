from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.library import Library
from tests.config.settings import RECORDED
from tests.recordings.configure import write_properties


@pytest.fixture
def configuration(tmp_path: Path) -> str:
    """The path of a file with a complete configuration."""
    return str(write_properties(tmp_path / "shop.properties", RECORDED))


@pytest.fixture
def library(
    configuration: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Library:
    """The library, replaced by stand-ins."""
    return Library(configuration, capsys).install(monkeypatch)
