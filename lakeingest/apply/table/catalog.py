"""Keep the columns and keys of a run's tables; resolve them again as the events change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from threading import Lock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.table.guesses import Guesses
from lakeingest.apply.table.partition import resolve_partition
from lakeingest.apply.table.resolve import table_spec
from lakeingest.apply.table.settings import TableBefore, TableSettings
from lakeingest.config.model import PipelineConfig
from lakeingest.config.redaction import scrub
from lakeingest.connectors import CONNECTORS
from lakeingest.decode.columns import declared_columns
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.replaced_nulls import replaced_nulls_warning
from lakeingest.errors import ConfigError, load_anew
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.plan.evolution import Kind, Policies, Policy, SourceSchema
from lakeingest.plan.inference import inferred_types, readable_counts
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec
from lakeingest.sink.contract import Sink, TableState
from lakeingest.sink.schema_change import schema_change
from lakeingest.widening import widens

_LOG = logging.getLogger(__name__)

_CREATED = 0
"""Version of a table that a batch creates."""


class Warnings:
    """Collects each warning once, in order; tables report from several threads."""

    def __init__(self, given: Iterable[str] = (), *, logs: bool = False) -> None:
        """Begin with the warnings that were given before.

        Args:
            given: These warnings.
            logs: Whether to log new ones at once: a continuous run has no end to tell them at, and
                one that stops with an error tells only that.
        """
        self._lock = Lock()
        self._texts = dict.fromkeys(given)
        self._logs = logs

    def add(self, *texts: str) -> None:
        """Add the warnings that are not there already."""
        with self._lock:
            for text in texts:
                if text not in self._texts:
                    self._texts[text] = None
                    if self._logs:
                        _LOG.warning("%s", scrub(text))

    def all(self) -> tuple[str, ...]:
        """Return the warnings so far."""
        with self._lock:
            return tuple(self._texts)


class TableBook:
    """Resolves the columns and the key of a table for each batch."""

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
        self._guesses = Guesses(config)
        self._ddl = {
            name: self._parse_ddl(spark, name, table.ddl)
            for name, table in config.tables.items()
            if table.ddl is not None
        }

    def encodings(self, collection: str) -> Encodings:
        """Return the connector's wire settings with the table's policies for ambiguous values."""
        shared, policies = self._spec.encodings, self._config.value_policies(collection)
        has_ambiguous_nulls = CONNECTORS[self._spec.connector].ambiguous_nulls
        return replace(
            shared,
            infinite=policies["infinite_times"],
            ambiguous=policies["ambiguous_nulls"] if has_ambiguous_nulls else shared.ambiguous,
        )

    def _parse_ddl(self, spark: SparkSession, collection: str, ddl: str) -> StructType:
        try:
            return spark.createDataFrame([], ddl).schema
        except Exception as error:
            first_line = str(error).strip().splitlines()[0]
            message = (
                f"lakeingest.table.{collection}.schema is not a column list in Spark DDL "
                f"(such as 'id BIGINT, name STRING'): {first_line}"
            )
            raise ConfigError(message) from error

    @property
    def whole(self) -> bool:
        """Whether transactions are applied whole; else each event is applied alone."""
        return self._spec.whole

    def is_read(self, collection: str) -> bool:
        """Return whether the configuration selects the table's topic."""
        return self._config.source.selects(collection)

    def divides(self, collection: str) -> bool:
        """Return whether the sink can make each transaction a version of the table at once."""
        return self._sink.divides(collection)

    def spec(
        self,
        collection: str,
        batch_stats: Sequence[BatchStats],
        changes: DataFrame,
        state: TableState | None,
    ) -> TableSpec:
        """Return columns and key of a table for one batch; see ``table_spec``."""
        if state and state.note.event and not self._spec.names.event:
            raise _event_columns_turned_off(collection)
        settings = self._config.table(collection)
        tags = frozenset(tag for stats in batch_stats for tag in stats.value_tags)
        nullable_defaults = self._spec.format.nullable_defaults(tags)
        if nullable_defaults:
            self._warn(replaced_nulls_warning(collection, nullable_defaults))
        before = TableBefore()
        if state:
            source = SourceSchema.from_json(state.note.schema)
            note = state.note
            lake = self._schema(collection, state)
            before = TableBefore(lake, source, note.partition, note.key, note.high)
        table = table_spec(
            TableSettings(
                collection,
                ddl=self._ddl.get(collection) or self._adopted_columns(collection, state),
                key=settings.key,
                policies=self._policies(collection),
                keyless=None if settings.keyless == "stop" else Keyless(settings.keyless),
                too_large=settings.decimal_too_large,
                adopted=bool(state and state.note.adopted_at),
            ),
            before,
            batch_stats,
            self._spec,
            lambda names, cells: self._infer(collection, changes, names, cells),
            self._warn,
        )
        if state and state.note.key:
            _refuse_other_key(collection, table.key, state)
            # Keep the column order that the table was made with: Hudi builds its record key in it.
            table = replace(table, key=state.note.key)
        return replace(
            table,
            partition=resolve_partition(table, settings.partition, state),
            encodings=self.encodings(collection),
        )

    def refuse_other_declarations(self, tables: Mapping[str, TableState]) -> None:
        """Refuse what is declared otherwise than a table of the lake has it.

        A batch with rows of the table would be refused, too. A run does not ask before: it would
        read the schema of each table that has no rows.

        Raises:
            DataError: A column's type neither fits nor widens.
            ConfigError: The key is another one, or the prefix of its metadata columns.
        """
        for name, state in tables.items():
            lake = self._schema(name, state) or StructType()
            if name in self._ddl:
                columns = declared_columns(self._ddl[name], self.encodings(name))
                fields = [StructField(column.name, column.type.spark) for column in columns]
                schema_change(name, lake, StructType(fields))
            if key := self._config.table(name).key:
                _refuse_other_key(name, key, state)

    def refuse_guesses(self) -> None:
        """Refuse columns of the tables that ``spec`` has resolved whose types are only guesses.

        Raises:
            ConfigError: There are such columns; it has the lines to declare them all.
        """
        self._guesses.refuse()

    def _infer(
        self, collection: str, changes: DataFrame, names: Sequence[str], cells: bool
    ) -> Mapping[str, str]:
        types = inferred_types(readable_counts(changes, names, cells=cells).first(), names)
        self._guesses.add(collection, types)
        return {name: inferred.kind for name, inferred in types.items()}

    def _policies(self, collection: str) -> Policies:
        policies = self._config.schema_policies(collection)
        return {Kind(kind): Policy(policy) for kind, policy in policies.items()}

    def _adopted_columns(self, collection: str, state: TableState | None) -> StructType | None:
        """Return the columns of an adopted table, whose types its first writer chose; else None."""
        if state is None or not state.note.adopted_at:
            return None
        lake = self._schema(collection, state)
        others = {*self._spec.names.names, *self._spec.names.event}
        return StructType([item for item in lake or () if item.name not in others])

    def foreseen(self, table: TableSpec, state: TableState | None) -> bool:
        """Return whether the table's columns after the batch are known before it is written.

        They are if the batch creates the table. They are also if the table has a key and all these
        columns, in types that hold this batch's types, and no default fills its old rows. A format
        may keep a wider type than it was given (Hudi has no TINYINT).
        """
        collection = table.collection
        if state is None:
            fields = [StructField(column.name, column.type.spark) for column in table.columns]
            self._lake[collection] = (_CREATED, StructType(fields))
            return True
        lake = self._schema(collection, state)
        lake_types = {item.name: item.dataType for item in lake or ()}
        return (
            bool(state.note.key)
            and not table.fills
            and all(
                column.name in lake_types and widens(column.type.spark, lake_types[column.name])
                for column in table.columns
            )
        )

    def forget(self) -> None:
        """Forget the tables' columns: a batch failed, and its changes to them are unknown."""
        self._lake.clear()

    def unchanged(self, collection: str, version: int) -> None:
        """Note that the table's columns at ``version`` are those of the last read."""
        entry = self._lake.get(collection)
        if entry is not None:
            self._lake[collection] = (version, entry[1])

    def _schema(self, collection: str, state: TableState | None) -> StructType | None:
        """Return the schema of the lake's table; read it again only if it may have changed."""
        if state is None:
            return None
        entry = self._lake.get(collection)
        if entry is not None and entry[0] >= state.version:
            return entry[1]
        schema = self._sink.read(collection, state.version).schema
        if not state.note.adopted_at:
            _refuse_other_prefix(collection, schema, self._spec.names)
        self._lake[collection] = (state.version, schema)
        return schema


def _refuse_other_key(collection: str, key: Sequence[str], state: TableState) -> None:
    lake_key = state.note.key
    if lake_key and sorted(key) != sorted(lake_key):
        message = (
            f"Table '{collection}' is kept by key ({', '.join(lake_key)}) in the lake, but now by "
            f"({', '.join(key)}), as the configuration says. A key cannot change in "
            f"place: {load_anew(collection)}."
        )
        raise ConfigError(message)


def _refuse_other_prefix(collection: str, lake: StructType, names: MetadataColumns) -> None:
    """Refuse a table that has its metadata columns under other names: none of its rows has ours."""
    if names.position not in lake.names:
        message = (
            f"Table '{collection}' has no column {names.position}: the lake was made with another "
            "lakeingest.metadata.prefix, which holds for good. Set it as it was, or load the lake "
            "anew (another lakeingest.target.path)."
        )
        raise ConfigError(message)


def _event_columns_turned_off(collection: str) -> ConfigError:
    """Return the error for turned-off RFC-39 columns: changed rows would keep old values there."""
    return ConfigError(
        f"Table '{collection}' has RFC-39's columns (_change_operation_type and others), but the "
        "configuration does not keep them. Set lakeingest.metadata.columns=hudi; to be rid of "
        f"them, {load_anew(collection)}. Nothing of this batch was published."
    )
