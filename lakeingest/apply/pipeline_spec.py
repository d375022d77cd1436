"""What planning needs to know of a configuration.

``plan`` is pure and knows no files of settings. What it needs stands in ``plan.spec`` and is filled
in here, for a run and for what only looks at one.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeingest.config.model import PipelineConfig
from lakeingest.decode.columns import Encodings
from lakeingest.decode.wire import WireFormat
from lakeingest.plan.spec import Ordering, PipelineSpec
from lakeingest.plan.window import is_counted


def pipeline_spec(config: PipelineConfig, wire: WireFormat) -> PipelineSpec:
    """Return the planning settings of a configuration.

    Args:
        config: The pipeline.
        wire: How its records are read, by what is known of their schemas (``Schemas.format``).
    """
    encodings = Encodings(
        decimal=config.source.decimal_mode,
        binary=config.source.binary_mode,
        placeholder=config.unavailable_placeholder,
        time=config.source.time_mode,
        decimal_format=config.source.decimal_format,
        infinite=config.infinite_times,
        # Only PostgreSQL keeps values out of line and leaves them out of a change.
        ambiguous=config.ambiguous_nulls if config.source.connector == "postgresql" else "null",
    )
    return PipelineSpec(
        config.source.connector,
        encodings,
        config.metadata(),
        format=wire,
        uncounted=config.uncounted_collections,
        whole=config.source.ends_topic is not None,
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


def counted(config: PipelineConfig) -> Column:
    """Condition over ``data_collection``: the configuration reads this collection's topic."""
    selected = config.source.names.reads_column(F.col("data_collection"))
    return is_counted(selected, config.uncounted_collections)
