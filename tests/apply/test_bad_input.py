"""Bad input stops the run with its own error, publishes no part of a commit, and loses nothing."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.batch import writer
from lakeingest.apply.window.end_markers import read_end_markers
from lakeingest.decode.encodings import Encodings
from lakeingest.errors import DataError
from lakeingest.plan.spec import PipelineSpec
from lakeingest.plan.window import window_boundaries, window_metadata
from tests.apply.crash import crashing_at
from tests.apply.shop import Shop
from tests.apply.written import PREFIX
from tests.envelope.records import Record, frame
from tests.forms import with_all

BEGIN = '{"status":"BEGIN","id":"7:110"}'
END = '{"status":"END","id":"7:120","event_count":0,"data_collections":[]}'


def test_an_end_knows_its_begin_and_one_that_cannot_be_read_stops_the_run(
    spark: SparkSession,
) -> None:
    spec = PipelineSpec("postgresql", Encodings())

    def ends(*values: str) -> list[tuple[int, int | None]]:
        """Return the offsets of each END and of its BEGIN."""
        topic = frame(spark, [Record("tx", value, None, 0, at) for at, value in enumerate(values)])
        boundaries = window_boundaries(window_metadata(topic, spec), spec)
        return [(end.offset, end.begun) for end in read_end_markers(boundaries, spec).ends]

    assert ends(BEGIN, END) == [(1, 0)]
    with pytest.raises(DataError, match="offset 1 of the transaction topic cannot be read"):
        ends(BEGIN, END[:-5])


@with_all
def test_an_end_that_is_lost_once_tables_hold_its_rows_stops_the_run(shop: Shop) -> None:
    """Tables are ahead of the ledger after a crash, and the broker lost its newest records."""
    for v in (31, 41, 51):
        shop.commit(a=v - 1, b=v)
    ends = shop.log._topics[f"{PREFIX}.transaction"]
    with crashing_at("3.after-last-commit", writer):
        shop.run()
    del ends[4:]
    with pytest.raises(DataError, match="Some tables hold transactions up to the END at offset 9"):
        shop.run()
    assert shop.tables() == {"public.a": {1: 10, 2: 20}, "public.b": {1: 11, 2: 21}}
