"""Forms of a case: CI runs one of them, ``python -m tests --all`` the further ones, too."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark.structures import Markable, ParameterSet

_DELETES = {False: "soft", True: "hard"}


def further(*values: object, id: str | None = None) -> ParameterSet:  # noqa: A002 - as pytest's
    """Return the parameters of a form that neither CI nor a run of the fast tests has."""
    return pytest.param(*values, id=id, marks=(pytest.mark.slow, pytest.mark.soak))


def with_all(test: Markable) -> Markable:
    """Mark a test that neither CI nor a run of the fast tests has."""
    marked: Markable = pytest.mark.slow(pytest.mark.soak(test))
    return marked


def _deletes(*in_ci: bool) -> pytest.MarkDecorator:
    forms = [
        (pytest.param if hard in in_ci else further)(hard, id=name)
        for hard, name in _DELETES.items()
    ]
    return pytest.mark.parametrize("hard", forms)


SOFT, HARD, SOFT_AND_HARD = _deletes(False), _deletes(True), _deletes(False, True)
"""A test of one kind of delete, or of both; ``hard`` is its parameter."""


def sinks_and_deletes(fixture: str, sinks: Iterable[str], *in_ci: str) -> pytest.MarkDecorator:
    """Mark a test of several sinks with both kinds of delete, of which CI runs some pairs.

    Args:
        fixture: Makes the lake of a sink.
        sinks: Their names.
        in_ci: Pairs as ``delta-soft``.
    """
    forms = []
    for sink in sinks:
        for hard, deletes in _DELETES.items():
            name = f"{sink}-{deletes}"
            forms.append((pytest.param if name in in_ci else further)(sink, hard, id=name))
    return pytest.mark.parametrize((fixture, "hard"), forms, indirect=[fixture])
