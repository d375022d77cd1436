"""What a soak has seen, and its table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.frame_schemas import Kind
from lakeingest.reader import open_lake
from tests.live.arrived import changes_of
from tests.live.run import LiveRun
from tests.rig.chain import Chain
from tests.soak.faults import Fault
from tests.workloads.counts import Counts


@dataclass
class Account:
    """The account of one soak.

    Attributes:
        family: The database.
        form: How records were written.
        seed: What repeats the choices.
        counts: What the workload did.
        checks: Snapshots compared by the reader meanwhile.
        ends: Ends of runs by exit code.
        recoveries: Seconds to recover, by fault.
        kills: Processes killed, by fault.
        missed: Faults that found nothing to strike.
        violations: Everything that was wrong.
        facts: What the lake and the topics hold at the end.
        seconds_to_the_end: From the end of the workload to its last commit published, and stopped.
    """

    family: str
    form: str
    seed: int
    counts: Counts = field(default_factory=Counts)
    checks: int = 0
    ends: Counter[int] = field(default_factory=Counter)
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    facts: dict[str, int] = field(default_factory=dict)
    seconds_to_the_end: float = 0.0

    def struck(self, fault: Fault, seconds: float) -> None:
        """Note a fault and how long the lake took to recover."""
        self.recoveries.setdefault(fault.name, []).append(seconds)
        self.kills[fault.name] += fault.kills

    def take(self, spark: SparkSession, run: LiveRun, lake: Path, chain: Chain) -> None:
        """Count what the lake and the topics hold."""
        history = open_lake(spark, str(lake)).history()
        row = history.agg(F.count("*"), F.sum("transactions"), F.sum("events")).first()
        assert row is not None
        self.facts["publications"], self.facts["source transactions"] = row[0], row[1] or 0
        self.facts["events"] = row[2] or 0
        arrived = changes_of(spark, run, chain).where(F.col("kind") == Kind.ROW)
        counts = arrived.agg(F.count("*"), F.count_distinct("identity")).first()
        assert counts is not None
        self.facts["row events in the topics"] = counts[0]
        self.facts["of them repeated"] = counts[0] - counts[1]

    def print_table(self) -> None:
        """Print the table, and what was wrong."""
        print(f"\nsoak on {self.family}, {self.form}, seed {self.seed}")
        for name, value in self.facts.items():
            print(f"{name:34} {value:>9,}")
        print(f"{'snapshots checked meanwhile':34} {self.checks:>9,}")
        print(f"{'kills':34} {self.kills.total():>9,}")
        print(f"{'violations':34} {len(self.violations):>9,}")
        print(f"\n{'fault':34} {'times':>6} {'kills':>6} {'recovered in s, median / max':>30}")
        for name, seconds in sorted(self.recoveries.items()):
            times = f"{median(seconds):.1f} / {max(seconds):.1f}"
            print(f"{name:34} {len(seconds):>6} {self.kills[name]:>6} {times:>30}")
        print(f"\nends of runs by exit code: {dict(sorted(self.ends.items()))}")
        print(f"workload: {self.counts.as_json()}")
        for line in self.missed:
            print(f"not struck: {line}")
        for line in self.violations[:20]:
            print(f"VIOLATION {line}")
