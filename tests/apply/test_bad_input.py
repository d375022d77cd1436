"""Bad input stops the run with its own error: an END of the transaction topic."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.window.end_markers import read_end_markers
from lakeingest.decode.encodings import Encodings
from lakeingest.errors import DataError
from lakeingest.plan.spec import PipelineSpec
from lakeingest.plan.window import window_boundaries, window_metadata
from tests.envelope.records import Record, frame

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
