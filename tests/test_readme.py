"""What README says is so: keys, defaults, commands, paths, and the code to read a lake."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.cli.main import app, execute
from lakeingest.config.keys import COLLECTION, KEYS, OURS, TABLE, TABLE_KEYS, Key, split_table_key
from tests.apply.written import Sent, WrittenLog
from tests.reader.small_lake import SmallLake
from tests.recordings.configure import packaged_run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")

BY_NAME = {key.name: key for key in (*KEYS, *TABLE_KEYS.values())}

_KEY = re.compile(
    r"lakeingest\.[a-z][a-z0-9_]*(?:\.(?:<[a-z]+>|[a-z][a-z0-9_]*))+|lakeingest\.deletes"
)
_KIND = ".<kind>"
_IN_WORDS = re.compile(r"`?[\w-]+`?|`[\w-]+`, .*")
"""A default that is the value itself; anything else tells of it in words."""


def known(name: str) -> Key | None:
    """Return the key that README names, whatever table or kind it names it for."""
    name = name.replace(_KIND, ".added")
    if name.startswith(TABLE):
        return TABLE_KEYS.get(split_table_key(name.replace("<table>", COLLECTION))[1])
    return BY_NAME.get(name)


def is_module(name: str) -> bool:
    return (ROOT / name.replace(".", "/")).with_suffix(".py").is_file()


def rows_of_tables() -> Iterator[list[str]]:
    for line in README.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def documented_defaults() -> Iterator[tuple[Key, str]]:
    """Yield what README's tables say is a key's default, abbreviated keys written out."""
    for cells in rows_of_tables():
        before = ""
        for nth, name in enumerate(re.findall(r"`([^`]+)`", cells[0])):
            if name.startswith("…."):
                (full,) = [key for key in BY_NAME if key.endswith(name[1:]) and like(key, before)]
            else:
                full = before = (
                    f"{OURS}schema.{name}" if f"{OURS}schema.{name}" in BY_NAME else name
                )
            key = known(full)
            # A table's setting behind the pipeline's has none of its own.
            if key is not None and not (nth and key.default is None):
                yield key, cells[1]


def like(one: str, other: str) -> bool:
    """Tell whether both are keys of one table, or both of the pipeline, beginning alike."""
    return one.split(".")[1] == other.split(".")[1]


def test_every_key_of_ours_in_readme_exists() -> None:
    named = {name for name in _KEY.findall(README) if not is_module(name)}
    assert len(named) > 35
    assert [name for name in sorted(named) if known(name) is None] == []


def test_every_default_in_readmes_tables_is_the_models() -> None:
    told = list(documented_defaults())
    assert len(told) >= 25
    wrong = []
    for key, text in told:
        given = key.default
        if _IN_WORDS.fullmatch(text) and text != "none":
            wrong += [(key.name, text, given)] if text.split(",")[0].strip("`") != given else []
        elif text != "Debezium's":
            wrong += [(key.name, text, given)] if given is not None else []
    assert wrong == []


def test_every_default_in_brackets_is_the_models() -> None:
    told = re.findall(r"`(lakeingest\.[a-z.]+)` \((\d+)\)", README)
    assert told
    assert [name for name, text in told if BY_NAME[name].default != text] == []


def test_every_path_and_module_that_readme_names_exists() -> None:
    paths = set(re.findall(r"`((?:tests|notebooks|lakeingest|jars)/[\w/.-]+)`", README))
    paths |= {link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link}
    assert len(paths) >= 6
    assert [path for path in sorted(paths) if not (ROOT / path.partition("#")[0]).exists()] == []
    folders = re.findall(r"^   (\w+)/", README, re.MULTILINE)
    assert len(folders) >= 7
    assert [name for name in folders if not (ROOT / "lakeingest" / name).is_dir()] == []
    modules = set(re.findall(r"python -m (tests[\w.]*)", README))
    assert len(modules) >= 7
    assert [name for name in sorted(modules) if importlib.util.find_spec(name) is None] == []


def test_every_command_that_readme_names_exists() -> None:
    commands = {
        item.name or getattr(item.callback, "__name__", "").replace("_", "-")
        for item in app.registered_commands
    }
    named = set(re.findall(r"^(?:\S*/)?lakeingest ([a-z-]+)", README, re.MULTILINE))
    assert len(named) >= 8
    assert named - commands == set()


@pytest.mark.slow
def test_the_demo_shows_its_tables_and_finds_nothing_new_the_second_time(
    demo: Demo, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert re.search(r"^transactions +979$", demo.said, re.MULTILINE)
    rows = re.search(r"public\.orders, ([\d,]+) rows, the first 5:\n((?:.+\n)+)", demo.said)
    assert rows is not None
    # A line of names and a line below them.
    assert (rows[1], len(rows[2].splitlines())) == (str(final_orders()), 2 + 5)
    assert "the latest publications" in demo.said
    before = lakeingest.open(spark, str(demo.lake)).snapshot()
    assert execute(["demo", "--path", str(demo.lake)]) == 0
    captured = capsys.readouterr()
    assert "there is nothing new; nothing was changed" in captured.err
    assert re.search(r"^batches +0$", captured.out, re.MULTILINE)
    again = lakeingest.open(spark, str(demo.lake)).snapshot()
    assert (again.batch, again.versions) == (before.batch, before.versions)


def test_readmes_code_runs_a_pipeline(
    spark: SparkSession, small_lake: SmallLake, tmp_path: Path
) -> None:
    path = tmp_path / "shop.properties"
    path.write_text("".join(f"{k}={v}\n" for k, v in small_lake.settings.items()), "utf-8")
    names = run_block(python_block("summary = lakeingest.run"), {"shop.properties": str(path)})
    assert names["summary"].nothing_new


@pytest.mark.slow
def test_readmes_code_reads_a_lake_with_spark(spark: SparkSession, demo: Demo) -> None:
    names = run_block(python_block("lake = lakeingest.open"), {"s3a://lake/shop": str(demo.lake)})
    assert names["orders"].count() > 0
    views = names["spark"].catalog.listTables()
    assert "public_order_lines" in {view.name for view in views}
    assert names["lake"].transactions().count() == 979


@pytest.mark.slow
def test_readmes_code_reads_a_lake_with_delta_rs(spark: SparkSession, demo: Demo) -> None:
    block = python_block("from deltalake")
    rows = run_block(block, {"/data/shop": str(demo.lake)})["rows"].read_all()
    orders = lakeingest.open(spark, str(demo.lake)).table("public.orders")
    assert rows.num_rows == orders.count() == final_orders()


@pytest.mark.slow
def test_readmes_code_reads_a_hudi_table_with_hudi_rs(spark: SparkSession, tmp_path: Path) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql")
    for n, (id_, v) in enumerate(((1, 10), (2, 20), (1, 11), (3, 30), (3, None)), 1):
        commit, lsn = 100 * n, 100 * n - 50
        place = {"schema": "public", "table": "orders", "txId": n, "lsn": lsn}
        sequence = f'["{commit - 100}","{lsn}"]'
        sent = Sent("public.orders", id_, v, {**place, "sequence": sequence})
        log.transaction(f"{n}:{commit}", sent)
    lake = tmp_path / "lake"
    log.ingest(spark, lake, target_format="hudi")
    versions = lakeingest.open(spark, str(lake)).snapshot().versions
    block = python_block("from hudi")
    names = run_block(block, {"/data/shop": str(lake)}, versions=versions)
    rows = [row for batch in names["batches"] for row in batch.to_pylist()]
    found = {row["id"]: row["v"] for row in rows if not row["_deleted"]}
    assert (len(rows), found) == (3, {1: 11, 2: 20})


@dataclass(frozen=True)
class Demo:
    """What ``lakeingest demo`` made and said."""

    lake: Path
    said: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo as a person runs it."""
    folder = tmp_path_factory.mktemp("demo")
    run = subprocess.run(
        [sys.executable, "-m", "lakeingest.cli.main", "demo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return Demo(folder / "lakeingest-demo", run.stdout)


def final_orders() -> int:
    """Return how many orders the source had when it was recorded."""
    return len(packaged_run().oracle.final("orders").rows)


def python_block(beginning: str) -> str:
    """Return the one Python block of README that has a line which begins so."""
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (block,) = [b for b in blocks if re.search(f"^{re.escape(beginning)}", b, re.MULTILINE)]
    return str(block)


def run_block(code: str, replaced: Mapping[str, str], **given: object) -> dict[str, Any]:
    """Run a block of README behind what is ``given``; returns its variables."""
    for old, new in replaced.items():
        assert old in code, f"README does not have {old!r} there any more"
        code = code.replace(old, new)
    names: dict[str, Any] = dict(given)
    exec(compile(code, "README.md", "exec"), names)
    return names
