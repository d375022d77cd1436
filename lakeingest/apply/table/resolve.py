"""Resolve the columns and the key of a table, from its declaration and from its newest rows.

Order of authority: a declared DDL; else the schema of the records (in them or in the registry);
else the types that JSON itself shows (with a warning). A field that a declared table does not name
is added too: a column that appears at the source must not be dropped in silence (P8). Columns that
the lake has already keep their lake type. ``plan/evolution.py`` finds the schema changes of a
source, and ``schema_policy.py`` applies the settings to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql.types import StructType

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.table.cell_guard import refuse_cells
from lakeingest.apply.table.schema_policy import Evolution
from lakeingest.connectors import CONNECTORS
from lakeingest.decode.columns import SourceColumn, declared, of_json
from lakeingest.decode.row import NONE_ABSENT
from lakeingest.decode.types import logical, logical_type
from lakeingest.decode.types.decimals import scales_differ
from lakeingest.decode.wire import Samples, Shown
from lakeingest.errors import ConfigError, DataError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.plan import implicit
from lakeingest.plan.evolution import DEFAULTS, Policies, SourceSchema
from lakeingest.plan.presence import Zero, presence
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec
from lakeingest.widening import widens

_REFUSED_BY_DELTA = frozenset(" ,;{}()\n\t=")
"""Characters that Delta refuses in a column name without column mapping.

Source: Delta's ``DeltaColumnMapping`` and Parquet's own rule.
"""

Infer = Callable[[Sequence[str], bool], Mapping[str, str]]
"""Maps fields of ``after`` to the Connect primitive that reads every value of the batch.

The second argument says whether the fields come in cells (``decode/cells.py``).
"""


def table_spec(
    collection: str,
    batch_stats: Sequence[BatchStats],
    ddl: StructType | None,
    key: Sequence[str],
    lake: StructType | None,
    spec: PipelineSpec,
    infer: Infer,
    warn: Callable[[str], None],
    *,
    before: SourceSchema | None = None,
    policies: Policies = DEFAULTS,
    partition: Sequence[str] = (),
    keyless: Keyless | None = None,
    too_large: str | None = None,
) -> TableSpec:
    """Resolve columns and key of ``collection`` for one batch.

    Args:
        collection: The source table.
        batch_stats: Batch statistics of the table.
        ddl: Declared schema, if any.
        key: Declared key columns; empty: the record key's fields.
        lake: Schema of the target table, if it exists.
        spec: Pipeline settings.
        infer: Infers the types of fields that no schema gives; runs a job.
        warn: Takes a warning for the user.
        before: Schema of the source's table after the last batch; None: unknown.
        policies: Policy for each kind of schema change.
        partition: Columns that the lake's table is partitioned by.
        keyless: What identifies a row of a table without a key; None: such a table is refused.
        too_large: Policy for the table's decimals that are too large; None: the pipeline's.

    Raises:
        ConfigError: There is no key, a key column does not exist, a column has a reserved name, or
            cells cannot be read.
        DataError: The schema changed in a way that the settings do not allow.
    """
    shown = spec.format.shown(_samples(batch_stats, too_large))
    refuse_cells(collection, shown, spec.connector)
    stored = _lake_columns(lake, spec)
    declared_columns = (
        _declared_columns(collection, ddl, shown.columns, spec) if ddl is not None else ()
    )
    lake_types = None if lake is None else {column.name: column.type.spark for column in stored}
    evolution = Evolution(
        collection, lake_types, before, policies, {column.name for column in declared_columns}
    )
    other_columns = shown.columns
    if not other_columns:
        names = {column.name for column in (*declared_columns, *stored)}
        untyped = evolution.taken([name for name in shown.fields if name not in names])
        # Check before ``infer`` reads them: Spark cannot tell columns apart that differ by case.
        _refuse_alike(collection, {*names, *untyped})
        other_columns = _infer_columns(collection, untyped, shown.reader.cells, infer, warn)
    columns = (*declared_columns, *_missing_columns(other_columns, declared_columns))
    # Add the lake's columns that the source does not send, or no longer sends.
    columns = (*columns, *_missing_columns(stored, columns))
    own_key = set(key) & set(spec.names.keyless)
    if keyless is None or shown.key or (key and not own_key):
        keyless = None
        key_columns = tuple(key) or shown.key
    else:
        by_place = keyless is Keyless.APPEND
        key_columns = (spec.names.row_place if by_place else spec.names.row_key,)
    if own_key and keyless is None:
        raise _keyless_setting_removed(collection)
    in_keys = bool(shown.keys) and all(set(key_columns) <= fields for fields in shown.keys)
    in_value = bool(keyless or key) and not in_keys
    if not key_columns or (not in_value and any(stats.keyless for stats in batch_stats)):
        message = (
            f"Table '{collection}' has no key: its records come without one. Declare the columns "
            f"that identify a row with lakeingest.table.{collection}.key (the table then needs "
            "REPLICA IDENTITY FULL on PostgreSQL), give it a primary key, say what a row is with "
            f"lakeingest.table.{collection}.keyless=full-row or append, or leave it out of "
            "lakeingest.source.topics. Nothing of this batch was published."
        )
        raise ConfigError(message)
    if not (in_value or key):
        _refuse_changed_key(collection, key_columns, shown.keys)
    source_columns = _newest_columns(shown, columns)
    present = presence(shown, columns, lake_types, before, {*key_columns, *partition}, _zero(spec))
    evolution.judge(source_columns, present, warn, described=bool(shown.versions))
    columns = evolution.columns(columns, present.left_out)
    _refuse_alike(collection, {*(lake_types or ()), *(column.name for column in columns)})
    if keyless is None:
        _check(collection, columns, key_columns, spec.names)
    else:
        _check(collection, columns, (), spec.names, spec.names.keyless)
    return TableSpec(
        collection,
        columns,
        key_columns,
        in_value,
        shown.reader,
        keyless=keyless,
        absences=present.absences if keyless is None else NONE_ABSENT,
        fills=evolution.fills(present),
        source=SourceSchema.of(source_columns).to_json() if source_columns else "",
    )


def _zero(spec: PipelineSpec) -> Zero | None:
    if not CONNECTORS[spec.connector].implicit_values:
        return None
    return lambda column: implicit.implicit_value(column, spec.encodings)


def _newest_columns(shown: Shown, columns: Sequence[SourceColumn]) -> tuple[SourceColumn, ...]:
    """Return the source's columns, as its newest record shows them; empty if no record does."""
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


def _refuse_changed_key(
    collection: str, key: Sequence[str], keys: Iterable[frozenset[str]]
) -> None:
    """Raise an error for record keys of other fields: a missing one is NULL, another row's key."""
    key_fields = frozenset(key)
    for fields in sorted(keys, key=sorted):
        if fields and fields != key_fields:
            message = (
                f"The primary key of table '{collection}' changed in this batch: some records have "
                f"the key ({', '.join(sorted(fields))}), others ({', '.join(sorted(key_fields))}). "
                "Nothing of it was published. Run with lakeingest.batch.max.events=1 until the "
                "change is past: each transaction is a batch then, and has keys of one kind."
            )
            raise DataError(message)


def _keyless_setting_removed(collection: str) -> ConfigError:
    return ConfigError(
        f"Table '{collection}' is kept by a row key of ours in the lake, because its source had no "
        f"key. Set lakeingest.table.{collection}.keyless as it was, or load the table anew. "
        "Nothing of this batch was published."
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
    collection: str, ddl: StructType, shown: Sequence[SourceColumn], spec: PipelineSpec
) -> tuple[SourceColumn, ...]:
    """Return the declared columns; read them by the records' own schema if the records carry one.

    Raises:
        ConfigError: A declared type does not hold the values of the records.
    """
    record_columns = {column.name: column for column in shown}
    columns = []
    for column in declared(ddl, spec.encodings):
        record_type = record_columns.get(column.name, column).type
        declared_type = column.type.spark
        special_type = logical.as_declared(record_type, column.type)
        record_column = record_columns.get(column.name, column)
        if special_type is not None:
            columns.append(replace(record_column, type=special_type))
        elif widens(record_type.spark, declared_type):
            columns.append(
                replace(record_column, type=logical_type.as_type(record_type, declared_type))
            )
        elif record_type.wire == column.type.wire and not scales_differ(record_type, column.type):
            columns.append(column)
        else:
            message = (
                f"Column '{column.name}' of table '{collection}' is declared "
                f"{declared_type.simpleString()}, but its records carry "
                f"{record_type.spark.simpleString()} by their schema. Correct "
                f"lakeingest.table.{collection}.schema, or leave the column out of it."
            )
            raise ConfigError(message)
    return tuple(columns)


def _infer_columns(
    collection: str,
    names: Sequence[str],
    cells: bool,
    infer: Infer,
    warn: Callable[[str], None],
) -> tuple[SourceColumn, ...]:
    if not names:
        return ()
    columns = of_json(infer(names, cells))
    types = ", ".join(f"{c.name} {c.type.spark.simpleString()}" for c in columns)
    warn(
        f"Table '{collection}': types taken from the JSON for {types}. Decimals, dates, times and "
        "bytes cannot be told from numbers and text there; declare them with "
        f"lakeingest.table.{collection}.schema."
    )
    return columns


def _lake_columns(lake: StructType | None, spec: PipelineSpec) -> tuple[SourceColumn, ...]:
    if lake is None:
        return ()
    others = {*spec.names.names, *spec.names.keyless, *spec.names.event}
    own = StructType([item for item in lake if item.name not in others])
    return declared(own, spec.encodings)


def _missing_columns(
    others: Sequence[SourceColumn], columns: Sequence[SourceColumn]
) -> tuple[SourceColumn, ...]:
    """Return the columns of ``others`` whose names are not among ``columns``."""
    names = {column.name for column in columns}
    return tuple(column for column in others if column.name not in names)


def _check(
    collection: str,
    columns: Sequence[SourceColumn],
    key: Sequence[str],
    names: MetadataColumns,
    more: Sequence[str] = (),
) -> None:
    column_names = {column.name for column in columns}
    absent = [name for name in key if name not in column_names]
    if absent:
        message = (
            f"Key column {', '.join(absent)} of table '{collection}' is not among its columns "
            f"({', '.join(sorted(column_names))}). Correct lakeingest.table.{collection}.key or "
            ".schema."
        )
        raise ConfigError(message)
    unusual = sorted(name for name in column_names if _REFUSED_BY_DELTA & set(name))
    if unusual:
        message = (
            f"Table '{collection}' has a column named '{unusual[0]}'; Delta takes no name with a "
            "blank or one of ,;{}()= in it. Rename it on the way (Connect's ReplaceField "
            "transform) or leave it out (the connector's column.exclude.list)."
        )
        raise ConfigError(message)
    event_names = _clashes(column_names, names.event)
    if event_names:
        message = (
            f"Table '{collection}' has a column named {', '.join(event_names)}, which "
            "lakeingest.metadata.columns=hudi writes itself. Set lakeingest.metadata.columns=own, "
            "or rename the column on the way (Connect's ReplaceField transform)."
        )
        raise ConfigError(message)
    ours = _clashes(column_names, (*names.names, *more))
    if ours:
        message = (
            f"Table '{collection}' has a column named {', '.join(ours)}, which lakeingest uses "
            "itself. Set lakeingest.metadata.prefix to another prefix."
        )
        raise ConfigError(message)


def _clashes(names: Collection[str], reserved: Collection[str]) -> list[str]:
    """Return the names that Spark cannot tell from a reserved name: it ignores case."""
    lower = {name.lower() for name in reserved}
    return sorted(name for name in names if name.lower() in lower)


def _refuse_alike(collection: str, names: Collection[str]) -> None:
    """Raise an error for columns, of the source or of the lake, that differ by case only."""
    alike = Counter(name.lower() for name in names)
    twice = sorted(name for name in names if alike[name.lower()] > 1)
    if twice:
        message = (
            f"Table '{collection}' has columns that differ by case only: {', '.join(twice)}. "
            "Spark and its tables cannot tell them apart. Rename one on the way (Connect's "
            "ReplaceField transform; a column that was renamed at the source, to the name that it "
            "has in the lake) or leave it out (the connector's column.exclude.list)."
        )
        raise ConfigError(message)
