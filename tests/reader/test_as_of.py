"""What a caller means by ``as_of``."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from lakeingest.cli.show import is_transaction
from lakeingest.errors import UsageError
from lakeingest.reader.as_of import SourceTransaction, parse_as_of

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
GTID = "24dac24e-8f0f-11ee-b9d1-0242ac120002:23"


@pytest.mark.parametrize(
    ("as_of", "meant"),
    [
        (17, 17),
        ("753", SourceTransaction("753")),
        ("tx:753", SourceTransaction("753")),
        ("571:53195829", SourceTransaction("571:53195829")),
        ("0-1-4711", SourceTransaction("0-1-4711")),
        ("tx:2026-10-11", SourceTransaction("2026-10-11")),
        (GTID, SourceTransaction(GTID)),
        ("2026-01-02", MOMENT.replace(hour=0, minute=0, second=0)),
        ("2026-01-02T03:04:05Z", MOMENT),
        ("2026-01-02 03:04:05", MOMENT),
        ("2026-01-02 05:04:05+02:00", MOMENT.astimezone(timezone(timedelta(hours=2)))),
        (MOMENT.replace(tzinfo=None), MOMENT),
        (MOMENT, MOMENT),
    ],
)
def test_a_number_is_a_batch_a_date_a_time_and_other_text_a_transaction(
    as_of: int | str | datetime, meant: object
) -> None:
    point = parse_as_of(as_of)
    assert point == meant
    assert type(point) is type(meant)


@pytest.mark.parametrize("as_of", ["", " ", "tx:", "tx: ", True, 3.5, b"2"])
def test_what_names_no_publication_is_refused_with_what_to_write(as_of: Any) -> None:
    with pytest.raises(UsageError, match="tx:753"):
        parse_as_of(as_of)


@pytest.mark.parametrize(
    ("moment", "answer"), [(None, False), (7, False), ("2026-01-02", False), ("tx:7", True)]
)
def test_show_knows_a_transaction_from_a_batch_and_a_time(
    moment: int | str | None, answer: bool
) -> None:
    assert is_transaction(moment) is answer


def test_text_that_begins_like_a_date_and_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"for a transaction id write tx:2026-13-01"):
        parse_as_of("2026-13-01")
