"""A configuration that is complete, for tests to break in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from lakeingest.config import load_config
from lakeingest.errors import ConfigError


def without(settings: Mapping[str, str], *keys: str) -> dict[str, str]:
    """Return the settings that are left without some of them."""
    return {key: text for key, text in settings.items() if key not in keys}


SECRET = "hunter2"
"""Part of every secret in these tests; no message may hold it."""

RECORDED = {
    "lakeingest.pipeline.name": "shop",
    "lakeingest.source.kind": "recorded",
    "lakeingest.source.path": "recordings/shop",
    "lakeingest.source.connector": "postgresql",
    "lakeingest.source.topic.prefix": "shop",
    "lakeingest.target.path": "lake",
}


def recorded(log: Path | str, lake: Path | str, prefix: str = "shop") -> dict[str, str]:
    """Return the settings of a pipeline that reads a folder of PostgreSQL's records."""
    places = {"lakeingest.source.path": str(log), "lakeingest.target.path": str(lake)}
    return {**RECORDED, **places, "lakeingest.source.topic.prefix": prefix}


HUDI = {**RECORDED, "lakeingest.target.format": "hudi"}

KAFKA = {
    **without(RECORDED, "lakeingest.source.path"),
    "lakeingest.source.kind": "kafka",
    "bootstrap.servers": "broker:9092",
}

HUDI_STREAMER = {
    "hoodie.streamer.source.kafka.topic": "eu.shop.public.orders",
    "hoodie.streamer.source.class": "org.apache.hudi.utilities.sources.debezium."
    "PostgresDebeziumSource",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "_event_lsn",
    "hoodie.datasource.write.table.name": "orders",
    "hoodie.base.path": "s3://lake/shop",
    "hoodie.deltastreamer.kafka.source.maxEvents": "5000",
    "bootstrap.servers": "broker:9092",
    "auto.offset.reset": "earliest",
}


def problem_of(load: Callable[..., object], *arguments: object) -> str:
    """Return what is said of a configuration that cannot be loaded."""
    with pytest.raises(ConfigError) as error:
        load(*arguments)
    said = str(error.value)
    assert SECRET not in said
    return said


problem = partial(problem_of, load_config)
