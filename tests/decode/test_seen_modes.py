"""A connector's modes are seen from values that only one of them writes."""

from __future__ import annotations

import pytest

from lakeingest.decode.seen_modes import UNDECIDED, Kind, seen_modes


@pytest.mark.parametrize(
    ("kind", "values", "mode"),
    [
        (Kind.DECIMAL, ["C4vo", "1234"], "precise"),
        (Kind.DECIMAL, [{"scale": 1, "value": "AQ=="}], "precise"),
        (Kind.DECIMAL, ["12.50", "1234"], "string"),
        (Kind.DECIMAL, ["-3"], "string"),
        (Kind.DECIMAL, ["NaN"], "string"),
        (Kind.DECIMAL, ["1234", "5678"], UNDECIDED),
        (Kind.DECIMAL, ["1234", "5678", "9012", "3456"], "string"),
        (Kind.DECIMAL, [12.5, 3], "double"),
        (Kind.BINARY, ["AP8="], "bytes"),
        (Kind.BINARY, ["deadbe"], "hex"),
        (Kind.BINARY, ["deadbeef"], UNDECIDED),
        (Kind.BINARY, ["deadbeef", "00ff00ff"], "hex"),
        (Kind.BINARY, ["_-8="], "base64-url-safe"),
        (Kind.TIME, [1_772_600_767_123_456], "adaptive"),
        (Kind.TIME, [0, 1_772_600_767_123], "connect"),
        (Kind.TIME, [1_772_600_767_123_456_000], "nanoseconds"),
        (Kind.TIME, [-600_000_000_000_000], "adaptive"),
        (Kind.TIME, [0], UNDECIDED),
        (Kind.TIME, ["2026-03-04T05:06:07"], "isostring"),
        (Kind.TIME, [{"year": 2026}], "structured"),
    ],
)
def test_values_show_the_mode_that_wrote_them(kind: Kind, values: list[object], mode: str) -> None:
    assert seen_modes([(kind, values)]) == {kind: mode}


def test_all_columns_of_a_connector_decide_together_and_nulls_decide_nothing() -> None:
    columns = [(Kind.DECIMAL, ["1234"]), (Kind.DECIMAL, ["0.5"]), (Kind.BINARY, [])]
    assert seen_modes(columns) == {Kind.DECIMAL: "string"}
