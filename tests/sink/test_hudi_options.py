"""Which of Hudi's options are the user's, and which are ours whatever the user says."""

from __future__ import annotations

import pytest

from lakeingest.sink.hudi.adopted_table import adopted_options
from lakeingest.sink.hudi.options import HudiSettings, creation_options, write_options
from lakeingest.sink.hudi.table_services import layout
from tests.sink.lake import NAMES

STREAMED = {
    "hoodie.table.name": "docs",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.recordkey.fields": "id",
}

WHAT_A_ROW_IS = (
    "hoodie.table.name",
    "hoodie.datasource.write.table.type",
    "hoodie.datasource.write.recordkey.field",
    "hoodie.datasource.write.keygenerator.class",
    "hoodie.datasource.write.commitmeta.key.prefix",
    "hoodie.write.set.null.for.missing.columns",
)
OF_OUR_TABLES = (
    "hoodie.datasource.write.partitionpath.field",
    "hoodie.datasource.write.partitionpath.urlencode",
    "hoodie.table.ordering.fields",
    "hoodie.write.record.merge.mode",
    "hoodie.payload.delete.field",
    "hoodie.payload.delete.marker",
)


def own(given: dict[str, str]) -> dict[str, str]:
    """Return the options of a table of ours."""
    settings = HudiSettings(user_options=given)
    return write_options(settings, "docs", ("id",), NAMES, hard=True, partition=("day",))


@pytest.mark.parametrize("name", [*WHAT_A_ROW_IS, *OF_OUR_TABLES])
def test_what_a_row_is_cannot_be_given_for_a_table_of_ours(name: str) -> None:
    assert own({name: "another"})[name] == own({})[name] != "another"


@pytest.mark.parametrize(
    "options", [own({}), adopted_options(STREAMED, {})], ids=["ours", "adopted"]
)
def test_no_catalog_is_told_of_a_commit_whatever_the_clusters_defaults_are(
    options: dict[str, str],
) -> None:
    """``hudi-defaults.conf`` has what a write does not say; a failed sync would fail the write."""
    sync = ("hoodie.datasource.hive_sync.enable", "hoodie.datasource.meta.sync.enable")
    assert [options.get(name) for name in sync] == ["false", "false"]


@pytest.mark.parametrize("name", WHAT_A_ROW_IS)
def test_what_a_row_is_cannot_be_given_for_an_adopted_table(name: str) -> None:
    mine = adopted_options(STREAMED, {name: "another"})
    assert mine[name] == adopted_options(STREAMED, {})[name] != "another"


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.index.type",
        "hoodie.clean.automatic",
        "hoodie.parquet.compression.codec",
        "hoodie.upsert.shuffle.parallelism",
        "hoodie.datasource.write.hive_style_partitioning",
        "hoodie.fail.writes.on.inline.table.service.exception",
    ],
)
def test_how_files_are_written_is_the_users_in_any_table(name: str) -> None:
    assert own({name: "another"})[name] == "another"
    assert adopted_options(STREAMED, {name: "another"})[name] == "another"


def test_how_folders_are_named_is_part_of_where_rows_lie() -> None:
    plain = {"hoodie.datasource.write.hive_style_partitioning": "false"}
    assert layout(own({})) == "bucket SIMPLE 4, folders name=value"
    assert layout(own(plain)) == "bucket SIMPLE 4, folders value"


def test_files_that_an_index_of_blooms_may_read_one_day_have_blooms() -> None:
    """Hudi fails at one without, and from SIMPLE to BLOOM the index may change at any time."""
    blooms = "hoodie.parquet.bloom.filter.enabled"
    assert own({})[blooms] == "false"
    assert blooms not in own({"hoodie.index.type": "SIMPLE"})
    assert own({"hoodie.index.type": "SIMPLE", blooms: "false"})[blooms] == "false"


def test_instants_are_in_one_zone_with_those_of_hudi_streamer() -> None:
    """A process of Hudi's has one zone for all its tables."""
    zone = "hoodie.table.timeline.timezone"
    assert creation_options(beside_adopted=False)[zone] == "UTC"
    assert creation_options(beside_adopted=True)[zone] == "LOCAL"
