from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from lakeingest.cli.output import OutputFormat
from lakeingest.cli.rows import write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# One row of every kind, one of edges, one of nothing.
VALUES = r"""
SELECT * FROM VALUES
  (1, 'say "hi", twice', timestamp'2026-10-25 00:30:00.5Z',
   timestamp_ntz'2026-03-29 02:30:00.678901',
   date'2026-01-02', CAST('12.50' AS DECIMAL(12,2)), CAST('0' AS DECIMAL(20,7)), true,
   unhex(repeat('ab', 80)), array(1, NULL),
   named_struct('t', timestamp'2026-10-25 01:30:00Z', 'x', CAST(NULL AS INT))),
  (2, '\\N', timestamp'1901-10-25 01:30:00.000001Z', timestamp_ntz'0001-01-01 00:00:00',
   date'0001-01-01', CAST('-0.05' AS DECIMAL(12,2)), CAST('0.0000001' AS DECIMAL(20,7)), false,
   unhex(''), array(), NULL),
  (3, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
AS t(id, `te.xt`, at, local, day, amount, tiny, flag, bytes, list, inner)
"""

COLUMNS = "id,te.xt,at,local,day,amount,tiny,flag,bytes,list,inner"


@pytest.fixture(params=["UTC", "Europe/Berlin"])
def frame(request: pytest.FixtureRequest, spark: SparkSession) -> DataFrame:
    """The same rows in sessions of different time zones."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", request.param)
    return session.sql(VALUES).orderBy("id")


def test_csv_is_iso_and_tells_null_from_empty_in_any_time_zone(
    frame: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(frame, OutputFormat.CSV, None)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == COLUMNS
    first = dict(zip(*csv.reader(io.StringIO(f"{COLUMNS}\n{lines[1]}")), strict=True))
    assert first["te.xt"] == 'say "hi", twice'
    assert first["at"] == "2026-10-25T00:30:00.500000Z"
    assert first["local"] == "2026-03-29T02:30:00.678901"
    assert first["day"] == "2026-01-02"
    assert (first["amount"], first["tiny"], first["flag"]) == ("12.50", "0.0000000", "true")
    assert first["bytes"] == "q6ur" * 26 + "q6s="
    assert json.loads(first["list"]) == [1, None]
    assert json.loads(first["inner"]) == {"t": "2026-10-25T01:30:00.000000Z", "x": None}
    assert lines[2] == (
        '2,"\\N",1901-10-25T01:30:00.000001Z,0001-01-01T00:00:00.000000,0001-01-01,'
        '-0.05,0.0000001,false,"",[],\\N'
    )
    assert lines[3] == '3,""' + ",\\N" * 9


def test_json_is_one_object_a_line_with_its_nulls(
    frame: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(frame, OutputFormat.JSON, 3)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in rows] == [1, 2, 3]
    assert rows[0]["at"] == "2026-10-25T00:30:00.500000Z"
    assert rows[0]["local"] == "2026-03-29T02:30:00.678901"
    assert rows[1]["te.xt"] == "\\N"
    assert rows[2]["inner"] is None


def test_a_table_shows_the_limit_and_says_that_there_are_more(
    frame: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(frame, OutputFormat.TABLE, 2)
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 4
    assert captured.err == "the first 2 rows; --limit 0 for all\n"
    write_rows(frame, OutputFormat.TABLE, 3)
    assert capsys.readouterr().err == ""
