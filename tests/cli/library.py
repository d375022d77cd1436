"""Stand-ins for the library functions that commands call, to see what they are called with.

Only the wiring of arguments is tested with them; what the library does is tested with Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

from lakeingest.cli.main import execute


@dataclass(frozen=True)
class Summary:
    """What a run or a batch reports; the fields that the command line reads."""

    batch: int = 1
    batches: int = 1
    transactions: int = 2
    events: int = 30
    seconds: float = 2.0
    jobs: int = 12
    tables: Mapping[str, int] = field(default_factory=lambda: {"public.orders": 7})
    rows: Mapping[str, int] = field(default_factory=lambda: {"public.orders": 7})
    frontier: str = "END 12 at 0/16B2D50"
    pending_transactions: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def nothing_new(self) -> bool:
        return self.batches == 0


@dataclass(frozen=True)
class Findings:
    """What a look at a pipeline found."""

    warnings: tuple[str, ...] = ()
    seen: tuple[str, ...] = ("topic shop.public.orders, 3 partitions",)


@dataclass(frozen=True)
class Retirement:
    """What retiring a table, or taking it up again, did."""

    batch: int = 7
    table: str = "public.orders"
    waiting: int | None = None


@dataclass
class Maintenance:
    """What ``maintain`` returns."""

    tables: Mapping[str, int] = field(default_factory=lambda: {"public.orders": 12})
    batch: int = 7
    kept_from: int = 3
    waiting: tuple[str, ...] = ()


class State(Enum):
    """As ``lakeingest.apply.inspect.explain`` has it."""

    STOPPED = "stopped"


@dataclass
class Explanation:
    """As ``lakeingest.apply.inspect.explain`` has it."""

    state: State = State.STOPPED
    reasons: tuple[str, ...] = ("A run would stop with exit code 65: it lacks rows",)
    facts: Mapping[str, object] = field(default_factory=lambda: {"batch": 3})
    exit_code: int = 65


@dataclass
class Library:
    """The calls that were made, and what is returned for them."""

    configuration: str
    capsys: pytest.CaptureFixture[str]
    summary: Summary = field(default_factory=Summary)
    findings: Findings = field(default_factory=Findings)
    retirement: Retirement = field(default_factory=Retirement)
    maintenance: Maintenance = field(default_factory=Maintenance)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failure: BaseException | None = None

    def execute(self, command: str, *arguments: str, code: int = 0) -> tuple[str, str]:
        """Execute a command that exits with ``code``; return its stdout and stderr."""
        assert execute([command, self.configuration, *arguments]) == code
        shown = self.capsys.readouterr()
        return shown.out, shown.err

    def called(self, name: str) -> dict[str, Any]:
        """Return the arguments of the one call of a function."""
        (arguments,) = [arguments for called, arguments in self.calls if called == name]
        return arguments

    def _run(self, spark: object, config: object, **options: Any) -> Summary:
        self.calls.append(("run_pipeline", {"spark": spark, "config": config, **options}))
        if self.failure is not None:
            raise self.failure
        on_batch: Callable[[Summary], None] = options["on_batch"]
        for _ in range(self.summary.batches):
            on_batch(self.summary)
        return self.summary

    def _status(self, spark: object, config: object) -> Mapping[str, object]:
        self.calls.append(("pipeline_status", {"spark": spark, "config": config}))
        return {"batch": 3, "pending": {"public.orders": None}, "tables": ["a", "b"]}

    def _validate(self, spark: object, config: object) -> Findings:
        self.calls.append(("validate_pipeline", {"spark": spark, "config": config}))
        return self.findings

    def _explain(self, spark: object, config: object) -> Explanation:
        self.calls.append(("explain_pipeline", {"spark": spark, "config": config}))
        return Explanation()

    def _retire(self, spark: object, config: object, table: str, *, undo: bool) -> Retirement:
        self.calls.append(("retire_table", {"config": config, "table": table, "undo": undo}))
        return self.retirement

    def _maintain(self, spark: object, config: object) -> Maintenance:
        self.calls.append(("maintain_lake", {"config": config}))
        return self.maintenance

    def _session(self, **options: Any) -> str:
        self.calls.append(("session", options))
        return "spark"

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Library:
        """Put the stand-ins where the commands import from."""
        modules: dict[str, dict[str, Callable[..., object]]] = {
            "lakeingest.session": {"session": self._session},
            "lakeingest.apply": {},
            "lakeingest.apply.run": {"run_pipeline": self._run},
            "lakeingest.apply.inspect.explain": {"explain_pipeline": self._explain},
            "lakeingest.apply.choice": {},
            "lakeingest.apply.choice.retire": {"retire_table": self._retire},
            "lakeingest.apply.maintenance": {},
            "lakeingest.apply.maintenance.maintain": {"maintain_lake": self._maintain},
            "lakeingest.apply.inspect": {},
            "lakeingest.apply.inspect.status": {"pipeline_status": self._status},
            "lakeingest.apply.inspect.validate": {"validate_pipeline": self._validate},
        }
        for name, functions in modules.items():
            module = ModuleType(name)
            for function, stand_in in functions.items():
                setattr(module, function, stand_in)
            monkeypatch.setitem(sys.modules, name, module)
        return self
