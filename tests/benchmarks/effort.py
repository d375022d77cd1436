"""What a step costs: seconds on the clock, and seconds of the cores.

On a machine that other people use, the clock says how much of it they left; what the cores did is
nearly the same at any load. It holds everything that Spark's JVM and this process did meanwhile,
compiling code and collecting garbage, too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_USER, _SYSTEM = 11, 12
"""Fields of ``/proc/<pid>/stat``, counted behind the command's name."""


@dataclass(frozen=True)
class Effort:
    """Seconds on the clock, and of the cores (0 where the system does not tell)."""

    seconds: float
    cores: float


def effort(step: Callable[[], object]) -> Effort:
    """Run ``step`` and return what it cost."""
    cores, clock = cores_used(), time.perf_counter()
    step()
    return Effort(time.perf_counter() - clock, cores_used() - cores)


def cores_used() -> float:
    """Seconds that this process and its children (Spark's JVM is one) have had of the cores."""
    own = Path("/proc/self")
    if not own.exists():
        return 0.0
    lists = [file.read_text() for file in own.glob("task/*/children")]
    children = [Path("/proc", pid) for text in lists for pid in text.split()]
    return sum(_used(process) for process in (own, *children))


def _used(process: Path) -> float:
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")
