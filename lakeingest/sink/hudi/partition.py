"""Handle the partitions of a Hudi table, and rows that change their partition.

Hudi looks up a record key only within one partition. A look-up in all partitions needs a global
index. That index costs a look-up in every partition, and a bucket index is not global. So when some
partition column is not a key column, three things go wrong. An update may leave the old row in its
old partition. A delete whose ``before`` has only the key goes to the wrong partition. An event that
omits a partition column names no partition.

For such tables, the payload is first merged with the table's row (``merge_join.py``): the row
supplies the columns that the payload omits. If the partition changes, the commit contains two
records of the key: the row in its new partition, and a record with Hudi's own delete marker that
removes the row from its old partition. Both have the position of the change, so that Hudi's order
agrees. One commit does both or neither, with copy-on-write and merge-on-read alike (measured on
1.2).

When all partition columns are key columns, a row cannot change its partition, and there is no
look-up.

Text is escaped, and comes after the column's name in the folder name; otherwise a text of two dots
would be the parent folder. No two values have the same folder (``partition_types.py``): two records
of a key in one folder would cancel each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from lakeingest.engine.hudi.table import DELETE_MARKER
from lakeingest.engine.known_columns import made_once
from lakeingest.errors import ConfigError
from lakeingest.frame_schemas import OURS
from lakeingest.named import all_named, named
from lakeingest.sink.contract import Changeset
from lakeingest.sink.merge_law import MergeLaw, target
from lakeingest.sink.partition_types import refuse_types

_HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
_ESCAPED = "hoodie.datasource.write.partitionpath.urlencode"
_WITHIN_PARTITIONS = ("BUCKET", "SIMPLE", "BLOOM")
_FROM = f"{OURS}from"
_RECORDS = f"{OURS}records"


def may_move(key: Sequence[str], partition: Sequence[str]) -> bool:
    """Return whether a row can change its partition while its key stays."""
    return not set(partition) <= set(key)


def partition_options(key: Sequence[str], partition: Sequence[str]) -> dict[str, str]:
    """Return the options for a table's partitions, which the user cannot change.

    Args:
        key: Columns of the record key.
        partition: Partition columns, in the order of the folders.
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
    """Return the option for the folder names of partitions, which the user may change."""
    return {_HIVE_STYLE: "true"} if partition else {}


def refuse_settings(
    collection: str, schema: StructType, changeset: Changeset, user_options: Mapping[str, str]
) -> None:
    """Raise an error for partitions that the sink cannot maintain.

    Args:
        collection: The source table.
        schema: Columns of the table.
        changeset: Payloads to merge.
        user_options: The user's options (``hoodie.*``).

    Raises:
        ConfigError: Folder names cannot preserve a column's values, or rows can change their
            partition and the configured index is not one within partitions.
    """
    refuse_types(collection, schema, changeset.partition)
    text = [name for name in changeset.partition if isinstance(schema[name].dataType, StringType)]
    if text and user_options.get(_HIVE_STYLE, "true").lower() != "true":
        message = (
            f"Table '{collection}' is partitioned by text ({', '.join(text)}), which needs "
            f"{_HIVE_STYLE}=true: a text of two dots would be the folder above. Nothing of this "
            "batch was published."
        )
        raise ConfigError(message)
    index = user_options.get("hoodie.index.type", "BUCKET").upper()
    if may_move(changeset.key, changeset.partition) and index not in _WITHIN_PARTITIONS:
        message = (
            f"Table '{collection}' is partitioned by more than its key, and hoodie.index.type is "
            f"{index}: rows that move are taken from their old partition by lakeingest, which "
            f"needs an index within partitions ({', '.join(_WITHIN_PARTITIONS)}). Nothing of this "
            "batch was published."
        )
        raise ConfigError(message)


@made_once
def old_partition(law: MergeLaw) -> Column:
    """Return the old partition of a merged row, for ``with_moves``; NULL for a new row."""
    fields = (target(name).alias(name) for name in law.partition)
    exists = target(law.names.position).isNotNull()
    return F.when(exists, F.struct(*fields)).alias(_FROM)


def with_moves(rows: DataFrame, law: MergeLaw) -> DataFrame:
    """Add a record that removes the old row for each row that changes its partition.

    Args:
        rows: Rows with the columns of the law's schema and ``old_partition``.
        law: The merge law of the changeset.

    Returns:
        Rows with the columns of the law's schema and Hudi's delete marker (boolean).
    """
    key, partition, names = law.key, law.partition, law.names
    new_partition = F.struct(*all_named(partition))
    changes_partition = F.col(_FROM).isNotNull() & ~new_partition.eqNullSafe(F.col(_FROM))
    shared_columns = {*key, names.position}
    new_values, old_values = [], []
    for item in law.schema:
        value: Column = F.lit(None)
        if item.name in partition:
            value = F.col(_FROM).getField(item.name)
        elif item.name in shared_columns:
            value = named(item.name)
        elif item.name == names.deleted:
            value = F.lit(True)
        new_values.append(named(item.name))
        old_values.append(value.cast(item.dataType).alias(item.name))
    new_record = F.struct(*new_values, F.lit(False).alias(DELETE_MARKER))
    removal = F.struct(*old_values, F.lit(True).alias(DELETE_MARKER))
    records = F.when(changes_partition, F.array(new_record, removal)).otherwise(F.array(new_record))
    exploded = rows.select(F.explode(records).alias(_RECORDS))
    fields = [*law.schema.fieldNames(), DELETE_MARKER]
    return exploded.select(*(F.col(_RECORDS).getField(name).alias(name) for name in fields))


def without_moves(rows: DataFrame) -> DataFrame:
    """Return the rows of a table's first commit, with Hudi's delete marker (false)."""
    return rows.withColumn(DELETE_MARKER, F.lit(False))
