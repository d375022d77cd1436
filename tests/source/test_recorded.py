from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from lakeingest import frame_schemas
from lakeingest.errors import ConfigError, DataError, InvariantError, UnavailableError
from lakeingest.source import OffsetRange, RecordedSource, TopicPartition, Watermarks
from lakeingest.topic_names import TopicNames
from tests.logs.folder import line, write_manifest, write_topic

DEMO = Path(__file__).parents[2] / "lakeingest" / "demo" / "pg-shop-small"


def source(spark: SparkSession, folder: Path, prefix: str = "t") -> RecordedSource:
    return RecordedSource(
        spark, str(folder), TopicNames(prefix), transaction_topic=f"{prefix}.transaction"
    )


def rows(recording: RecordedSource, *ranges: OffsetRange) -> list[Row]:
    return recording.read(ranges).orderBy("topic", "partition", "offset").collect()


def places(records: list[Row]) -> list[tuple[str, int, int]]:
    return [(row.topic, row.partition, row.offset) for row in records]


def test_explicit_ranges_are_read_exactly(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a folder, 100%"
    write_topic(folder, "t.a", [line(p, o) for p in range(2) for o in range(5)])
    write_topic(folder, "t.b", [line(0, o) for o in range(5)])
    records = rows(source(spark, folder), OffsetRange("t.a", 1, 1, 3), OffsetRange("t.b", 0, 4, 5))
    assert places(records) == [("t.a", 1, 1), ("t.a", 1, 2), ("t.b", 0, 4)]


def test_values_above_twenty_million_characters_are_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    packed = {"b64": base64.b64encode(b"\xff" * 15_000_100).decode()}
    write_topic(tmp_path, "t.a", [line(0, 0, packed), line(0, 1, "x" * 20_000_100)])
    read = source(spark, tmp_path).read([OffsetRange("t.a", 0, 0, 2)])
    lengths = read.select(F.octet_length("value")).orderBy("offset").collect()
    assert [row[0] for row in lengths] == [15_000_100, 20_000_100]


def test_text_bytes_nulls_and_headers_survive(spark: SparkSession, tmp_path: Path) -> None:
    raw = bytes(range(256))
    packed = {"b64": base64.b64encode(raw).decode()}
    text = '{"a":"\\u0000 é 😀 \u2028 \\r\\n"}\r'
    write_topic(
        tmp_path,
        "t.a",
        [
            line(0, 0, text, None, h=[["n", "1"], ["n", "2"], ["bytes", packed], ["none", None]]),
            line(0, 1, packed, packed),
            line(0, 2, None, '{"b64": 1}'),
            line(0, 3, "", ""),
        ],
    )
    first, second, third, fourth = rows(source(spark, tmp_path), OffsetRange("t.a", 0, 0, 4))
    assert (first.key, bytes(first.value)) == (None, text.encode())
    assert first.timestamp.timestamp() == 1.0
    assert [(h.key, h.value and bytes(h.value)) for h in first.headers] == [
        ("n", b"1"),
        ("n", b"2"),
        ("bytes", raw),
        ("none", None),
    ]
    assert (bytes(second.key), bytes(second.value), second.headers) == (raw, raw, [])
    assert (bytes(third.key), third.value) == (b'{"b64": 1}', None)
    assert (bytes(fourth.key), bytes(fourth.value)) == (b"", b"")


def test_frame_has_exactly_the_promised_shape(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path, "t.a", [line(0, 0)])
    recording = source(spark, tmp_path)
    assert recording.read([OffsetRange("t.a", 0, 0, 1)]).schema == frame_schemas.RECORD
    assert recording.read([]).schema == frame_schemas.RECORD
    assert rows(recording, OffsetRange("t.a", 0, 1, 1)) == []


def test_bounds_come_from_the_manifest_also_of_empty_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_topic(tmp_path, "t.a", [line(0, 3), line(0, 4)])
    write_manifest(tmp_path, {"t.a": {0: (3, 4), 1: (0, -1)}})
    assert source(spark, tmp_path).watermarks(["t.a"]) == {
        TopicPartition("t.a", 0): Watermarks(3, 5),
        TopicPartition("t.a", 1): Watermarks(0, 0),
    }


@pytest.mark.parametrize("manifest", ["none", "stale", "broken", "foreign"])
def test_bounds_come_from_the_lines_where_the_manifest_does_not_fit(
    spark: SparkSession, tmp_path: Path, manifest: str
) -> None:
    write_topic(tmp_path, "t.a", [line(0, 0)])
    if manifest == "stale":
        write_manifest(tmp_path, {"t.a": {0: (0, 0)}})
    elif manifest != "none":
        text = "{" if manifest == "broken" else json.dumps({"topics": {"t.a": {"gz_bytes": "x"}}})
        (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    write_topic(tmp_path, "t.a", [line(1, o) for o in (2, 7)] + [line(0, 0, "longer" * 9)])
    assert source(spark, tmp_path).watermarks(["t.a"]) == {
        TopicPartition("t.a", 0): Watermarks(0, 1, observed=True),
        TopicPartition("t.a", 1): Watermarks(2, 8, observed=True),
    }


def test_topic_without_records_has_one_empty_partition(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path, "t.a", [])
    assert source(spark, tmp_path).watermarks(["t.a"]) == {
        TopicPartition("t.a", 0): Watermarks(0, 0, observed=True)
    }


def test_range_that_was_not_recorded_stops_with_topic_partition_and_offset(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_topic(tmp_path, "t.a", [line(0, 5), line(0, 6)])
    recording = source(spark, tmp_path)
    with pytest.raises(DataError, match=r"'t\.a', partition 0: offset 2 .* earliest there is 5"):
        recording.read([OffsetRange("t.a", 0, 2, 6)])
    with pytest.raises(DataError, match=r"up to 8 are wanted, but the log ends at 7"):
        recording.read([OffsetRange("t.a", 0, 5, 8)])
    with pytest.raises(DataError, match="no partition 3"):
        recording.read([OffsetRange("t.a", 3, 0, 1)])


def test_two_ranges_of_one_partition_are_a_defect_of_the_caller(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_topic(tmp_path, "t.a", [line(0, o) for o in range(4)])
    with pytest.raises(InvariantError):
        source(spark, tmp_path).read([OffsetRange("t.a", 0, 0, 1), OffsetRange("t.a", 0, 2, 3)])
    with pytest.raises(InvariantError):
        source(spark, tmp_path).read([OffsetRange("t.a", 0, 2, 1)])


def test_line_that_cannot_be_read_stops_the_run(spark: SparkSession, tmp_path: Path) -> None:
    path = write_topic(tmp_path, "t.a", [line(0, 0), line(0, 1)])
    write_manifest(tmp_path, {"t.a": {0: (0, 2)}})
    size = path.stat().st_size
    wrong_time = '{"p":0,"o":1,"ts":"soon","k":null,"v":"x","h":[]}'
    for broken in ('{"p":0,"o":1,"v":"cut', '{"p":0,"v":"no offset"}', wrong_time):
        with gzip.open(path, "wt", encoding="utf-8") as out:
            out.write(json.dumps(line(0, 0)) + "\n" + broken + "\n")
        manifest = tmp_path / "manifest.json"
        text = manifest.read_text(encoding="utf-8")
        changed = text.replace(f'"gz_bytes": {size}', f'"gz_bytes": {path.stat().st_size}')
        manifest.write_text(changed, encoding="utf-8")
        size = path.stat().st_size
        frame = source(spark, tmp_path).read([OffsetRange("t.a", 0, 0, 3)])
        with pytest.raises(Exception, match=r"MALFORMED_RECORD|without partition \(p\) or offset"):
            frame.collect()


def test_missing_folder_and_missing_topic_say_what_to_check(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(UnavailableError, match=r"gone/topics .*check its path"):
        source(spark, tmp_path / "gone").topics()
    write_topic(tmp_path, "t.public.orders", [line(0, 0)])
    with pytest.raises(UnavailableError, match=r"nearest: 't\.public\.orders'"):
        source(spark, tmp_path).watermarks(["t.public.order"])


def test_a_record_is_read_once_where_names_of_topics_begin_alike_and_a_pattern_matches_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = ("t.a", "t.a.b", "t.ab")
    for topic in names:
        write_topic(tmp_path, topic, [line(0, o) for o in range(3)])
    recording = RecordedSource(spark, str(tmp_path), TopicNames("t", pattern=r"t\.a.*"))
    assert recording.topics() == names
    read = rows(recording, *(OffsetRange(topic, 0, 0, 3) for topic in names))
    assert places(read) == [(topic, 0, o) for topic in names for o in range(3)]


def test_a_path_that_stands_for_two_recordings_is_refused_and_neither_is_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        write_topic(tmp_path / name, "t.a", [line(0, 0)])
    with pytest.raises(ConfigError, match=r"'t\.a' has two files.*first/topics.*second/topics"):
        source(spark, tmp_path / "*").topics()


def test_reading_starts_no_scan_before_an_action(spark: SparkSession, tmp_path: Path) -> None:
    path = write_topic(tmp_path, "t.a", [line(0, 0)])
    write_manifest(tmp_path, {"t.a": {0: (0, 0)}})
    frame = source(spark, tmp_path).read([OffsetRange("t.a", 0, 0, 1)])
    path.unlink()
    with pytest.raises(Exception, match="FileNotFoundException|does not exist"):
        frame.collect()


@pytest.mark.skipif(not DEMO.is_dir(), reason="the recorded demo is not in this tree")
def test_recorded_demo_is_read_whole(spark: SparkSession) -> None:
    manifest = json.loads((DEMO / "manifest.json").read_text(encoding="utf-8"))
    recording = source(spark, DEMO, manifest["prefix"])
    topics = [*recording.topics(), f"{manifest['prefix']}.transaction"]
    marks = recording.watermarks(topics)
    ranges = [OffsetRange(p.topic, p.partition, w.earliest, w.high) for p, w in marks.items()]
    counted = recording.read(ranges).groupBy("topic").count().collect()
    assert {row["topic"]: row["count"] for row in counted} == {
        topic: manifest["topics"][topic]["records"] for topic in topics
    }
