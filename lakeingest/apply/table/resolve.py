"""The columns and the key of a table, from what is declared and what the newest rows show.

Order of authority: a declared DDL, else the schema of the records (in them or in the registry),
else the types that JSON itself shows (with a warning). A field that a declared table does not name
is taken in too: a column that appears at the source must not be dropped in silence (P8). Columns
that the lake has already keep their lake type. What a source changes meanwhile is told by
``plan/evolution.py``, and what the settings say to it by ``schema_policy.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql.types import StructType

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.table.cell_guard import refuse_cells
from lakeingest.apply.table.schema_policy import Evolution
from lakeingest.decode import logical
from lakeingest.decode.columns import SourceColumn, declared, of_json
from lakeingest.decode.decimals import scales_differ
from lakeingest.decode.row import NONE_ABSENT
from lakeingest.decode.wire import Samples, Shown
from lakeingest.errors import ConfigError, DataError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.plan import implicit
from lakeingest.plan.evolution import DEFAULTS, Policies, SourceSchema
from lakeingest.plan.presence import Zero, presence
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec
from lakeingest.widening import widens

_REFUSED_BY_DELTA = frozenset(" ,;{}()\n\t=")
"""Without column mapping; source: Delta's ``DeltaColumnMapping`` and Parquet's own rule."""

Infer = Callable[[Sequence[str], bool], Mapping[str, str]]
"""Fields of ``after`` to the Connect primitive that every value of the batch can be read as.

The second argument tells whether they come in cells (``decode/cell.py``).
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
    """Settle columns and key of ``collection`` for one batch.

    Args:
        collection: The source table.
        batch_stats: What the batch holds of it.
        ddl: Declared schema, if any.
        key: Declared key columns; empty: the record key's fields.
        lake: Schema of the target table, if it exists.
        spec: Pipeline settings.
        infer: Finds types of fields that nothing else tells; runs a job.
        warn: Takes a warning for the user.
        before: The source's table after the last batch, where it is known.
        policies: What to do about changes of its schema.
        partition: Columns that the lake's table is partitioned by.
        keyless: What a row is where there is no key; null: that is refused.
        too_large: What becomes of its decimals that are too large; null: as the pipeline has it.

    Raises:
        ConfigError: No key, a key column that is not there, a column with a reserved name, or
            cells that cannot be read.
        DataError: The schema changed in a way that the settings do not allow.
    """
    shown = spec.format.shown(_samples(batch_stats, too_large))
    refuse_cells(collection, shown, spec.connector)
    stored = _stored(lake, spec)
    known = _declared(collection, ddl, shown.columns, spec) if ddl is not None else ()
    own = None if lake is None else {column.name: column.type.spark for column in stored}
    evolution = Evolution(collection, own, before, policies, {column.name for column in known})
    new = shown.columns
    if not new:
        have = {column.name for column in (*known, *stored)}
        unknown = evolution.taken([name for name in shown.fields if name not in have])
        # Before they are looked for: Spark could not tell which one is meant.
        _refuse_alike(collection, {*have, *unknown})
        new = _inferred(collection, unknown, shown.reader.cells, infer, warn)
    columns = (*known, *_absent(new, known))
    # The lake's columns that the source does not send (any more).
    columns = (*columns, *_absent(stored, columns))
    ours = set(key) & set(spec.names.keyless)
    if keyless is None or shown.key or (key and not ours):
        keyless = None
        chosen = tuple(key) or shown.key
    else:
        by_place = keyless is Keyless.APPEND
        chosen = (spec.names.row_place if by_place else spec.names.row_key,)
    if ours and keyless is None:
        raise _without_policy(collection)
    in_keys = bool(shown.keys) and all(set(chosen) <= fields for fields in shown.keys)
    in_value = bool(keyless or key) and not in_keys
    if not chosen or (not in_value and any(stats.keyless for stats in batch_stats)):
        message = (
            f"Table '{collection}' has no key: its records come without one. Declare the columns "
            f"that identify a row with lakeingest.table.{collection}.key (the table then needs "
            "REPLICA IDENTITY FULL on PostgreSQL), give it a primary key, say what a row is with "
            f"lakeingest.table.{collection}.keyless=full-row or append, or leave it out of "
            "lakeingest.source.topics. Nothing of this batch was published."
        )
        raise ConfigError(message)
    if not (in_value or key):
        _refuse_changed_key(collection, chosen, shown.keys)
    now = _newest(shown, columns)
    present = presence(shown, columns, own, before, {*chosen, *partition}, _zero(spec))
    evolution.judge(now, present, warn, described=bool(shown.versions))
    columns = evolution.columns(columns, present.left_out)
    _refuse_alike(collection, {*(own or ()), *(column.name for column in columns)})
    if keyless is None:
        _check(collection, columns, chosen, spec.names)
    else:
        _check(collection, columns, (), spec.names, spec.names.keyless)
    return TableSpec(
        collection,
        columns,
        chosen,
        in_value,
        shown.reader,
        keyless=keyless,
        absences=present.absences if keyless is None else NONE_ABSENT,
        fills=evolution.fills(present),
        source=SourceSchema.of(now).to_json() if now else "",
    )


def _zero(spec: PipelineSpec) -> Zero | None:
    if spec.connector not in implicit.CONNECTORS:
        return None
    return lambda column: implicit.implicit_value(column, spec.encodings)


def _newest(shown: Shown, columns: Sequence[SourceColumn]) -> tuple[SourceColumn, ...]:
    """Return the source's columns as its newest record shows them; none where none does."""
    if not shown.rows:
        return ()
    by_name = {column.name: column for column in columns}
    if not shown.versions:
        return tuple(by_name[name] for name in shown.fields if name in by_name)

    def settled(one: SourceColumn) -> SourceColumn:
        known = by_name.get(one.name, one).type
        # Not where the batch's versions have no type in common: that is to be seen.
        return replace(one, type=known) if widens(one.type.spark, known.spark) else one

    return tuple(settled(one) for one in list(shown.versions.values())[-1])


def _refuse_changed_key(
    collection: str, chosen: Sequence[str], keys: Iterable[frozenset[str]]
) -> None:
    """Stop where record keys have other fields: what one lacks would be NULL, another row's key."""
    wanted = frozenset(chosen)
    for found in sorted(keys, key=sorted):
        if found and found != wanted:
            message = (
                f"The primary key of table '{collection}' changed in this batch: some records have "
                f"the key ({', '.join(sorted(found))}), others ({', '.join(sorted(wanted))}). "
                "Nothing of it was published. Run with lakeingest.batch.max.events=1 until the "
                "change is past: each transaction is a batch then, and has keys of one kind."
            )
            raise DataError(message)


def _without_policy(collection: str) -> ConfigError:
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


def _declared(
    collection: str, ddl: StructType, shown: Sequence[SourceColumn], spec: PipelineSpec
) -> tuple[SourceColumn, ...]:
    """Declared columns, read as the records' own schema says where they carry one.

    Raises:
        ConfigError: A declared type does not hold what the records carry.
    """
    carried = {column.name: column for column in shown}
    columns = []
    for column in declared(ddl, spec.encodings):
        kind = carried.get(column.name, column).type
        wanted = column.type.spark
        special = logical.as_declared(kind, column.type)
        beside = carried.get(column.name, column)
        if special is not None:
            columns.append(replace(beside, type=special))
        elif widens(kind.spark, wanted):
            columns.append(replace(beside, type=logical.as_type(kind, wanted)))
        elif kind.wire == column.type.wire and not scales_differ(kind, column.type):
            columns.append(column)
        else:
            message = (
                f"Column '{column.name}' of table '{collection}' is declared "
                f"{wanted.simpleString()}, but its records carry {kind.spark.simpleString()} by "
                f"their schema. Correct lakeingest.table.{collection}.schema, or leave the column "
                "out of it."
            )
            raise ConfigError(message)
    return tuple(columns)


def _inferred(
    collection: str,
    names: Sequence[str],
    cells: bool,
    infer: Infer,
    warn: Callable[[str], None],
) -> tuple[SourceColumn, ...]:
    if not names:
        return ()
    columns = of_json(infer(names, cells))
    listed = ", ".join(f"{c.name} {c.type.spark.simpleString()}" for c in columns)
    warn(
        f"Table '{collection}': types taken from the JSON for {listed}. Decimals, dates, times and "
        "bytes cannot be told from numbers and text there; declare them with "
        f"lakeingest.table.{collection}.schema."
    )
    return columns


def _stored(lake: StructType | None, spec: PipelineSpec) -> tuple[SourceColumn, ...]:
    if lake is None:
        return ()
    others = {*spec.names.names, *spec.names.keyless, *spec.names.event}
    own = StructType([item for item in lake if item.name not in others])
    return declared(own, spec.encodings)


def _absent(
    others: Sequence[SourceColumn], columns: Sequence[SourceColumn]
) -> tuple[SourceColumn, ...]:
    """Those of ``others`` that are not among ``columns``."""
    have = {column.name for column in columns}
    return tuple(column for column in others if column.name not in have)


def _check(
    collection: str,
    columns: Sequence[SourceColumn],
    key: Sequence[str],
    names: MetadataColumns,
    more: Sequence[str] = (),
) -> None:
    have = {column.name for column in columns}
    absent = [name for name in key if name not in have]
    if absent:
        message = (
            f"Key column {', '.join(absent)} of table '{collection}' is not among its columns "
            f"({', '.join(sorted(have))}). Correct lakeingest.table.{collection}.key or .schema."
        )
        raise ConfigError(message)
    unusual = sorted(name for name in have if _REFUSED_BY_DELTA & set(name))
    if unusual:
        message = (
            f"Table '{collection}' has a column named '{unusual[0]}'; Delta takes no name with a "
            "blank or one of ,;{}()= in it. Rename it on the way (Connect's ReplaceField "
            "transform) or leave it out (the connector's column.exclude.list)."
        )
        raise ConfigError(message)
    asked = _like(have, names.event)
    if asked:
        message = (
            f"Table '{collection}' has a column named {', '.join(asked)}, which "
            "lakeingest.metadata.columns=hudi writes itself. Set lakeingest.metadata.columns=own, "
            "or rename the column on the way (Connect's ReplaceField transform)."
        )
        raise ConfigError(message)
    taken = _like(have, (*names.names, *more))
    if taken:
        message = (
            f"Table '{collection}' has a column named {', '.join(taken)}, which lakeingest uses "
            "itself. Set lakeingest.metadata.prefix to another prefix."
        )
        raise ConfigError(message)


def _like(have: Collection[str], reserved: Collection[str]) -> list[str]:
    """Return those of ``have`` that Spark takes for one of ``reserved``."""
    lower = {name.lower() for name in reserved}
    return sorted(name for name in have if name.lower() in lower)


def _refuse_alike(collection: str, names: Collection[str]) -> None:
    """Stop at columns, of the source or of the lake, that differ by case only."""
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
