"""What README and the guide say is so: keys, defaults, commands, paths, code, files to change."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import lakeingest
from lakeingest.cli.demo import _show_transaction, _show_wrong_orders
from lakeingest.cli.guide import PAGES
from lakeingest.cli.main import app, execute
from lakeingest.cli.pipeline import load_pipeline
from lakeingest.config.file.properties import read_properties
from lakeingest.config.keys import (
    COLLECTION,
    KEYS,
    OURS,
    SOURCE_PATH,
    TABLE,
    TABLE_KEYS,
    TARGET_PATH,
    TOPICS,
    Key,
    split_table_key,
)
from lakeingest.demo import demo_folder, story
from lakeingest.engine.local_checkpoint import local_checkpoint
from tests.logs.written import Sent, WrittenLog, place_of
from tests.reader.small_lake import LINES, THIRD, SmallLake
from tests.recordings.altered import short_run
from tests.recordings.configure import RecordedRun, packaged_run

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "lakeingest" / "guide"
PATHS = {"README.md": ROOT / "README.md", **{path.name: path for path in GUIDE.glob("*.md")}}
DOCUMENTS = {name: path.read_text("utf-8") for name, path in sorted(PATHS.items())}
README, ARCHITECTURE, TESTING = (
    DOCUMENTS[name] for name in ("README.md", "architecture.md", "testing.md")
)

EACH = pytest.mark.parametrize("name", DOCUMENTS)

MOST_LINES_OF_README = 200

COMMITS, TABLES = 100, ("order_lines", "orders", "txlog")
"""A part of the demo's; ``tests/recordings/test_recordings.py`` ingests all 979, and 9 tables."""

PER_TABLE = 40
"""Records that a job per table takes at a time of so few: three of four states are wrong."""

BY_NAME = {key.name: key for key in (*KEYS, *TABLE_KEYS.values())}

_KEY = re.compile(
    r"lakeingest\.[a-z][a-z0-9_]*(?:\.(?:<[a-z]+>|[a-z][a-z0-9_]*))+|lakeingest\.deletes"
)
_KIND = ".<kind>"
_IN_WORDS = re.compile(r"`?[\w-]+`?|`[\w-]+`, .*")
"""A default that is the value itself; any other cell describes the default in words."""
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def documented_key(name: str) -> Key | None:
    """Return the key that a document names, whatever table or kind it names it for."""
    name = name.replace(_KIND, ".added")
    if name.startswith(TABLE):
        return TABLE_KEYS.get(split_table_key(name.replace("<table>", COLLECTION))[1])
    return BY_NAME.get(name)


def named_keys(document: str) -> set[str]:
    return {name for name in _KEY.findall(document) if not is_module(name)}


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or path.is_dir()


def rows_of_tables(document: str) -> Iterator[list[str]]:
    for line in document.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def documented_defaults(document: str) -> Iterator[tuple[Key, str]]:
    """Yield what a document's tables say is a key's default, abbreviated keys written out."""
    for cells in rows_of_tables(document):
        before = ""
        for nth, name in enumerate(re.findall(r"`([^`]+)`", cells[0])):
            if name.startswith("…."):
                (full,) = [key for key in BY_NAME if key.endswith(name[1:]) and like(key, before)]
            else:
                full = before = (
                    f"{OURS}schema.{name}" if f"{OURS}schema.{name}" in BY_NAME else name
                )
            key = documented_key(full)
            # A table's setting behind the pipeline's has none of its own.
            if key is not None and not (nth and key.default is None):
                yield key, cells[1]


def like(one: str, other: str) -> bool:
    """Return whether both are keys of one table, or both of the pipeline, beginning alike."""
    return one.split(".")[1] == other.split(".")[1]


def named_commands(document: str) -> set[str]:
    """Return the commands in a document's blocks of shell, and those between backticks."""
    blocks = "".join(code for language, code in _FENCED.findall(document) if language == "sh")
    typed = re.findall(r"^(?:\S*/)?lakeingest ([a-z-]+)", blocks, re.MULTILINE)
    return {*typed, *re.findall(r"`lakeingest ([a-z-]+)", document)}


def in_backticks(document: str, pattern: str) -> set[str]:
    """Return the text between backticks that matches; blocks of code do not count."""
    return {
        text
        for text in re.findall(r"`([^`\n]+)`", _FENCED.sub("", document))
        if re.fullmatch(pattern, text)
    }


@EACH
def test_every_key_of_ours_in_a_document_exists(name: str) -> None:
    assert [key for key in named_keys(DOCUMENTS[name]) if documented_key(key) is None] == []


@EACH
def test_every_default_in_a_documents_tables_is_the_models(name: str) -> None:
    wrong = []
    for key, text in documented_defaults(DOCUMENTS[name]):
        given = key.default
        if _IN_WORDS.fullmatch(text) and text != "none":
            wrong += [(key.name, text, given)] if text.split(",")[0].strip("`") != given else []
        elif text != "Debezium's":
            wrong += [(key.name, text, given)] if given is not None else []
    assert wrong == []


@EACH
def test_every_default_in_brackets_is_the_models(name: str) -> None:
    documented = re.findall(r"`(lakeingest\.[a-z.]+)` \((\d+)\)", DOCUMENTS[name])
    assert [key for key, text in documented if BY_NAME[key].default != text] == []


@EACH
def test_every_path_link_and_module_in_a_document_exists(name: str) -> None:
    document = DOCUMENTS[name]
    paths = set(re.findall(r"`((?:tests|notebooks|lakeingest|jars)/[\w/.-]+)`", document))
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    links = {link for link in re.findall(r"\]\(([^)]+)\)", document) if "://" not in link}
    assert [link for link in sorted(links) if not leads_somewhere(name, link)] == []
    modules = set(re.findall(r"python -m ((?:tests|lakeingest)[\w.]*)", document))
    assert [each for each in sorted(modules) if importlib.util.find_spec(each) is None] == []


@EACH
def test_every_command_in_a_document_exists(name: str) -> None:
    commands = {
        item.name or getattr(item.callback, "__name__", "").replace("_", "-")
        for item in app.registered_commands
    }
    assert named_commands(DOCUMENTS[name]) - commands == set()


def test_the_documents_hold_enough_for_these_tests_to_mean_something() -> None:
    everything = "\n".join(DOCUMENTS.values())
    assert len(named_keys(everything)) > 40
    assert len(list(documented_defaults(everything))) >= 25
    assert len(named_commands(everything)) >= 10
    assert len(set(re.findall(r"python -m (tests[\w.]*)", everything))) >= 10


@EACH
def test_every_python_block_of_a_document_compiles(name: str) -> None:
    for language, code in _FENCED.findall(DOCUMENTS[name]):
        if language == "python":
            compile(code, name, "exec")


def test_readme_is_short_and_names_every_page_of_the_guide() -> None:
    assert len(README.splitlines()) <= MOST_LINES_OF_README
    linked = re.findall(r"^\| \[([\w-]+)\]\(lakeingest/guide/([\w-]+)\.md\)", README, re.MULTILINE)
    assert linked == [(page, page) for page in PAGES]
    assert {f"{page}.md" for page in PAGES} == DOCUMENTS.keys() - {"README.md"}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_begins_with_its_title_and_one_sentence(page: str) -> None:
    title, sentence, _ = DOCUMENTS[f"{page}.md"].split("\n\n", 2)
    assert re.fullmatch(r"# [^\n]+", title)
    assert re.fullmatch(r"[^.\n]{20,100}\.", sentence)


def test_readmes_list_of_stages_is_the_packages_folders() -> None:
    folders = re.findall(r"^   (\w+)/", README, re.MULTILINE)
    assert len(folders) == 8
    assert [folder for folder in folders if not (ROOT / "lakeingest" / folder).is_dir()] == []


def test_every_file_that_architecture_names_exists() -> None:
    named = in_backticks(ARCHITECTURE, r"[\w/]+(?:\.py|\.md|\.json|\.toml|/)")
    assert len(named) > 100
    roots = (ROOT, ROOT / "lakeingest")
    missing = [path for path in named if not any((root / path).exists() for root in roots)]
    assert sorted(missing) == []


def test_architecture_names_every_folder_of_the_package() -> None:
    package = ROOT / "lakeingest"
    folders = {f"{p.parent.relative_to(package)}/" for p in package.rglob("__init__.py")} - {"./"}
    assert folders - in_backticks(ARCHITECTURE, r"[\w/]+/") == set()


def test_what_architecture_says_is_in_a_file_is_in_it() -> None:
    """``name`` in ``file``, as the answers to "Where do I change …" say it."""
    claims = re.findall(r"`(\w+)` in `([\w/]+\.py)`", ARCHITECTURE)
    assert len(claims) >= 8
    wrong = [
        (name, path)
        for name, path in claims
        if not re.search(rf"\b{name}\b", (ROOT / "lakeingest" / path).read_text("utf-8"))
    ]
    assert wrong == []


def test_the_map_of_the_tests_has_every_folder() -> None:
    folders = {f"tests/{path.parent.name}" for path in (ROOT / "tests").glob("*/__init__.py")}
    assert re.findall(r"^\| `(tests/\w+)` \|", TESTING, re.MULTILINE) == sorted(folders)


def test_the_demos_file_declares_each_table_as_the_database_has_it() -> None:
    entries = read_properties(demo_folder() / "pipeline.properties").entries
    declared = {key: entry.text for key, entry in entries.items() if key.endswith(".schema")}
    settings = packaged_run().configuration(Path("lake"))
    assert declared == {key: text for key, text in settings.items() if key.endswith(".schema")}
    assert len(declared) == 9


@pytest.mark.slow
def test_readers_of_a_job_per_table_see_wrong_orders_and_those_of_publications_none(
    spark: SparkSession,
    demo: Demo,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    properties = str(demo.recording / "pipeline.properties")
    config = load_pipeline(properties, [f"{SOURCE_PATH}={demo.recording}"])
    frames: list[DataFrame] = []

    def keep(way: Callable[..., DataFrame], *arguments: Any) -> DataFrame:
        frames.append(local_checkpoint(way(*arguments)))
        return frames[-1]

    for name in ("by_table", "by_publication"):
        monkeypatch.setattr(story, name, partial(keep, getattr(story, name)))
    monkeypatch.setattr("lakeingest.cli.demo._PER_TABLE", PER_TABLE)
    _show_wrong_orders(spark, config, lakeingest.open(spark, str(demo.lake)))
    states, published = (frame.collect() for frame in frames)
    expected = [(13, 23), (26, 38), (13, 38), (0, 38)]
    assert [(state["wrong"], state["orders"]) for state in states] == expected
    assert wrong_orders(demo.recording, PER_TABLE) == expected
    assert {state["wrong"] for state in published} == {0}
    assert published[-1]["orders"] == demo.orders
    shown = re.findall(r"^\S.*?  +(\d+) +(\d+) +\S", capsys.readouterr().out, re.MULTILINE)
    assert shown == [("4", "3"), (str(len(published)), "0")]


def test_the_demo_shows_what_one_transaction_changed(
    spark: SparkSession,
    small_lake: SmallLake,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(story, "ORDERS", LINES)
    _show_transaction(lakeingest.open(spark, small_lake.path))
    shown = capsys.readouterr().out
    assert f"what source transaction {THIRD} changed, lake.diff('{THIRD}'):" in shown
    assert re.search(rf"^{LINES} +delete +\{{.*\}} +NULL$", shown, re.MULTILINE)


@pytest.mark.slow
def test_the_demo_shows_its_tables(spark: SparkSession, demo: Demo) -> None:
    assert lakeingest.open(spark, str(demo.lake)).transactions().count() == COMMITS
    shows_orders(demo)
    assert "the latest publications" in demo.said


@pytest.mark.soak
@pytest.mark.slow
def test_the_demo_kills_a_run_counts_wrong_orders_shows_a_transaction_and_then_finds_nothing_new(
    spark: SparkSession, tmp_path: Path
) -> None:
    demo = shown_demo(tmp_path / "lakeingest-demo", packaged_run())
    assert "killed a run in the middle (kill -9)" in demo.messages
    assert lakeingest.open(spark, str(demo.lake)).transactions().count() == 979
    shows_orders(demo)
    counts = wrong_orders(demo.recording, 400)
    worst = max(counts)
    row = r"^(a job per|lakeingest's pub).*?  +(\d+) +(\d+) +(\S.*)$"
    per_table, publications = re.findall(row, demo.said, re.MULTILINE)
    assert per_table == (
        "a job per",
        str(len(counts)),
        str(sum(wrong > 0 for wrong, _ in counts)),
        f"{worst[0]} of {worst[1]}",
    )
    assert (publications[0], *publications[2:]) == ("lakeingest's pub", "0", "none")
    changed = re.search(r"what source transaction (\d+:\d+) changed.*\n((?:.+\n)+)", demo.said)
    assert changed is not None
    assert "public.orders" in changed[2]
    before = lakeingest.open(spark, str(demo.lake)).snapshot()
    again = shown_demo(demo.lake, packaged_run(), "--quick")
    assert "there is nothing new; nothing was changed" in again.messages
    assert re.search(r"^batches +0$", again.said, re.MULTILINE)
    after = lakeingest.open(spark, str(demo.lake)).snapshot()
    assert (after.batch, after.versions) == (before.batch, before.versions)


@pytest.mark.slow
def test_the_guides_code_runs_a_pipeline(spark: SparkSession, demo: Demo, tmp_path: Path) -> None:
    path = tmp_path / "shop.properties"
    places = f"\n{SOURCE_PATH}={demo.recording}\n{TARGET_PATH}={demo.lake}\n"
    path.write_text((demo.recording / "pipeline.properties").read_text("utf-8") + places, "utf-8")
    names = run_block("install.md", "summary = lakeingest.run", {"shop.properties": str(path)})
    assert names["summary"].nothing_new


@pytest.mark.slow
def test_readmes_code_reads_a_lake_with_spark(spark: SparkSession, demo: Demo) -> None:
    names = run_block("README.md", "lake = lakeingest.open", {"s3a://lake/shop": str(demo.lake)})
    assert names["orders"].count() > 0
    # Not ``listTables``, which Spark 3.5 decodes in generated code alone.
    views = names["spark"].sql("SHOW TABLES").collect()
    assert "public_order_lines" in {view["tableName"] for view in views}
    assert names["lines"].count() > 0


@pytest.mark.slow
def test_the_guides_code_reads_a_lake_with_spark(spark: SparkSession, demo: Demo) -> None:
    names = run_block("reading.md", "lake = lakeingest.open", {"s3a://lake/shop": str(demo.lake)})
    assert names["orders"].count() > 0
    assert names["views"].tables["public_orders"] == "public.orders"
    assert names["lake"].transactions().count() == COMMITS
    assert "columns" in names["lake"].schemas("public.orders").columns


@pytest.mark.slow
def test_the_guides_code_reads_a_lake_with_delta_rs(spark: SparkSession, demo: Demo) -> None:
    names = run_block("reading.md", "from deltalake", {"/data/shop": str(demo.lake)})
    rows = names["rows"].read_all()
    orders = lakeingest.open(spark, str(demo.lake)).table("public.orders")
    assert rows.num_rows == orders.count() == demo.orders


@pytest.mark.slow
def test_the_guides_code_reads_a_hudi_table_with_hudi_rs(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql")
    for n, (id_, v) in enumerate(((1, 10), (2, 20), (1, 11), (3, 30), (3, None)), 1):
        commit, lsn = 100 * n, 100 * n - 50
        place = place_of("public.orders", lsn, commit - 100, txId=n)
        log.transaction(f"{n}:{commit}", Sent("public.orders", id_, v, place))
    lake = tmp_path / "lake"
    log.ingest(spark, lake, target_format="hudi")
    versions = lakeingest.open(spark, str(lake)).snapshot().versions
    names = run_block("reading.md", "from hudi", {"/data/shop": str(lake)}, versions=versions)
    rows = [row for batch in names["batches"] for row in batch.to_pylist()]
    live_rows = {row["id"]: row["v"] for row in rows if not row["_deleted"]}
    assert (len(rows), live_rows) == (3, {1: 11, 2: 20})


@dataclass(frozen=True)
class Demo:
    """What ``lakeingest demo`` made and said, on stdout and on stderr.

    Attributes:
        recording: Folder of the events that it ingested.
        orders: How many orders the source had behind them.
        lake: Where the tables are.
        said: Its stdout.
        messages: Its stderr.
    """

    recording: Path
    orders: int
    lake: Path
    said: str
    messages: str


@pytest.fixture(scope="module")
def demo(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo without its story, of some tables' first commits, in this session."""
    folder = tmp_path_factory.mktemp("demo")
    run = short_run(folder / "recording", COMMITS, *TABLES)
    topics = f"\n{TOPICS}={run.configuration(folder)[TOPICS]}\n"
    text = (demo_folder() / "pipeline.properties").read_text("utf-8")
    (run.events / "pipeline.properties").write_text(text + topics, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lakeingest.demo.demo_folder", lambda: run.events)
        return shown_demo(folder / "lakeingest-demo", run, "--quick")


def shown_demo(lake: Path, run: RecordedRun, *options: str) -> Demo:
    said, messages = StringIO(), StringIO()
    with redirect_stdout(said), redirect_stderr(messages):
        code = execute(["demo", "--path", str(lake), *options])
    assert code == 0, messages.getvalue()
    commits = run.oracle.commits
    assert commits is not None
    orders = commits[-1]["orders"]["count"]
    return Demo(run.events, orders, lake, said.getvalue(), messages.getvalue())


def shows_orders(demo: Demo) -> None:
    """Check that the demo shows the first orders, below a line of names and one of dashes."""
    rows = re.search(r"public\.orders, ([\d,]+) rows, the first 5:\n((?:.+\n)+)", demo.said)
    assert rows is not None
    assert (rows[1], len(rows[2].splitlines())) == (str(demo.orders), 2 + 5)


def wrong_orders(recording: Path, size: int) -> list[tuple[int, int]]:
    """Return how many orders are wrong, and how many there are, after each round of ``size``."""
    topics = recording / "topics"
    records: dict[str, list[Any]] = {}
    for name in ("orders", "order_lines"):
        with gzip.open(topics / f"t1.public.{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            read = [json.loads(line) for line in lines]
        records[name] = sorted(read, key=lambda record: (record["ts"], record["p"], record["o"]))
    most = max(map(len, records.values()))
    counts = []
    for end in range(size, most + size, size):
        orders = latest_rows(records["orders"][:end], "id")
        sums: Counter[int] = Counter()
        for line in latest_rows(records["order_lines"][:end], "order_id", "line_no"):
            sums[line["order_id"]] += line["qty"] * line["price_cents"]
        wrong = sum(order["total_cents"] != sums[order["id"]] for order in orders)
        counts.append((wrong, len(orders)))
    return counts


def latest_rows(records: Iterable[Any], *key: str) -> list[Any]:
    """Return a table's rows after these records."""
    rows: dict[Any, Any] = {}
    for record in records:
        if record["v"] is not None:
            event = json.loads(record["v"])
            row = event["after"] or event["before"]
            rows[tuple(row[name] for name in key)] = event["after"]
    return [row for row in rows.values() if row is not None]


def leads_somewhere(document: str, link: str) -> bool:
    """Return whether a link of a document leads to a file, and to a heading of it."""
    path, _, heading = link.partition("#")
    target = PATHS[document].parent / path if path else PATHS[document]
    if not target.is_file():
        return False
    headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
    return not heading or heading in {text.lower().replace(" ", "-") for text in headings}


def python_block(name: str, beginning: str) -> str:
    """Return the one Python block of a document that has a line which begins so."""
    blocks = [code for language, code in _FENCED.findall(DOCUMENTS[name]) if language == "python"]
    (block,) = [b for b in blocks if re.search(f"^{re.escape(beginning)}", b, re.MULTILINE)]
    return str(block)


def run_block(
    name: str, beginning: str, replaced: Mapping[str, str], **given: object
) -> dict[str, Any]:
    """Run a block of a document behind what is ``given``; return its variables."""
    code = python_block(name, beginning)
    for old, new in replaced.items():
        assert old in code, f"{name} does not have {old!r} there any more"
        code = code.replace(old, new)
    names: dict[str, Any] = dict(given)
    exec(compile(code, name, "exec"), names)
    return names
