"""Partitions of a Hudi table, and rows that move from one to another.

Hudi finds a row only within its partition: its record key is not looked for elsewhere (that takes a
global index, which costs a look at every partition and which a bucket index is not). So where some
partition column is no key column, an update may leave the old row behind, a delete whose ``before``
has the key alone goes to the wrong place, and a column that an event left out names none. There a
payload is decided against the table's row first (``rows.py``): what it leaves out is the
row's. If the partition is another then, the same commit has two records of the key, the row where
it belongs, and one that takes it from where it was, under Hudi's own mark of a delete. Both have
the position of the change, so that Hudi's order agrees. One commit does both or neither, copy on
write and merge on read alike (measured on 1.2).

Where all partition columns are of the key, a row cannot move, and nothing is looked up.

What is in a text is escaped, and stands behind the column's name: a text of two dots would be the
folder above otherwise. No two values share a folder (``partition_types.py``): two records of a key
in one place would cancel each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from lakeingest.engine.hudi_table import TAKEN_AWAY
from lakeingest.errors import ConfigError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.named import all_named, named
from lakeingest.sink.contract import Changeset
from lakeingest.sink.partition_types import refuse_types

_HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
_ESCAPED = "hoodie.datasource.write.partitionpath.urlencode"
_WITHIN_PARTITIONS = ("BUCKET", "SIMPLE", "BLOOM")
_FROM = "_lakeingest_from"
_RECORDS = "_lakeingest_records"


def may_move(key: Sequence[str], partition: Sequence[str]) -> bool:
    """Tell whether a row of a key can be in one partition now and in another one later."""
    return not set(partition) <= set(key)


def partition_options(key: Sequence[str], partition: Sequence[str]) -> dict[str, str]:
    """Return how Hudi is told of a table's partitions; the user has no say in it.

    Args:
        key: The record key's columns.
        partition: The partition columns, in the order of the folders.
    """
    kind = "Nonpartitioned"
    if partition:
        kind = "Simple" if len(key) == 1 and len(partition) == 1 else "Complex"
    options = {
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{kind}KeyGenerator"
    }
    if partition:
        options["hoodie.datasource.write.partitionpath.field"] = ",".join(partition)
        options[_ESCAPED] = "true"
    return options


def folder_names(partition: Sequence[str]) -> dict[str, str]:
    """Return how a partition's folders are named, unless the user says otherwise."""
    return {_HIVE_STYLE: "true"} if partition else {}


def refuse_settings(
    collection: str, schema: StructType, changeset: Changeset, given: Mapping[str, str]
) -> None:
    """Stop at partitions that cannot be kept.

    Args:
        collection: The table.
        schema: Its columns.
        changeset: What is merged into it.
        given: The user's options.

    Raises:
        ConfigError: A column makes no folder, or Hudi is told of an index that looks for rows in
            other partitions by itself.
    """
    refuse_types(collection, schema, changeset.partition)
    text = [name for name in changeset.partition if isinstance(schema[name].dataType, StringType)]
    if text and given.get(_HIVE_STYLE, "true").lower() != "true":
        message = (
            f"Table '{collection}' is partitioned by text ({', '.join(text)}), which needs "
            f"{_HIVE_STYLE}=true: a text of two dots would be the folder above. Nothing of this "
            "batch was published."
        )
        raise ConfigError(message)
    index = given.get("hoodie.index.type", "BUCKET").upper()
    if may_move(changeset.key, changeset.partition) and index not in _WITHIN_PARTITIONS:
        message = (
            f"Table '{collection}' is partitioned by more than its key, and hoodie.index.type is "
            f"{index}: rows that move are taken from their old partition by lakeingest, which "
            f"needs an index within partitions ({', '.join(_WITHIN_PARTITIONS)}). Nothing of this "
            "batch was published."
        )
        raise ConfigError(message)


def origin(partition: Sequence[str], was: Sequence[Column], known: Column) -> Column:
    """Return where a decided row was, for ``with_moves``; null where it was nowhere."""
    fields = zip(was, partition, strict=True)
    place = F.struct(*(value.alias(name) for value, name in fields))
    return F.when(known, place).alias(_FROM)


def with_moves(
    rows: DataFrame,
    schema: StructType,
    key: Sequence[str],
    partition: Sequence[str],
    names: MetadataColumns,
) -> DataFrame:
    """Put a record that takes a row away beside each one that changes its partition.

    Args:
        rows: Columns of ``schema``, and ``origin``.
        schema: The table's.
        key: Its key columns.
        partition: Its partition columns.
        names: Its metadata columns.

    Returns:
        The columns of ``schema`` and Hudi's mark (boolean).
    """
    place = F.struct(*all_named(partition))
    moved = F.col(_FROM).isNotNull() & ~place.eqNullSafe(F.col(_FROM))
    kept = {*key, names.position}
    stays, goes = [], []
    for item in schema:
        value: Column = F.lit(None)
        if item.name in partition:
            value = F.col(_FROM).getField(item.name)
        elif item.name in kept:
            value = named(item.name)
        elif item.name == names.deleted:
            value = F.lit(True)
        stays.append(named(item.name))
        goes.append(value.cast(item.dataType).alias(item.name))
    here = F.struct(*stays, F.lit(False).alias(TAKEN_AWAY))
    gone = F.struct(*goes, F.lit(True).alias(TAKEN_AWAY))
    records = F.when(moved, F.array(here, gone)).otherwise(F.array(here))
    each = rows.select(F.explode(records).alias(_RECORDS))
    fields = [*schema.fieldNames(), TAKEN_AWAY]
    return each.select(*(F.col(_RECORDS).getField(name).alias(name) for name in fields))


def unmoved(rows: DataFrame) -> DataFrame:
    """Return rows of a table that had none of them, with Hudi's mark beside them."""
    return rows.withColumn(TAKEN_AWAY, F.lit(False))
