"""Bad input stops the run with its own error, publishes no part of a commit, and loses nothing."""

from __future__ import annotations

import pytest

from lakeingest.apply.batch import writer
from lakeingest.errors import DataError
from tests.apply.crash import crashing_at
from tests.apply.shop import Shop
from tests.apply.written import PREFIX

pytestmark = pytest.mark.slow


def test_an_end_that_cannot_be_read_or_is_lost_once_tables_hold_its_rows_stops_the_run(
    shop: Shop,
) -> None:
    """Tables are ahead of the ledger after a crash, and the broker lost its newest records."""
    for v in (31, 41, 51):
        shop.commit(a=v - 1, b=v)
    topics, marks = shop.log._topics, f"{PREFIX}.transaction"
    whole, published = topics[marks], {"public.a": {1: 10, 2: 20}, "public.b": {1: 11, 2: 21}}
    mark = whole[5]
    assert mark is not None
    key, end, *rest = mark
    topics[marks] = [*whole[:5], (key, end[:-5], *rest), *whole[6:]]
    with pytest.raises(DataError, match="of the transaction topic cannot be read"):
        shop.run()
    assert shop.tables() == published
    topics[marks] = whole
    with crashing_at("3.after-last-commit", writer):
        shop.run()
    topics[marks] = whole[:4]
    with pytest.raises(DataError, match="Some tables hold transactions up to the END at offset 9"):
        shop.run()
    assert shop.tables() == published
    topics[marks] = whole
    shop.run()
    assert shop.tables() == {
        "public.a": {1: 10, 2: 20, 3: 30, 4: 40, 5: 50},
        "public.b": {1: 11, 2: 21, 3: 31, 4: 41, 5: 51},
    }
