"""Draft a pipeline's configuration: read samples, then the catalogue, then write the text.

Rejected: to ask the user on the terminal. A file can be read, kept and compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing

from pyspark.sql import SparkSession

from lakeingest.apply.draft.declared import mode_settings, with_declarations
from lakeingest.apply.draft.samples import is_avro, newest_records, topic_samples
from lakeingest.apply.draft.text import draft_text
from lakeingest.apply.pipeline_spec import pipeline_log, pipeline_spec
from lakeingest.apply.run_session import run_session
from lakeingest.apply.table.record_schemas import open_schemas
from lakeingest.config import keys
from lakeingest.config.load import load_config
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.storage_errors import storage
from lakeingest.errors import ConfigError
from lakeingest.source import open_source
from lakeingest.source.catalogue import read_catalogue
from lakeingest.source.topics import has_topic

_ANY_CONNECTOR = "postgresql"
"""Stands for the connector until a record names it; topics are named alike for all."""


def draft(spark: SparkSession, settings: Mapping[str, str], jdbc: str | None = None) -> str:
    """Return the text of a configuration.

    Args:
        spark: Session that can read the source, and has the driver of ``jdbc``.
        settings: Properties that say where the records are, the topic prefix and the target; they
            are part of the text.
        jdbc: URL of the source database, for the types of records without schemas.

    Raises:
        ConfigError: A setting is missing or wrong, or the records do not name one connector.
        LakeingestError: The source or the catalogue cannot be read.
    """
    own = run_session(spark)
    config = provisional(settings)
    catalogue = read_catalogue(own, jdbc) if jdbc else None
    with ExitStack() as resources:
        resources.enter_context(storage(config.source.path or ""))
        source = resources.enter_context(closing(open_source(own, config.source)))
        records = newest_records(source)
        if keys.SOURCE_FORMAT not in settings and is_avro(records):
            settings = {**settings, keys.SOURCE_FORMAT: "avro"}
            config = _with_registry(settings)
        schemas = resources.enter_context(closing(open_schemas(own, config.source)))
        log = pipeline_log(config, source, schemas)
        samples = topic_samples(log, records, config.source.names)
        ends = config.source.ends_topic
        whole = ends is not None and has_topic(source, ends)
    if catalogue is not None:
        seen = mode_settings(samples, catalogue, settings)
        modes = {**settings, **seen}
        settings = {**settings, **{key: mode for key, mode in seen.items() if mode}}
        spec = pipeline_spec(provisional(settings), log.spec.format)
        samples = [with_declarations(s, catalogue, spec.encodings, modes) for s in samples]
    return draft_text(settings, samples, whole=whole)


def provisional(settings: Mapping[str, str]) -> PipelineConfig:
    """Return a configuration that finds the topics; its connector may be a wrong one."""
    return load_config({keys.CONNECTOR: _ANY_CONNECTOR, **settings})


def _with_registry(settings: Mapping[str, str]) -> PipelineConfig:
    if settings[keys.SOURCE_KIND] == "kafka" and keys.REGISTRY_URL not in settings:
        message = "The records are in Avro. Name the registry of their schemas: --registry URL."
        raise ConfigError(message)
    return provisional(settings)
