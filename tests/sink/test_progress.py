"""What the head of a table says about whose it is, and how far."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeingest.commit_note import token
from lakeingest.errors import ConfigError
from lakeingest.sink.progress import note_from_ledger, require_ownership
from tests.notes import commit_note

NOTE = commit_note("a", writer=3, batch=7, end_offset=70, end_position="p7")


@pytest.mark.parametrize(("kind", "hint"), [("Hudi", True), ("Delta", False)])
def test_who_meets_a_table_of_hudi_streamers_is_told_how_to_go_on_with_it(
    kind: str, hint: bool
) -> None:
    with pytest.raises(ConfigError, match="belongs to no lakeingest pipeline") as error:
        require_ownership(None, "orders", "public.orders", "s3://lake/orders", kind)
    assert ("lakeingest.table.<table>.adopt=hudi-streamer" in str(error.value)) is hint


def test_the_ledger_tells_what_a_tables_log_has_lost_unless_a_fence_knows_of_more() -> None:
    newest = replace(NOTE, key=("id",))
    shown = replace(newest, batch=4, token=token(2, 4), schema="columns")
    notes = [newest.to_json(), shown.to_json()]
    assert note_from_ledger(None, notes) == replace(newest, schema="columns")
    assert note_from_ledger(None, []) is None
    # A fence by a driver that had read too little repeats the progress that it knew of.
    late = replace(newest, batch=6).fenced(4, "run 4", 0)
    note = note_from_ledger(late, notes)
    assert note == replace(newest, schema="columns", run="run 4", token=late.token)
    # Its table is ahead of the ledger: a crash before the publication.
    ahead = replace(newest, batch=8).fenced(4, "run 4", 0)
    assert note_from_ledger(ahead, notes) == ahead


def test_a_commit_to_a_table_that_is_ahead_names_the_transaction_whose_place_it_has() -> None:
    own = replace(NOTE, transaction="tx 7", committed_ms=7)
    ahead = replace(
        own, batch=8, end_offset=80, end_position="p8", transaction="tx 8", committed_ms=8
    )
    assert own.not_before(ahead) == ahead
    assert ahead.not_before(own) == ahead
