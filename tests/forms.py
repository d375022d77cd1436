"""Forms of a case: CI runs one of them, ``python -m tests --all`` the further ones, too."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet

_DELETES = {False: "soft", True: "hard"}


def further(*values: object, id: str | None = None) -> ParameterSet:  # noqa: A002 - as pytest's
    """Return the parameters of a form that CI leaves out."""
    return pytest.param(*values, id=id, marks=pytest.mark.soak)


def _deletes(*in_ci: bool) -> pytest.MarkDecorator:
    forms = [
        (pytest.param if hard in in_ci else further)(hard, id=name)
        for hard, name in _DELETES.items()
    ]
    return pytest.mark.parametrize("hard", forms)


SOFT, HARD, SOFT_AND_HARD = _deletes(False), _deletes(True), _deletes(False, True)
"""A test of one kind of delete, or of both; ``hard`` is its parameter."""
