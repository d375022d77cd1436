"""The tables' columns and keys, remembered for a run and renewed as the events change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.table.partition import resolve_partition
from lakeingest.apply.table.resolve import table_spec
from lakeingest.config.model import PipelineConfig
from lakeingest.decode.columns import Encodings
from lakeingest.decode.replaced_nulls import replaced_nulls_warning
from lakeingest.errors import ConfigError
from lakeingest.plan.evolution import Kind, Policies, Policy, SourceSchema
from lakeingest.plan.inference import narrowest, readable_counts
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec
from lakeingest.sink.contract import Sink, TableState
from lakeingest.widening import widens

_CREATED = 0
"""Version of a table that a batch creates."""


class Warnings:
    """Collects each warning once, in order; tables report from several threads."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = Lock()
        self._seen: dict[str, None] = {}

    def add(self, text: str) -> None:
        """Note a warning unless it was noted before."""
        with self._lock:
            self._seen.setdefault(text)

    def all(self) -> tuple[str, ...]:
        """Return the warnings so far."""
        with self._lock:
            return tuple(self._seen)


class TableBook:
    """Settles what a table looks like in a batch."""

    def __init__(
        self,
        spark: SparkSession,
        config: PipelineConfig,
        spec: PipelineSpec,
        sink: Sink,
        warn: Callable[[str], None],
    ) -> None:
        """Bind to a pipeline.

        Raises:
            ConfigError: A declared schema is not valid DDL.
        """
        self._config = config
        self._spec = spec
        self._sink = sink
        self._warn = warn
        self._lake: dict[str, tuple[int, StructType]] = {}
        self._ddl = {
            name: self._parsed(spark, name, table.ddl)
            for name, table in config.tables.items()
            if table.ddl is not None
        }

    def encodings(self, collection: str) -> Encodings:
        """Wire settings of the connector, and what becomes of values that they leave open."""
        shared, chosen = self._spec.encodings, self._config.value_policies(collection)
        # Where the connector leaves nothing out, no NULL is in doubt (``pipeline_spec``).
        doubts = self._spec.connector == "postgresql"
        return replace(
            shared,
            infinite=chosen["infinite_times"],
            ambiguous=chosen["ambiguous_nulls"] if doubts else shared.ambiguous,
        )

    def _parsed(self, spark: SparkSession, collection: str, ddl: str) -> StructType:
        try:
            return spark.createDataFrame([], ddl).schema
        except Exception as error:
            first_line = str(error).strip().splitlines()[0]
            message = (
                f"lakeingest.table.{collection}.schema is not a column list in Spark DDL "
                f"(such as 'id BIGINT, name STRING'): {first_line}"
            )
            raise ConfigError(message) from error

    def is_read(self, collection: str) -> bool:
        """Tell whether the configuration selects the table's topic."""
        return self._config.source.selects(collection)

    def spec(
        self,
        collection: str,
        batch_stats: Sequence[BatchStats],
        changes: DataFrame,
        state: TableState | None,
    ) -> TableSpec:
        """Return columns and key of a table for one batch; see ``table_spec``."""
        if state and state.note.event and not self._spec.names.event:
            raise _turned_off(collection)
        declared = self._config.table(collection)
        tags = frozenset(tag for stats in batch_stats for tag in stats.value_tags)
        defaulted = self._spec.format.defaulted(tags)
        if defaulted:
            self._warn(replaced_nulls_warning(collection, defaulted))
        table = table_spec(
            collection,
            batch_stats,
            self._ddl.get(collection) or self._as_adopted(collection, state),
            declared.key or (state.note.key if state else ()),
            self._schema(collection, state),
            self._spec,
            lambda names, cells: _inferred(changes, names, cells),
            self._warn,
            before=SourceSchema.from_json(state.note.schema) if state else None,
            policies=self._policies(collection),
            partition=state.note.partition if state else (),
            keyless=None if declared.keyless == "stop" else Keyless(declared.keyless),
            too_large=declared.decimal_too_large,
        )
        if state and state.note.key and tuple(sorted(table.key)) != tuple(sorted(state.note.key)):
            message = (
                f"Table '{collection}' is kept by key ({', '.join(state.note.key)}) in the lake, "
                f"but now by ({', '.join(table.key)}), as the configuration or its records say. A "
                "key cannot change in place: load the table anew."
            )
            raise ConfigError(message)
        if state and state.note.key:
            # In the order that the table was made with: Hudi's record key is made in it.
            table = replace(table, key=state.note.key)
        return replace(
            table,
            partition=resolve_partition(table, declared.partition, state),
            encodings=self.encodings(collection),
        )

    def _policies(self, collection: str) -> Policies:
        chosen = self._config.schema_policies(collection)
        return {Kind(kind): Policy(policy) for kind, policy in chosen.items()}

    def _as_adopted(self, collection: str, state: TableState | None) -> StructType | None:
        """Return the columns that an adopted table has: its first writer chose their types."""
        if state is None or not state.note.adopted_at:
            return None
        lake = self._schema(collection, state)
        others = {*self._spec.names.names, *self._spec.names.event}
        return StructType([item for item in lake or () if item.name not in others])

    def foreseen(self, table: TableSpec, state: TableState | None) -> bool:
        """Tell whether it is known before a batch is written what the table looks like after it.

        Yes where the batch creates it, and where it has these columns already, in types that hold
        these: a format may keep a wider one than it was given (Hudi has no TINYINT).
        """
        collection = table.collection
        if state is None:
            fields = [StructField(column.name, column.type.spark) for column in table.columns]
            self._lake[collection] = (_CREATED, StructType(fields))
            return True
        lake = self._schema(collection, state)
        kinds = {item.name: item.dataType for item in lake or ()}
        return (
            bool(state.note.key)
            and not table.fills
            and all(
                column.name in kinds and widens(column.type.spark, kinds[column.name])
                for column in table.columns
            )
        )

    def forget(self) -> None:
        """Forget what tables look like: a batch failed, and what it did to them is not known."""
        self._lake.clear()

    def unchanged(self, collection: str, version: int) -> None:
        """Take note that the table looks at ``version`` as it did when it was last read."""
        known = self._lake.get(collection)
        if known is not None:
            self._lake[collection] = (version, known[1])

    def _schema(self, collection: str, state: TableState | None) -> StructType | None:
        """Schema of the lake's table, read again only where it may have changed."""
        if state is None:
            return None
        known = self._lake.get(collection)
        if known is not None and known[0] >= state.version:
            return known[1]
        schema = self._sink.read(collection, state.version).schema
        self._lake[collection] = (state.version, schema)
        return schema


def _turned_off(collection: str) -> ConfigError:
    """Old values would stay in rows that newer events have changed: rather stop than tell that."""
    return ConfigError(
        f"Table '{collection}' has RFC-39's columns (_change_operation_type and others), but the "
        "configuration does not keep them. Set lakeingest.metadata.columns=hudi; to be rid of "
        "them, load the table anew. Nothing of this batch was published."
    )


def _inferred(changes: DataFrame, names: Sequence[str], cells: bool) -> Mapping[str, str]:
    row = readable_counts(changes, names, cells=cells).first()
    counts = row.asDict() if row else {}
    return {name: narrowest(counts, index) for index, name in enumerate(names)}
