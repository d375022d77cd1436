"""The demo kills a run, and counts what readers of other jobs would see; an oracle counts, too."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lakeingest.demo import demo_folder
from tests.recordings.configure import packaged_run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_kills_a_run_and_shows_what_publications_are_good_for(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lakeingest.cli.main", "demo", "--story"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, check=True, timeout=400, capture_output=True
    )
    said, shown = done.stderr.decode(), done.stdout.decode()
    assert (tmp_path / "lakeingest-demo" / "public.orders" / "_delta_log").is_dir()
    assert "killed a run in the middle (kill -9)" in said
    assert f"public.orders, {len(packaged_run().oracle.final('orders').rows)} rows" in shown
    counts = wrong_orders(400)
    worst = max(counts)
    row = r"^(a job per|lakeingest's pub).*?  +(\d+) +(\d+) +(\S.*)$"
    ways = re.findall(row, shown, re.MULTILINE)
    assert ways[0] == (
        "a job per",
        str(len(counts)),
        str(sum(wrong > 0 for wrong, _ in counts)),
        f"{worst[0]} of {worst[1]}",
    )
    assert (ways[1][0], *ways[1][2:]) == ("lakeingest's pub", "0", "none")
    changed = re.search(r"what source transaction (\d+:\d+) changed.*\n((?:.+\n)+)", shown)
    assert changed is not None
    assert "public.orders" in changed[2]


def wrong_orders(size: int) -> list[tuple[int, int]]:
    """Return how many orders are wrong, and how many there are, after each round of ``size``."""
    topics = demo_folder() / "topics"
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
