"""One chain for the live tests, with all that this machine can have of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rig.chain import Chain
from tests.rig.fixtures import skips_without_packages


@pytest.fixture(scope="package")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """Both databases, broker, Connect and registry."""
    folder = tmp_path_factory.mktemp("chain")
    with (
        skips_without_packages(),
        Chain(folder, postgres=True, mariadb=True, registry=True) as running,
    ):
        yield running
