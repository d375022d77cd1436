"""A hybrid time is read as Java writes it, and compared as the unsigned number it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.position.hybrid_time import HybridTime

TIMES = st.integers(0, 2**64 - 1).map(HybridTime)


@given(TIMES)
def test_a_hybrid_time_is_read_with_and_without_its_sign(time: HybridTime) -> None:
    assert HybridTime.parse(str(time)) == time
    assert HybridTime.parse(str(time.signed())) == time
    assert -(2**63) <= time.signed() < 2**63


@given(TIMES, TIMES)
def test_hybrid_times_compare_by_microsecond_and_then_by_counter(
    one: HybridTime, two: HybridTime
) -> None:
    assert (one < two) == ((one.micros, one.counter) < (two.micros, two.counter))


def test_a_time_from_2041_on_is_later_than_one_before() -> None:
    assert HybridTime.parse("9223372036854775807") < HybridTime.parse("-9223372036854775808")


@pytest.mark.parametrize(
    "text", ["", "-", "1.5", " 1", "1_0", "+1", "--1", "٣", "-9223372036854775809", str(2**64)]
)
def test_what_is_no_hybrid_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hybrid time"):
        HybridTime.parse(text)
