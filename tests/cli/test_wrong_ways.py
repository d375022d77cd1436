"""Ways to get a pipeline wrong: each time it is said what to do, and nothing is published.

``python -m tests.cli.test_wrong_ways`` prints the table of them, with the whole messages; with
``--guide`` it prints the rows of the guide's page ``messages``.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.cli.main import execute
from lakeingest.config.file.properties import read_properties
from lakeingest.demo import demo_folder
from tests.forms import further
from tests.logs.folder import line, write_topic
from tests.recordings.altered import short_run
from tests.recordings.configure import write_properties
from tests.recordings.rust import RustLake

pytestmark = pytest.mark.slow

ORDERS = "lakeingest.table.public.orders"
SCHEMA, PARTITION = f"{ORDERS}.schema", f"{ORDERS}.partition"
COLUMNS = read_properties(demo_folder() / "pipeline.properties").value(SCHEMA).text
TABLES = ("carts", "customers", "orders")
TOPICS = "lakeingest.source.topics"
ORDERS_ALONE = {TOPICS: "t1.public.orders"}
"""Where the other tables are right, they need not be tried."""

SOURCE, TARGET = "lakeingest.source.path", "lakeingest.target.path"
CONNECTOR, FORMAT = "lakeingest.source.connector", "lakeingest.source.format"
COMMITS = 12
"""As many have rows of each of these tables."""


@dataclass(frozen=True)
class Wrong:
    """One way to get it wrong.

    Attributes:
        code: Exit code.
        says: Texts of the message with " … " between: what is wrong, and what to do.
        settings: Properties that are wrong; None: it is left out.
        command: What is called; a run, if nothing else can notice.
        begun: Whether a right run of one batch comes before.
        arguments: Further ones.
        make: Makes the folder of the case wrong, from the right log; returns further properties.
    """

    code: int
    says: str
    settings: Mapping[str, str | None] = field(default_factory=dict)
    command: str = "validate"
    begun: bool = False
    arguments: tuple[str, ...] = ()
    make: Callable[[Path, Path], Mapping[str, str]] | None = None


def below_a_file(folder: Path, _: Path) -> Mapping[str, str]:
    (folder / "file").write_text("x", "utf-8")
    return {TARGET: str(folder / "file" / "lake")}


def a_file(folder: Path, _: Path) -> Mapping[str, str]:
    (folder / "file").write_text("x", "utf-8")
    return {TARGET: str(folder / "file")}


def without_transactions(folder: Path, log: Path) -> Mapping[str, str]:
    shutil.copytree(log, folder / "recorded")
    (folder / "recorded" / "topics" / "t1.transaction.jsonl.gz").unlink()
    return {SOURCE: str(folder / "recorded")}


def no_json(folder: Path, log: Path) -> Mapping[str, str]:
    shutil.copytree(log, folder / "recorded")
    write_topic(folder / "recorded", "t1.public.carts", [line(0, 0, "no JSON", '{"id":1}')])
    return {SOURCE: str(folder / "recorded")}


WRONG = {
    "no columns declared for JSON without schemas": Wrong(
        78, f"{SCHEMA}= … types.guess", {**ORDERS_ALONE, SCHEMA: None}
    ),
    "another connector": Wrong(
        78, "connector for postgresql … says mysql. Correct it", {CONNECTOR: "mysql"}
    ),
    "the target is a file": Wrong(78, "is a file; name the folder", make=a_file),
    "the target cannot be written, and the recorded folder is not there": Wrong(
        77,
        "2 things are wrong … refused access … cannot be listed",
        {TARGET: "/proc/lake", SOURCE: "/nowhere"},
    ),
    "the target is below a file": Wrong(78, "A part of the path", make=below_a_file),
    "the target cannot be written": Wrong(
        77, "refused access … Check that the path is right", {TARGET: "/proc/lake"}
    ),
    "another topic prefix": Wrong(
        69,
        "starts with 'shop.' … Check the topic prefix",
        {"lakeingest.source.topic.prefix": "shop", TOPICS: None},
    ),
    "a recorded folder that is not there": Wrong(
        69,
        "/nowhere/topics cannot be listed … check its path (lakeingest.source.path)",
        {SOURCE: "/nowhere"},
    ),
    "no transaction topic in a recorded folder": Wrong(
        69,
        "t1.transaction … provide.transaction.metadata=true",
        command="run",
        make=without_transactions,
    ),
    "a listed topic that does not exist": Wrong(
        69, "'t1.public.order' does not exist … t1.public.orders", {TOPICS: "t1.public.order"}
    ),
    "an include that is not there": Wrong(
        78, "include: no configuration file … more.properties", {"include": "more.properties"}
    ),
    "a misspelt key": Wrong(
        78, "lakeingest.target.pth … lakeingest.target.path", {"lakeingest.target.pth": "x"}
    ),
    "a misspelt table": Wrong(
        78, f"{SCHEMA}=", {SCHEMA: None, "lakeingest.table.public.order.schema": COLUMNS}
    ),
    "a number that is none": Wrong(
        78, "lakeingest.batch.max.events", {"lakeingest.batch.max.events": "many"}
    ),
    "an environment variable that is not set": Wrong(
        78, "the environment variable LAKE_OF_NOBODY is not set", {TARGET: "${env:LAKE_OF_NOBODY}"}
    ),
    "a key column that is not there": Wrong(
        78, f"order_no … {ORDERS}.key", {**ORDERS_ALONE, f"{ORDERS}.key": "order_no"}
    ),
    "a partition column that is not there": Wrong(
        78, f"Partition column region … Correct {PARTITION}", {**ORDERS_ALONE, PARTITION: "region"}
    ),
    "a declared type that does not hold the values": Wrong(
        65,
        f"'public.orders' … {SCHEMA}",
        {**ORDERS_ALONE, SCHEMA: COLUMNS.replace("status STRING", "status INT")},
    ),
    "two tables in one folder": Wrong(
        78,
        "public.carts … public.orders … path",
        {"lakeingest.table.public.carts.path": "x", f"{ORDERS}.path": "x"},
    ),
    "Avro where the records are JSON": Wrong(
        69, "registry.json cannot be read … or lakeingest.source.format", {FORMAT: "avro"}
    ),
    "a record that is no JSON": Wrong(
        65, "t1.public.carts … offset 0", {TOPICS: "t1.public.carts"}, make=no_json
    ),
    "a setting without a value": Wrong(2, "form key=value", arguments=("--set", "name")),
    "a broker that is away": Wrong(
        69,
        "127.0.0.1:9",
        {
            "lakeingest.source.kind": "kafka",
            SOURCE: None,
            "bootstrap.servers": "127.0.0.1:9",
            "default.api.timeout.ms": "1000",
        },
    ),
    "another pipeline's lake": Wrong(
        78,
        "holds the lake of pipeline 'shop', not of 'other'",
        {"lakeingest.pipeline.name": "other"},
        begun=True,
    ),
    "another format for a table that exists": Wrong(
        78,
        "A format cannot change in place … lakeingest reload CONFIG 'public.customers'",
        {"lakeingest.table.public.customers.format": "hudi"},
        begun=True,
    ),
    "another type for a column that exists": Wrong(
        65,
        "that is not a widening … lakeingest reload CONFIG 'public.customers'",
        {"lakeingest.table.public.customers.schema": "id BIGINT, name BIGINT"},
        begun=True,
    ),
    "a topic of a published table that is not listed": Wrong(
        78,
        "is not read any more … lakeingest retire CONFIG 'public.customers'",
        {TOPICS: "t1.public.orders"},
        begun=True,
    ),
    "another order for a lake that exists": Wrong(
        78,
        "begun with lakeingest.transaction.mode=metadata",
        {"lakeingest.transaction.mode": "none"},
        begun=True,
    ),
    "a table that is not there to be loaded anew": Wrong(
        2,
        "no table 'public.customer' is published; did you mean public.customers?",
        command="reload",
        arguments=("public.customer",),
        begun=True,
    ),
}

SEEN_ELSEWHERE = {
    # tests/apply: test_{resolve,partition,values_refused,unreadable,boundary_mode}.py
    "a key column that is not there",
    "a partition column that is not there",
    "a declared type that does not hold the values",
    "a record that is no JSON",
    "another order for a lake that exists",
    # tests/apply: test_explain.py, test_connector_guard.py, test_inspect.py
    "a misspelt table",
    "no columns declared for JSON without schemas",
    "another connector",
    "another pipeline's lake",
    "a recorded folder that is not there",
    # The case of two things; tests/engine/test_target_probe.py
    "the target cannot be written",
    "the target is below a file",
    # tests/source: test_topics.py, test_kafka.py
    "another topic prefix",
    "a broker that is away",
}
"""Ways that another test in CI gets wrong, too."""


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    code: int
    said: str
    publications: int


@dataclass(frozen=True)
class Begun:
    """The beginning of the demo's log, and a lake with it as its first batch; to be copied."""

    log: Path
    lake: Path

    @staticmethod
    def below(folder: Path) -> Begun:
        """Make both, below an empty folder."""
        begun = Begun(folder / "log", folder / "lake")
        short_run(begun.log, COMMITS, *TABLES)
        begin = configured(folder / "right.properties", begun.rightly(begun.lake))
        assert _called("run", begin, "--max-batches", "1").code == 0
        return begun

    def rightly(self, lake: Path) -> Mapping[str, str]:
        """Return the settings of the demo with this log and a lake of its own."""
        return {
            SOURCE: str(self.log),
            TOPICS: ",".join(f"t1.public.{table}" for table in TABLES),
            TARGET: str(lake),
        }


def outcome(wrong: Wrong, folder: Path, begun: Begun) -> Outcome:
    """Do it wrong, below an empty folder.

    Args:
        wrong: What.
        folder: Where.
        begun: The log, and the lake to copy if it is to be done to one that exists.
    """
    lake = folder / "lake"
    right = begun.rightly(lake)
    if wrong.begun:
        shutil.copytree(begun.lake, lake)
    made = wrong.make(folder, begun.log) if wrong.make else {}
    file = configured(folder / "wrong.properties", {**right, **wrong.settings, **made})
    called = _called(wrong.command, file, *wrong.arguments)
    return Outcome(called.code, called.said, len(RustLake(lake, "public").publications()))


def configured(file: Path, settings: Mapping[str, str | None]) -> Path:
    """Write the demo's configuration, for the tables of the log, with other settings."""
    texts = {
        key: entry.text
        for key, entry in read_properties(demo_folder() / "pipeline.properties").entries.items()
        if not key.startswith("lakeingest.table.") or key.split(".")[3] in TABLES
    }
    entries = {key: text for key, text in {**texts, **settings}.items() if text is not None}
    return write_properties(file, entries)


def _called(command: str, file: Path, *arguments: str) -> Outcome:
    said = StringIO()
    with redirect_stderr(said), redirect_stdout(StringIO()):
        code = execute([command, str(file), *arguments])
    return Outcome(code, said.getvalue(), 0)


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Begun:
    return Begun.below(tmp_path_factory.mktemp("begun"))


@pytest.mark.parametrize(
    "how", [(further if how in SEEN_ELSEWHERE else pytest.param)(how) for how in WRONG]
)
def test_it_is_said_what_is_wrong_and_what_to_do(begun: Begun, tmp_path: Path, how: str) -> None:
    wrong = WRONG[how]
    done = outcome(wrong, tmp_path, begun)
    assert done.code == wrong.code, done.said
    for text in wrong.says.split(" … "):
        assert text in done.said, done.said
    assert "Traceback" not in done.said
    assert done.publications == int(wrong.begun)


def row_of(how: str, wrong: Wrong) -> str:
    """Return the row of the guide's page: what is always said of it."""
    # A misspelt key does not belong into a guide.
    said = wrong.says.removeprefix("lakeingest.target.pth … ").replace("|", "\\|")
    return f"| {how} | `{wrong.command}` | {wrong.code} | {said} |"


def main() -> None:
    """Print a row of each, or with ``--guide`` the rows of the guide's page."""
    if "--guide" in sys.argv:
        sys.stdout.writelines(f"{row_of(*wrong)}\n" for wrong in WRONG.items())
        return
    begun = Begun.below(Path(tempfile.mkdtemp()))
    for how, wrong in WRONG.items():
        folder = Path(tempfile.mkdtemp())
        done = outcome(wrong, folder, begun)
        error = next((x for x in done.said.splitlines() if x.startswith(("error", "Error"))), "")
        row = f"| {how} | {wrong.command} | {done.code} | {error.replace(str(folder), '…')} |"
        sys.stdout.write(f"{row}\n")
        shutil.rmtree(folder)
    shutil.rmtree(begun.lake.parent)


if __name__ == "__main__":
    main()
