from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.library import Library
from tests.config.settings import RECORDED


@pytest.fixture
def configuration(tmp_path: Path) -> str:
    """The path of a file with a complete configuration."""
    path = tmp_path / "shop.properties"
    path.write_text("".join(f"{key}={text}\n" for key, text in RECORDED.items()), "utf-8")
    return str(path)


@pytest.fixture
def library(
    configuration: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Library:
    """The library, replaced by stand-ins."""
    return Library(configuration, capsys).install(monkeypatch)
