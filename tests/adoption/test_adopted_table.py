"""One table of Hudi Streamer's making under the sink: what its rows and its settings ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.commit_note import CommitNote, schema_token, token
from lakeingest.decode.encodings import Encodings
from lakeingest.engine.hudi.streamer import newest_checkpoint, rows_elsewhere, table_properties
from lakeingest.errors import ConfigError, DataError
from lakeingest.position import after
from lakeingest.sink.contract import TableState
from lakeingest.sink.hudi.adopt import HudiAdoption
from lakeingest.sink.hudi.adopted_table import Placeholders, without_placeholders
from lakeingest.sink.hudi.options import HudiSettings
from lakeingest.sink.hudi.sink import HudiSink
from tests.adoption.streamer import PLACEHOLDER, writer_options
from tests.forms import further
from tests.sink.lake import (
    COLLECTION,
    NAMES,
    PIPELINE,
    Lake,
    Payload,
    at,
    delete,
    sink_settings,
    update,
)

# Real Hudi commits, some seconds each.
pytestmark = pytest.mark.slow

DDL = "id BIGINT, n INT, body STRING"
NO_METADATA = {"hoodie_metadata_enable": "false"}
"""Hudi's table of a table's files, which it keeps by default, takes as long as a commit."""
ADOPTED_AT = after(0, 100, 0)
"""As it is above an END: what comes last is no LSN of a row."""


FIRST = [(key, key, f"body {key}", 10, "c") for key in (1, 2, 3)]
SECOND = [(1, 11, PLACEHOLDER, 20, "u"), (3, 3, None, 21, "d"), (4, 4, PLACEHOLDER, 22, "c")]
"""Key 3 is deleted, and the value of 4 was never there."""


def placeholders(setting: str = PLACEHOLDER) -> Placeholders:
    encodings = Encodings(placeholder=setting)
    return Placeholders(encodings.text_marks(), encodings.placeholder_bytes())


def streamed(
    spark: SparkSession,
    path: str,
    table_type: str,
    *commits: Sequence[tuple[object, ...]],
    **more: str,
) -> None:
    """Write commits as Hudi Streamer does; ``more``: further options, dots as underscores."""
    for number, rows in enumerate(commits):
        columns = f"{DDL}, _event_lsn BIGINT, _change_operation_type STRING"
        options = {
            **writer_options("docs", "id", table_type, f"t1.{COLLECTION},0:{number}"),
            "hoodie.table.ordering.fields": "_event_lsn",
            "hoodie.write.set.null.for.missing.columns": "true",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        frame = spark.createDataFrame(rows, columns)
        frame.write.format("hudi").options(**options).mode("append").save(path)


def adopted(spark: SparkSession, root: Path, **more: str) -> tuple[Lake, HudiAdoption]:
    """Return the table as one of ours; ``more``: options as in ``streamed``."""
    given = {name.replace("_", "."): value for name, value in more.items()}

    def new(**_: object) -> HudiSink:
        settings = sink_settings(str(root), hard=True, null_missing=True)
        return HudiSink(spark, settings, HudiSettings(user_options=given))

    lake = Lake(spark, new, {})
    assert isinstance(lake.sink, HudiSink)
    adoption = HudiAdoption(spark, lake.sink, placeholders())
    assert adoption.pending(COLLECTION)
    with pytest.raises(ConfigError, match="belongs to no lakeingest pipeline"):
        lake.sink.state(COLLECTION)
    adoption.check(COLLECTION)
    note = CommitNote(
        pipeline=PIPELINE,
        collection="",
        run="run 1",
        token=schema_token(token(1, 1)),
        batch=0,
        end_offset=-1,
        end_position=at(100),
        adopted_at=ADOPTED_AT,
    )
    adoption.adopt(COLLECTION, note, adoption.version(COLLECTION))
    lake.restart()
    return lake, adoption


@pytest.mark.parametrize("table_type", [further("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_rows_of_the_old_writer_and_of_ours_are_one_table_also_where_a_new_column_has_a_default(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    path = str(tmp_path / COLLECTION)
    streamed(spark, path, table_type, [*FIRST, (7, 7, "body 7", 10, "c")], SECOND)
    properties = table_properties(spark, path)
    strict = HudiSink(spark, sink_settings(str(tmp_path), hard=True), HudiSettings())
    with pytest.raises(DataError, match="rows of the Hudi table .* hold Debezium's placeholder"):
        HudiAdoption(spark, strict, placeholders()).check(COLLECTION)
    files = NO_METADATA if table_type == "MERGE_ON_READ" else {}
    lake, adoption = adopted(spark, tmp_path, **files)
    assert not adoption.pending(COLLECTION)
    old = {1: (11, "body 1"), 2: (2, "body 2"), 4: (4, None), 7: (7, "body 7")}
    shown = {key: (*values, ADOPTED_AT) for key, values in old.items()}
    assert lake.live("n", "body", NAMES.position) == shown

    # 1 leaves its body out; 2 goes; 3 and 5 are older than the adoption: deleted, or never there.
    lake.apply(
        update(1, 101, n=12),
        delete(2, 102),
        Payload(3, 21, {"n": 3, "body": "back"}),
        Payload(5, 99, {"n": 5}),
        Payload(6, 103, {"n": 6, "body": "new"}, first="c"),
        ddl=DDL,
    )
    ours = {1: (12, "body 1"), 6: (6, "new"), 7: (7, "body 7")}
    assert lake.live("n", "body") == {**ours, 4: (4, None)}
    # A change of 2 from before its delete, and one of 4 that fills what Hudi had lost. Of a new
    # column the old writer's rows get the default. Hudi would drop them as late: their position of
    # ours ends with no LSN.
    new = Payload(1, 105, {"n": 9, "more": "new"})
    filled = Payload(4, 104, {"n": 4, "body": "4"})
    changes = lake.changeset(new, Payload(2, 101, {"n": 2}), filled, ddl=f"{DDL}, more STRING")
    changes = replace(changes, fills={"more": F.lit("old")})
    lake.state = lake.sink.apply(changes, lake.note(2), lake.state)
    rest = {4: (4, "4", None), 6: (6, "new", "old"), 7: (7, "body 7", "old")}
    assert lake.live("n", "body", "more") == {1: (9, None, "new"), **rest}
    raw = lake.raw().collect()
    rows = {row["id"]: (row["_event_lsn"], row["_change_operation_type"]) for row in raw}
    assert {key: lsn for key, (lsn, _) in rows.items()} == {1: 105, 4: 104, 6: 103, 7: 10}
    assert "d" not in {operation for _, operation in rows.values()}
    lake.state = lake.sink.fence(lake.state, 2, "run 2")
    assert lake.sink.state(COLLECTION) == lake.state
    after = table_properties(spark, path)
    assert {key: after.get(key) for key in properties} == properties
    assert newest_checkpoint(spark, path) == f"t1.{COLLECTION},0:1"


@pytest.mark.parametrize("setting", ["gone", "hex:676f6e65"])
def test_a_placeholder_is_recognised_in_text_octets_an_hstore_and_a_map(
    spark: SparkSession, setting: str
) -> None:
    texts = [(text, b"", {"gone": "k"}) for text in ("gone", '{"gone":"gone"}', "kept")]
    rows = [*texts, ("", b"gone", {"k": "gone"}), ("", b"", {"gone": "gone"})]
    stored = spark.createDataFrame(rows, "t STRING, b BINARY, m MAP<STRING,STRING>")
    frame, has_placeholder = without_placeholders(stored, placeholders(setting))
    assert stored.where(has_placeholder).count() == 4
    nulls = frame.select(*(F.count_if(F.col(name).isNull()) for name in "tbm")).first()
    assert nulls == (2, 1, 1)


def test_a_table_in_buckets_is_not_adopted_without_being_told_of_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hudi's own index looks into base files only: all rows in logs would be written twice."""
    path = str(tmp_path / COLLECTION)
    of_buckets = {"hoodie_index_type": "BUCKET", "hoodie_bucket_index_num_buckets": "2"}
    buckets = {**of_buckets, **NO_METADATA}
    streamed(spark, path, "MERGE_ON_READ", FIRST, **buckets)
    with pytest.raises(ConfigError, match=r"Set hoodie\.index\.type=BUCKET"):
        adopted(spark, tmp_path)
    # More of them contradict no file's name.
    more = {**buckets, "hoodie_bucket_index_num_buckets": "8"}
    with pytest.raises(ConfigError, match="its rows do not lie by id in"):
        adopted(spark, tmp_path, **more)
    lake, _ = adopted(spark, tmp_path, **buckets)
    lake.apply(Payload(1, 101, {"n": 9}), ddl=DDL)
    assert lake.live() == {1: (9,), 2: (2,), 3: (3,)}


@pytest.mark.soak
def test_a_table_of_consistent_hashing_is_adopted_with_that_index_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its files have random names, as those of an index that looks into files."""
    index = {
        "hoodie_index_type": "BUCKET",
        "hoodie_index_bucket_engine": "CONSISTENT_HASHING",
        "hoodie_bucket_index_num_buckets": "2",
    }
    streamed(spark, str(tmp_path / COLLECTION), "MERGE_ON_READ", FIRST, **index)
    with pytest.raises(ConfigError, match="has an index of consistent hashing"):
        adopted(spark, tmp_path)
    lake, _ = adopted(spark, tmp_path, **index)
    lake.apply(Payload(1, 101, {"n": 9}), ddl=DDL)
    assert lake.live() == {1: (9,), 2: (2,), 3: (3,)}


def test_an_adopted_table_is_refused_with_soft_deletes_a_new_log_and_beside_hudi_streamer(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / COLLECTION)
    streamed(spark, path, "COPY_ON_WRITE", FIRST)
    # Files that are no buckets begin with hexadecimal digits; the newest commit may have buckets.
    assert rows_elsewhere(spark, path, "id", 2) > 0
    lake, _ = adopted(spark, tmp_path, **NO_METADATA)
    assert isinstance(lake.state, TableState)
    soft = HudiSink(spark, sink_settings(str(tmp_path), null_missing=True), HudiSettings())
    with pytest.raises(ConfigError, match=r"Set lakeingest\.deletes=hard"):
        soft.state(COLLECTION)
    # Where LSNs begin anew Hudi would drop the rows that have lower ones.
    again = replace(lake.changeset(Payload(1, 5, {"n": 9}), ddl=DDL), high=after(1, 5))
    with pytest.raises(DataError, match="log started over after the table of 'public.docs'"):
        lake.sink.apply(again, lake.note(1), lake.state)
    # And where Hudi Streamer goes on, whether that is seen at the start or after a commit.
    streamed(spark, path, "COPY_ON_WRITE", SECOND)
    again_ours = sink_settings(str(tmp_path), hard=True, null_missing=True)
    with pytest.raises(ConfigError, match="Hudi Streamer wrote to the table"):
        HudiSink(spark, again_ours, HudiSettings()).state(COLLECTION)
    with pytest.raises(ConfigError, match="Hudi Streamer wrote to the table"):
        lake.apply(Payload(6, 103, {"n": 6}, first="c"), ddl=DDL)
