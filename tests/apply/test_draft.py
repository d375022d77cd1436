"""A configuration that is drafted from what the topics hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.draft import draft
from lakeingest.apply.draft.declared import mode_settings, with_declarations
from lakeingest.apply.draft.samples import TopicSample, hint
from lakeingest.apply.draft.text import draft_text
from lakeingest.apply.inspect.validate import validate_pipeline
from lakeingest.cli.main import execute
from lakeingest.config import load_config
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.seen_modes import UNDECIDED
from lakeingest.errors import ConfigError
from lakeingest.plan.inference import InferredType
from lakeingest.source.catalogue import Catalogue
from tests.config.settings import RECORDED, recorded, without
from tests.reader.small_lake import LINES, SmallLake

SETTINGS = without(RECORDED, "lakeingest.source.connector")


def test_types_of_records_without_schemas_are_comments_until_somebody_looked() -> None:
    columns = {"id": InferredType("int64", False), "paid": InferredType("boolean", True)}
    rows = [{"id": 7, "paid": True}]
    sample = TopicSample("public.orders", "postgresql", key=("id",), types=columns, rows=rows)
    text = draft_text(SETTINGS, [sample], whole=True)
    assert text.splitlines()[-5:] == [
        "# public.orders: key (id). Its records have no schema, so these types are a guess",
        "# (with --jdbc, init reads them from the database's catalogue):",
        "#   id: a number, or DATE in days, or TIME",
        "# Correct them as the source has them, then take the # away:",
        "#lakeingest.table.public.orders.schema=id BIGINT, paid BOOLEAN",
    ]
    assert "lakeingest.source.connector=postgresql\n" in text
    assert "transaction.mode" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1_700_000_000_000, "most likely TIMESTAMP_NTZ, in milliseconds"),
        (1_700_000_000_000_000, "most likely TIMESTAMP_NTZ, in microseconds"),
        (1_700_000_000_000_000_000, "most likely TIMESTAMP_NTZ, in nanoseconds"),
        (19_000, "a number, or DATE in days, or TIME"),
        ("2024-02-29T12:00:00.000001Z", "most likely TIMESTAMP, with its zone"),
        ("C4vo", "a text, or DECIMAL or BINARY in base64, or JSON"),
        ({"scale": 2, "value": "C4vo"}, "a struct, an array, or a decimal of variable scale"),
        (None, "no value seen"),
    ],
)
def test_a_hint_says_what_else_a_value_may_be(value: object, text: str) -> None:
    assert hint(value) == text


def test_types_of_the_catalogue_are_declared_and_the_others_named() -> None:
    sample = TopicSample(
        "public.orders",
        "postgresql",
        key=("id",),
        types={"id": InferredType("int64", False), "place": InferredType("string", False)},
        rows=[{"place": {"wkb": "AQEA"}}],
        catalogue={"id": "bigint", "place": "geometry(Point,4326)"},
        declared={"id": "BIGINT"},
    )
    assert draft_text(SETTINGS, [sample], whole=True).splitlines()[-4:] == [
        "# public.orders: key (id). Its records have no schema; the catalogue has:",
        "lakeingest.table.public.orders.schema=id BIGINT",
        "# Declare these, too, as lakeingest types shows:",
        "#   place (geometry(Point,4326)): a struct, an array, or a decimal of variable scale",
    ]


def test_names_with_any_characters_are_read_as_they_were_written(tmp_path: Path) -> None:
    table, column = "public.Order: Items=#1", "a\\b c"
    types = {column: InferredType("int64", False)}
    sample = TopicSample(table, "postgresql", types=types, declared={column: "BIGINT"})
    file = tmp_path / "shop.properties"
    file.write_text(draft_text(SETTINGS, [sample], whole=True), "utf-8")
    assert load_config(file).tables[table].ddl == f"`{column}` BIGINT"


def test_a_table_without_a_row_is_declared_by_the_catalogue_alone() -> None:
    sample = TopicSample("public.a", "postgresql", catalogue={"id": "int"}, declared={"id": "INT"})
    text = draft_text(SETTINGS, [sample], whole=True)
    assert "\nlakeingest.table.public.a.schema=id INT\n" in text


def test_records_that_do_not_name_their_connector_ask_for_it() -> None:
    with pytest.raises(ConfigError, match="do not name their connector. Name it: --set"):
        draft_text(SETTINGS, [TopicSample("public.orders", has_schema=True)], whole=True)


def test_topics_of_two_connectors_are_refused() -> None:
    samples = [TopicSample("a.b", "mysql"), TopicSample("a.c", "mariadb")]
    with pytest.raises(ConfigError, match="name mariadb, mysql"):
        draft_text(SETTINGS, samples, whole=True)


def test_without_a_transaction_topic_the_draft_says_what_is_missing() -> None:
    text = draft_text(SETTINGS, [TopicSample("a.b", "mysql", has_schema=True)], whole=False)
    assert "# provide.transaction.metadata=true in the connector" in text
    assert "#lakeingest.transaction.mode=boundary\n#lakeingest.transaction.mode=none\n" in text
    other = draft_text(SETTINGS, [TopicSample("A.B", "oracle", has_schema=True)], whole=False)
    assert "mode=boundary" not in other


@pytest.mark.soak
def test_a_draft_declares_nothing_and_can_run_once_its_comments_are_taken_away(
    spark: SparkSession, small_lake: SmallLake, tmp_path: Path
) -> None:
    """One of its columns has a name that must be quoted."""
    places = recorded(small_lake.settings["lakeingest.source.path"], tmp_path / "lake", "small")
    settings = {**places, "lakeingest.source.topics": f"small.{LINES}"}
    file = tmp_path / "shop.properties"
    file.write_text(draft(spark, without(settings, "lakeingest.source.connector")), "utf-8")
    config = load_config(file)
    assert (config.source.connector, config.tables) == ("postgresql", {})
    uncommented = file.read_text("utf-8").replace("#lakeingest.table", "lakeingest.table")
    file.write_text(uncommented, "utf-8")
    # It decodes the first records by the types.
    findings = validate_pipeline(spark, load_config(file))
    assert findings.seen[1] == "the first records that wait can be applied"


def test_init_overwrites_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.properties"
    file.write_text("mine", "utf-8")
    arguments = ["init", str(file), "--prefix", "shop", "--target", "lake"]
    assert execute([*arguments, "--path", "events"]) == 2
    assert "overwrites no file" in capsys.readouterr().err
    assert file.read_text("utf-8") == "mine"
    other = str(tmp_path / "other.properties")
    secret = ["init", other, *arguments[2:], "--path", "events", "--set", "sasl.jaas.config=x"]
    assert execute(secret) == 2
    assert "--set 'sasl.jaas.config=${env:NAME}'" in capsys.readouterr().err
    assert execute(["init", str(tmp_path / "no" / "p"), *arguments[2:], "--path", "events"]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert execute(["init", other, *arguments[2:]]) == 2
    assert "name the source: --broker or --path" in capsys.readouterr().err


CATALOGUE = Catalogue(
    "postgresql",
    {"public.t": {"at": "timestamp without time zone", "price": "numeric(10,0)", "x": "bytea"}},
)


def sampled(*rows: dict[str, object]) -> TopicSample:
    columns = {name: InferredType("string", False) for name in ("at", "price", "x")}
    return TopicSample("public.t", "postgresql", types=columns, rows=rows)


def test_the_modes_that_values_show_are_settings_and_the_columns_are_read_by_them() -> None:
    sample = sampled({"at": 1_772_600_767_123, "price": "-12", "x": "deadbe"})
    modes = mode_settings([sample], CATALOGUE, {})
    assert modes == {
        "lakeingest.source.time.precision.mode": "connect",
        "lakeingest.source.decimal.handling.mode": "string",
        "lakeingest.source.binary.handling.mode": "hex",
    }
    read = Encodings(decimal="string", binary="hex", time="connect")
    declared = with_declarations(sample, CATALOGUE, read, modes).declared
    assert declared == {"at": "TIMESTAMP_NTZ", "price": "DECIMAL(10,0)", "x": "BINARY"}
    decimals = "lakeingest.source.decimal.handling.mode"
    assert decimals not in mode_settings([sample], CATALOGUE, {decimals: "precise"})


def test_columns_whose_values_two_modes_could_have_written_are_left_to_the_user() -> None:
    sample = sampled({"at": 0, "price": "1234", "x": "AP8="})
    modes = mode_settings([sample], CATALOGUE, {})
    assert with_declarations(sample, CATALOGUE, Encodings(), modes).declared == {"x": "BINARY"}
    empty = sampled({"at": None, "price": None, "x": None})
    assert mode_settings([empty], CATALOGUE, {}) == {}
    of_defaults = with_declarations(empty, CATALOGUE, Encodings(), {})
    assert of_defaults.declared.keys() == of_defaults.assumed.keys() == {"at", "price", "x"}
    assert of_defaults.assumed["at"] == "time.precision.mode"
    set_by_user = {f"lakeingest.source.{mode}": "m" for mode in of_defaults.assumed.values()}
    assert not with_declarations(empty, CATALOGUE, Encodings(), set_by_user).assumed


def test_a_column_without_values_waits_for_the_user_like_those_of_its_kind() -> None:
    sample = sampled({"at": None, "price": "1234", "x": None})
    modes = mode_settings([sample], CATALOGUE, {})
    times = {"lakeingest.source.time.precision.mode": UNDECIDED}
    declared = with_declarations(sample, CATALOGUE, Encodings(), {**modes, **times}).declared
    assert declared.keys() == {"x"}
