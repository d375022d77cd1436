"""Maintain a lake without what takes most of the time: its files stay as they are."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply.maintenance.keeper import Keeper
from lakeingest.apply.maintenance.maintain import Maintenance
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.delta.maintenance import DeltaMaintenance


def maintain_quickly(
    spark: SparkSession, config: PipelineConfig, *, expires: bool = True
) -> Maintenance:
    """Maintain Delta tables, but let Delta neither join small files nor delete old ones.

    Args:
        spark: The session.
        config: The pipeline.
        expires: Whether old publications expire; else none does, and no table is tidied.
    """
    with pytest.MonkeyPatch.context() as patch:
        for command in ("join_small_files", "vacuum"):
            patch.setattr(DeltaMaintenance, command, lambda *_: None)
        if not expires:
            patch.setattr(Keeper, "expire", lambda *_: 0)
            patch.setattr(Keeper, "tidy", lambda *_: {})
        return lakeingest.maintain(spark, config)
