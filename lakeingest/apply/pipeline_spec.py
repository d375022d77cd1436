"""Translate a configuration into the settings that planning needs.

``plan`` is pure and knows no files of settings. The settings that it needs are in ``plan.spec``.
This module fills them in, both for a run and for an inspection.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeingest.apply.table.record_schemas import Schemas
from lakeingest.apply.window.window import PipelineLog
from lakeingest.config.model import PipelineConfig
from lakeingest.connectors import CONNECTORS
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.wire import WireFormat
from lakeingest.engine.known_columns import made_once
from lakeingest.plan.spec import Ordering, PipelineSpec, Transactions
from lakeingest.plan.window import is_counted
from lakeingest.source.contract import Source
from lakeingest.topic_names import TopicNames


def pipeline_spec(config: PipelineConfig, wire: WireFormat) -> PipelineSpec:
    """Return the planning settings of a configuration.

    Args:
        config: The pipeline.
        wire: Format of its records, with the schemas that are known (``Schemas.format``).
    """
    facts = CONNECTORS[config.source.connector]
    encodings = Encodings(
        decimal=config.source.decimal_mode,
        binary=config.source.binary_mode,
        placeholder=config.unavailable_placeholder,
        time=config.source.time_mode,
        decimal_format=config.source.decimal_format,
        infinite=config.infinite_times,
        ambiguous=config.ambiguous_nulls if facts.ambiguous_nulls else "null",
    )
    return PipelineSpec(
        config.source.connector,
        encodings,
        config.metadata(),
        format=wire,
        transactions=Transactions(config.source.transaction_mode),
        skipped=frozenset(config.source.skip_records),
        ordering=Ordering(
            config.source.ordering_columns,
            {
                name: table.ordering_columns
                for name, table in config.tables.items()
                if table.ordering_columns
            },
        ),
    )


def pipeline_log(config: PipelineConfig, source: Source, schemas: Schemas) -> PipelineLog:
    """Return the log of a pipeline.

    Args:
        config: The pipeline.
        source: Its records.
        schemas: Schemas of the records.
    """
    spec = pipeline_spec(config, schemas.format)
    return PipelineLog(source, config.source.ends_topic, spec, counted(config), schemas)


def counted(config: PipelineConfig) -> Column:
    """Return a condition over ``data_collection``: END's count of its rows must be met.

    It holds for collections whose topic the configuration reads and whose rows no transform drops.
    """
    return _counted(config.source.names, tuple(config.uncounted_collections))


@made_once
def _counted(names: TopicNames, uncounted: tuple[str, ...]) -> Column:
    return is_counted(names.reads_column(F.col("data_collection")), uncounted)
