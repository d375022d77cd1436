"""Resolve the columns and the key of a table, from its declaration and from its newest rows.

Order of authority: a declared DDL; else the schema of the records (in them or in the registry);
else the types that JSON itself shows (with a warning). A field that a declared table does not name
is added too: a column that appears at the source must not be dropped in silence (P8). Columns that
the lake has already keep their lake type. ``plan/evolution.py`` finds the schema changes of a
source, and ``schema_policy.py`` applies the settings to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql.types import ArrayType, StructType

from lakeingest.apply.batch_stats import BatchStats, schema_heights
from lakeingest.apply.table.cell_guard import refuse_cells
from lakeingest.apply.table.key import resolve_key
from lakeingest.apply.table.name_guard import refuse_alike, refuse_names
from lakeingest.apply.table.schema_policy import SchemaPolicy
from lakeingest.apply.table.settings import TableBefore, TableSettings
from lakeingest.apply.table.whole_row_keys import refuse_changed_rows
from lakeingest.connectors import CONNECTORS
from lakeingest.decode.columns import SourceColumn, columns_of_kinds, declared_columns
from lakeingest.decode.row import NONE_ABSENT
from lakeingest.decode.types import logical
from lakeingest.decode.types.logical_type import LogicalType
from lakeingest.decode.wire import Samples, TableShape
from lakeingest.errors import ConfigError
from lakeingest.plan import implicit
from lakeingest.plan.evolution import SourceSchema
from lakeingest.plan.presence import Zero, presence
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec
from lakeingest.widening import widens

Infer = Callable[[Sequence[str], bool], Mapping[str, str]]
"""Maps fields of ``after`` to the Connect primitive that reads every value of the batch.

The second argument says whether the fields come in cells (``decode/cells.py``).
"""


def table_spec(
    settings: TableSettings,
    before: TableBefore,
    batch_stats: Sequence[BatchStats],
    spec: PipelineSpec,
    infer: Infer,
    warn: Callable[[str], None],
) -> TableSpec:
    """Resolve columns and key of a table for one batch.

    Args:
        settings: What the configuration says about it.
        before: What is known of it.
        batch_stats: Batch statistics of the table.
        spec: Pipeline settings.
        infer: Infers the types of fields that no schema gives; runs a job.
        warn: Takes a warning for the user.

    Raises:
        ConfigError: There is no key, a key column does not exist, a column has a reserved name, or
            cells cannot be read.
        DataError: The schema changed in a way that the settings do not allow.
    """
    collection, ddl = settings.collection, settings.ddl
    heights = schema_heights(batch_stats)
    shown = _in_log_order(
        spec.format.table_shape(_samples(batch_stats, settings.too_large)), heights
    )
    refuse_cells(collection, shown, spec.connector)
    stored = _lake_columns(before.lake, spec)
    declared_columns = (
        _declared_columns(settings, ddl, shown.columns, spec) if ddl is not None else ()
    )
    lake_types = (
        None if before.lake is None else {column.name: column.type.spark for column in stored}
    )
    declared_names = {column.name for column in declared_columns}
    policy = SchemaPolicy(collection, lake_types, before.source, settings.policies, declared_names)
    other_columns = shown.columns
    if not other_columns:
        names = {column.name for column in (*declared_columns, *stored)}
        untyped = policy.taken([name for name in shown.fields if name not in names])
        # Check before ``infer`` reads them: Spark cannot tell columns apart that differ by case.
        refuse_alike(collection, {*names, *untyped})
        other_columns = _infer_columns(collection, untyped, shown.reader.cells, infer, warn)
    columns = (*declared_columns, *_missing_columns(other_columns, declared_columns))
    # Add the lake's columns that the source does not send, or no longer sends.
    columns = (*columns, *_missing_columns(stored, columns))
    key = resolve_key(settings, before.key, shown, batch_stats, spec.names)
    is_newer = any(before.is_below(stats.high) for stats in batch_stats if stats.rows)
    source_columns = _newest_columns(shown, columns) if is_newer else ()
    present = presence(
        shown,
        [column for column in columns if column.name not in key.columns],
        lake_types,
        before.source,
        before.partition,
        _zero(spec),
    )
    policy.judge(source_columns, present, warn, described=bool(shown.versions))
    columns = policy.columns(columns, present.left_out)
    refuse_alike(collection, {*(lake_types or ()), *(column.name for column in columns)})
    refuse_names(collection, columns, key, spec.names)
    newest = SourceSchema.of(source_columns)
    if key.keyless is Keyless.FULL_ROW and source_columns:
        versions = [
            SourceSchema.of(version)
            for tag, version in shown.versions.items()
            if before.is_below(heights.get(tag, ""))
        ]
        schemas = [*([before.source] if before.source else []), *(versions or [newest])]
        taken = {*(lake_types or ()), *(column.name for column in columns)}
        refuse_changed_rows(collection, schemas, taken, ordered=ddl is None)
    return TableSpec(
        collection,
        columns,
        key.columns,
        key.in_value,
        shown.reader,
        keyless=key.keyless,
        absences=present.absences if key.keyless is None else NONE_ABSENT,
        fills=policy.fills(present),
        key_is_part=key.is_part,
        source=newest.to_json() if source_columns else "",
    )


def _zero(spec: PipelineSpec) -> Zero | None:
    if not CONNECTORS[spec.connector].implicit_values:
        return None
    return lambda column: implicit.implicit_value(column, spec.encodings)


def _in_log_order(shown: TableShape, heights: Mapping[bytes, str]) -> TableShape:
    """Return the shape with its schemas in the order of the source's log.

    Neither the number of a schema nor the time of its first record gives that order: a schema that
    comes again has its old number, and a connector that was killed sends old rows again. Rows that
    were sent again may lie at the end of a batch; by their positions they come first.
    """
    in_order = sorted(shown.versions.items(), key=lambda one: heights.get(one[0], ""))
    return replace(shown, versions=dict(in_order))


def _newest_columns(shown: TableShape, columns: Sequence[SourceColumn]) -> tuple[SourceColumn, ...]:
    """Return the source's columns, as its newest record shows them; empty if no record does.

    Args:
        shown: What the batch's records show, in the order of the log; some are new.
        columns: The table's columns.
    """
    if not shown.rows:
        return ()
    by_name = {column.name: column for column in columns}
    if not shown.versions:
        return tuple(by_name[name] for name in shown.fields if name in by_name)

    def with_table_type(shown_column: SourceColumn) -> SourceColumn:
        table_type = by_name.get(shown_column.name, shown_column).type
        # Keep the record's type if the batch's versions have no common type: it must be reported.
        return (
            replace(shown_column, type=table_type)
            if widens(shown_column.type.spark, table_type.spark)
            else shown_column
        )

    return tuple(
        with_table_type(shown_column) for shown_column in list(shown.versions.values())[-1]
    )


def _samples(batch_stats: Sequence[BatchStats], too_large: str | None) -> Samples:
    return Samples(
        tuple(stats.sample for stats in batch_stats if stats.sample),
        tuple(key for stats in batch_stats for key in (stats.sample_key, stats.first_key) if key),
        frozenset(tag for stats in batch_stats for tag in stats.value_tags),
        frozenset(tag for stats in batch_stats for tag in stats.key_tags),
        too_large,
    )


def _declared_columns(
    settings: TableSettings, ddl: StructType, shown: Sequence[SourceColumn], spec: PipelineSpec
) -> tuple[SourceColumn, ...]:
    """Return the declared columns; read them by the records' own schema if the records carry one.

    Raises:
        ConfigError: A declared type does not hold the values of the records.
    """
    collection = settings.collection
    record_columns = {column.name: column for column in shown}
    columns = []
    for column in declared_columns(ddl, spec.encodings):
        record_column = record_columns.get(column.name, column)
        record_type = record_column.type
        read_type = logical.declared_type(record_type, column.type)
        if read_type is None and settings.adopted and isinstance(record_type.spark, ArrayType):
            raise _adopted_array_error(collection, column.name)
        if read_type is None:
            message = (
                f"Column '{column.name}' of table '{collection}' is declared "
                f"{column.type.spark.simpleString()}, but its records carry "
                f"{_in_words(record_type)} by their schema. Correct "
                f"lakeingest.table.{collection}.schema, or leave the column out of it."
            )
            raise ConfigError(message)
        by_ddl = read_type is column.type
        columns.append(column if by_ddl else replace(record_column, type=read_type))
    return tuple(columns)


def _adopted_array_error(collection: str, column: str) -> ConfigError:
    """Return the error of an array in a table of Hudi Streamer, which casts arrays to text."""
    return ConfigError(
        f"Column '{column}' of table '{collection}' is an array at the source, and Hudi Streamer "
        "stored it as text in the adopted table, from which no array can be read. Nothing of this "
        f"batch was published. Take lakeingest.table.{collection}.adopt out, and load the table "
        "anew under another lakeingest.target.path."
    )


def _in_words(kind: LogicalType) -> str:
    """Return a type's name in Spark; of a type with several versions, the name of each."""
    kinds = [version for _, version in kind.versions] or [kind]
    return " and ".join(dict.fromkeys(one.spark.simpleString() for one in kinds))


def _infer_columns(
    collection: str,
    names: Sequence[str],
    cells: bool,
    infer: Infer,
    warn: Callable[[str], None],
) -> tuple[SourceColumn, ...]:
    if not names:
        return ()
    columns = columns_of_kinds(infer(names, cells))
    types = ", ".join(f"{c.name} {c.type.spark.simpleString()}" for c in columns)
    warn(
        f"Table '{collection}': types taken from the JSON for {types}. To have others, declare "
        f"them with lakeingest.table.{collection}.schema."
    )
    return columns


def _lake_columns(lake: StructType | None, spec: PipelineSpec) -> tuple[SourceColumn, ...]:
    if lake is None:
        return ()
    others = {*spec.names.names, *spec.names.keyless, *spec.names.event}
    own = StructType([item for item in lake if item.name not in others])
    return declared_columns(own, spec.encodings)


def _missing_columns(
    others: Sequence[SourceColumn], columns: Sequence[SourceColumn]
) -> tuple[SourceColumn, ...]:
    """Return the columns of ``others`` whose names are not among ``columns``."""
    names = {column.name for column in columns}
    return tuple(column for column in others if column.name not in names)
