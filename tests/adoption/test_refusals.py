"""What is decided of an adoption without looking at a log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from lakeingest.apply.adoption.adopt import Adoption, Begin, adopted_collections, refuse_settings
from lakeingest.apply.lake import LakeState
from lakeingest.apply.stall_detection import is_superseded
from lakeingest.apply.window.window import Window
from lakeingest.commit_note import CommitNote, schema_token, token
from lakeingest.config import load_config
from lakeingest.config.model import PipelineConfig
from lakeingest.errors import ConfigError, DataError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.sink.contract import TableState
from lakeingest.sink.hudi.adopt import HudiAdoption
from lakeingest.sink.hudi.adopted_table import (
    adopted_options,
    refuse_other_index,
    refuse_other_merge,
)
from lakeingest.sink.hudi.table_services import layout
from tests.adoption.streamer import PAYLOAD
from tests.config.settings import without
from tests.recordings.configure import write_properties

V9 = {
    "hoodie.table.version": "9",
    "hoodie.table.name": "docs",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "",
    "hoodie.table.keygenerator.type": "NON_PARTITION",
    "hoodie.table.ordering.fields": "_event_lsn",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.record.merge.property.hoodie.payload.delete.field": "_change_operation_type",
    "hoodie.record.merge.property.hoodie.payload.delete.marker": "d",
    "hoodie.table.legacy.payload.class": PAYLOAD,
}
"""From a table that Hudi 1.2.0 wrote with Hudi Streamer's options."""

V6 = {
    "hoodie.table.version": "6",
    "hoodie.table.name": "docs",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.compaction.payload.class": PAYLOAD,
}


@pytest.mark.parametrize("properties", [V9, V6], ids=["v9", "v6"])
def test_tables_of_the_payload_for_postgresql_are_taken(properties: dict[str, str]) -> None:
    refuse_other_merge("public.docs", properties)
    refuse_other_merge("public.docs", without(V9, "hoodie.table.legacy.payload.class"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"hoodie.table.legacy.payload.class": "a.b.MySqlDebeziumAvroPayload"}
            | {"hoodie.table.ordering.fields": "_event_bin_file,_event_pos"},
            "merged by MySqlDebeziumAvroPayload, not by PostgresDebeziumAvroPayload",
        ),
        ({"hoodie.table.partition.fields": "shard"}, "it is partitioned by shard"),
        ({"hoodie.table.keygenerator.type": "COMPLEX"}, "its key generator is COMPLEX"),
        ({"hoodie.table.recordkey.fields": ""}, "it has no record key"),
    ],
)
def test_tables_that_merge_or_lie_otherwise_are_refused_with_the_reason(
    change: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        refuse_other_merge("public.docs", {**V9, **change})


def test_an_adopted_table_keeps_its_own_layout_unless_the_user_says_more() -> None:
    options = adopted_options(V9, {})
    assert options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ"
    assert options["hoodie.datasource.write.recordkey.field"] == "id"
    assert not {key for key in options if "index" in key or "metadata" in key or "merge" in key}
    assert layout(options) == "found by looking"
    given = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "8"}
    assert layout(adopted_options(V9, given)) == "bucket SIMPLE 8"


IN_BUCKETS = ["00000000-aaaa-0", "00000012-aaaa-0"]
ANYWHERE = ["00000000-aaaa-0", "3f2504e0-aaaa-0"]
BY_BUCKET = {"hoodie.index.type": "bucket", "hoodie.bucket.index.num.buckets": "13"}
CONSISTENT = {**BY_BUCKET, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}


def by_index(files: list[str], given: dict[str, str], *, consistent: bool = False) -> None:
    """Judge an index; some rows lie by ``id`` in 13 buckets."""

    def elsewhere(fields: str, buckets: int) -> int:
        return 0 if (fields, buckets) == ("id", 13) else 40

    options = adopted_options(V9, given)
    refuse_other_index("public.docs", files, options, elsewhere, consistent=consistent)


@pytest.mark.parametrize(
    ("files", "given", "consistent"),
    [
        (IN_BUCKETS, BY_BUCKET, False),
        (IN_BUCKETS, {**BY_BUCKET, "hoodie.bucket.index.hash.field": "id"}, False),
        (ANYWHERE, {}, False),
        (ANYWHERE, CONSISTENT, True),
        ([], BY_BUCKET, False),
        ([], {}, False),
    ],
)
def test_an_index_that_files_and_rows_do_not_contradict_is_taken(
    files: list[str], given: dict[str, str], consistent: bool
) -> None:
    by_index(files, given, consistent=consistent)


@pytest.mark.parametrize(
    ("files", "given", "said"),
    [
        (IN_BUCKETS, {}, r"hoodie\.index\.type=BUCKET and hoodie\.bucket\.index\.num\.buckets"),
        (IN_BUCKETS, CONSISTENT, "has no index of consistent hashing"),
        (ANYWHERE, CONSISTENT, "has no index of consistent hashing"),
        (IN_BUCKETS, {**BY_BUCKET, "hoodie.bucket.index.num.buckets": "12"}, "in 12 buckets"),
        (IN_BUCKETS, {**BY_BUCKET, "hoodie.bucket.index.num.buckets": "26"}, "in 26 buckets"),
        (IN_BUCKETS, {"hoodie.index.type": "BUCKET"}, "by id in 256 buckets"),
        (IN_BUCKETS, {**BY_BUCKET, "hoodie.bucket.index.hash.field": "n"}, "by n in 13 buckets"),
        (ANYWHERE, BY_BUCKET, "rows do not lie in buckets"),
    ],
)
def test_an_index_under_which_rows_would_be_there_twice_is_refused(
    files: list[str], given: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        by_index(files, given)


@pytest.mark.parametrize("given", [{}, BY_BUCKET])
def test_a_table_of_consistent_hashing_is_refused_with_any_other_index(
    given: dict[str, str],
) -> None:
    with pytest.raises(ConfigError, match="has an index of consistent hashing"):
        by_index(ANYWHERE, given, consistent=True)


def config(folder: Path, **more: str) -> PipelineConfig:
    """Return a pipeline that adopts ``public.a``."""
    given = {
        "pipeline.name": "shop",
        "source.kind": "recorded",
        "source.path": str(folder),
        "source.connector": "postgresql",
        "source.topic.prefix": "t1",
        "target.format": "hudi",
        "target.path": str(folder / "lake"),
        "deletes": "hard",
        "table.public.a.adopt": "hudi-streamer",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    named = {f"lakeingest.{key}": value for key, value in given.items()}
    return load_config(write_properties(folder / "p.properties", named))


def test_a_pipeline_that_adopts_all_its_tables_is_taken(tmp_path: Path) -> None:
    pipeline = config(tmp_path)
    assert adopted_collections(pipeline) == ["public.a"]
    refuse_settings(pipeline, ["t1.public.a"])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"source_connector": "mysql"}, "only tables of PostgresDebeziumSource"),
        ({"target_format": "delta"}, r"format=hudi for public\.a"),
        ({"deletes": "soft"}, "Set lakeingest.deletes=hard"),
    ],
)
def test_a_pipeline_that_cannot_adopt_is_told_what_to_set(
    tmp_path: Path, more: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        refuse_settings(config(tmp_path, **more), ["t1.public.a"])


def test_a_table_that_would_begin_elsewhere_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"public\.b would be loaded from the beginning"):
        refuse_settings(config(tmp_path), ["t1.public.a", "t1.public.b"])
    with pytest.raises(ConfigError, match=r"no topic of public\.a is read"):
        refuse_settings(config(tmp_path), ["t1.public.b"])


def test_a_new_table_of_the_source_stops_no_run_once_all_are_adopted(tmp_path: Path) -> None:
    """The setting may stay."""

    class Tables:
        def __init__(self, *, pending: bool) -> None:
            self.left = pending

        def pending(self, _: str) -> bool:
            return self.left

    def begin(*, pending: bool) -> Begin | None:
        tables = cast(HudiAdoption, Tables(pending=pending))
        nothing: Any = None
        adoption = Adoption(config(tmp_path), nothing, tables, nothing, "r")
        return adoption.begin(["t1.public.a", "t1.public.new"])

    assert begin(pending=False) is None
    with pytest.raises(ConfigError, match=r"public\.new would be loaded from the beginning"):
        begin(pending=True)


FIRST = CommitNote(
    pipeline="shop", collection="a", run="r", token=1, batch=0, end_offset=-1, end_position=""
)


def state(version: int, adopted_at: str = "") -> TableState:
    return TableState(version, replace(FIRST, adopted_at=adopted_at))


def test_an_adopted_table_is_published_before_a_batch_touches_it() -> None:
    tables = {"adopted": state(7, "00001"), "touched": state(8, "00001"), "unpublished": state(5)}
    lake = LakeState(Publication(), tables)
    assert lake.versions({"touched": state(9)}) == {"adopted": 7, "touched": 9}
    later = LakeState(Publication(batch=1, tables={"adopted": 7, "touched": 9}), tables)
    # A fence has made a newer version since; the published one holds until rows change.
    assert later.versions({}) == {"adopted": 7, "touched": 9}
    assert lake.adopted_at == "00001"


def test_transactions_that_another_writer_applied_are_not_taken_for_a_new_log() -> None:
    class Ledger:
        def unknown_ends(self, positions: list[str]) -> int:
            return len(positions)

    class Again:
        again, unplaced = ("3", "5"), None

    window, ledger = cast(Window, Again()), cast(DeltaLedger, Ledger())
    lakes = {at: LakeState(Publication(), {"adopted": state(7, at)}) for at in ("3", "5")}
    assert not is_superseded(window, ledger, lakes["5"], replaces=False)
    with pytest.raises(DataError, match="^1 transactions lie below"):
        is_superseded(window, ledger, lakes["3"], replaces=False)


def test_the_commit_that_adopts_lies_below_the_first_batch_and_is_no_fence() -> None:
    first = schema_token(token(3, 1))
    note = replace(FIRST, token=first, batch=1, end_offset=4, end_position="x", adopted_at="00001")
    assert not note.fences
    assert note.token < token(3, 1)
    assert CommitNote.from_json(note.to_json()) == note
