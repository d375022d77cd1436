"""A shop of two tables whose transactions a test commits one by one, and its lake."""

from __future__ import annotations

import shutil
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply.choice.retire import Retirement
from lakeingest.apply.summary import RunSummary
from lakeingest.config.model import PipelineConfig
from tests.apply.published import tables
from tests.logs.written import Sent, WrittenLog, place_of

GONE = "public.b"


def row(collection: str, number: int, nth: int, id_: int, v: int | None) -> Sent:
    """Return the ``nth`` row of transaction ``number``, in commit order."""
    return Sent(collection, id_, v, place_of(collection, 1000 * number + nth, 1000 * number), "u")


@dataclass
class Shop:
    """A source of two tables, and the lake of its pipeline."""

    spark: SparkSession
    log: WrittenLog
    lake: Path
    settings: dict[str, str]
    number: int = 0

    def commit(self, **values: int) -> None:
        """Commit one row of each named table: a, b."""
        self.number += 1
        rows = [
            row(f"public.{name}", self.number, nth, self.number, v)
            for nth, (name, v) in enumerate(values.items(), 1)
        ]
        self.log.transaction(f"{self.number}:{1000 * self.number + 100}", *rows)

    def run(self, **settings: str) -> RunSummary:
        return self.log.ingest(self.spark, self.lake, **self.settings, **settings)

    def configured(self, **settings: str) -> PipelineConfig:
        """Write what there is and return the pipeline that reads it."""
        return self.log.configured(self.lake, **self.settings, **settings)

    def retire(self, *, undo: bool = False, **settings: str) -> Retirement:
        return lakeingest.retire(self.spark, self.configured(**settings), GONE, undo=undo)

    def copied(self, folder: Path) -> Shop:
        """Return a copy of source and lake in another folder."""
        shutil.copytree(self.lake, folder / "lake")
        log = deepcopy(self.log)
        log.folder = folder / "log"
        return replace(self, log=log, lake=folder / "lake", settings=dict(self.settings))

    def tables(self) -> dict[str, dict[int, int]]:
        """Return the newest snapshot's tables."""
        return tables(self.spark, self.lake)


def opened_shop(spark: SparkSession, folder: Path, format_: str) -> Shop:
    """Return a shop with two transactions of two tables, of which no run has read any."""
    log = WrittenLog(folder / "log", "postgresql")
    shop = Shop(spark, log, folder / "lake", {"target_format": format_})
    shop.commit(a=10, b=11)
    shop.commit(a=20, b=21)
    return shop


def begun_shop(spark: SparkSession, folder: Path, format_: str) -> Shop:
    """Return a shop of which two transactions of two tables are published."""
    shop = opened_shop(spark, folder, format_)
    shop.run()
    return shop
