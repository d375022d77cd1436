"""Write a table that Hudi Streamer created, with the table's own settings.

Hudi fixes record key, key generator, ordering and merge mode when a table is created, and refuses
other settings later. So the rows carry the columns by which such a table merges. ``_event_lsn`` is
the log sequence number (LSN) at the end of a position. ``_change_operation_type`` is ``d`` for a
row that Hudi must drop. The sink needs nothing else of Hudi's merge: it merges rows before the
write (``merge_join.py``). A newer row has no lower LSN, because PostgreSQL locks a row until its
transaction ends. For equal LSNs, Hudi takes the incoming row (measured, 1.2.0: versions 6, 8 and 9,
both table types). Hudi upgrades versions 6 and 8 to 9 with the first commit, and older readers of
Hudi cannot read version 9.

Other options are the same as for tables of lakeingest, except those for files
(``options.WRITING``). The index is Hudi's default or the user's, never the buckets of
lakeingest: the table's rows are not in these buckets, so Hudi would write them a second time. The
metadata table stays as the user has configured it, because the table may have one, and turning it
off would remove it.

Rejected: another merge mode on such a table; Hudi refuses it for version 9. Rejected: to create a
new table from the rows; this copies all data and loses the table's history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, MapType, StringType, StructField

from lakeingest.engine.commit import Commit
from lakeingest.errors import ConfigError, DataError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.named import named
from lakeingest.position import COMPONENT_WIDTH
from lakeingest.position.epochs import epoch_number
from lakeingest.sink.hudi.options import ALWAYS_OURS, WRITING
from lakeingest.sink.hudi.partition import partition_options
from lakeingest.sink.hudi.table_services import HUDIS_BUCKETS, bucket_engine

ORDERING = "_event_lsn"
OPERATION = "_change_operation_type"

_PAYLOAD = "PostgresDebeziumAvroPayload"
_PAYLOAD_KEYS = ("hoodie.table.legacy.payload.class", "hoodie.compaction.payload.class")
_MARK = "hoodie.record.merge.property.hoodie.payload.delete."
_INDEX, _ENGINE = "hoodie.index.type", "hoodie.index.bucket.engine"
_BUCKETS, _HASHED = "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field"
_BUCKET = re.compile("000[0-9]{5}-")
"""Start of a bucket file's name: the bucket's number in eight digits. Other files begin with eight
random hexadecimal digits, and one in forty thousand of them looks the same."""

_UNPARTITIONED = {"NON_PARTITION", "org.apache.hudi.keygen.NonpartitionedKeyGenerator"}


def refuse_other_merge(collection: str, properties: Mapping[str, str]) -> None:
    """Raise an error for a table that does not merge as ``PostgresDebeziumAvroPayload`` does.

    Args:
        collection: The source table.
        properties: The Hudi table's own settings.

    Raises:
        ConfigError: The table merges by other rules, is partitioned, has another key generator, or
            has no record key.
    """
    payload = next((properties[key] for key in _PAYLOAD_KEYS if key in properties), "")
    merges_alike = (
        properties.get("hoodie.record.merge.mode") == "EVENT_TIME_ORDERING"
        and properties.get("hoodie.table.ordering.fields") == ORDERING
        and properties.get(f"{_MARK}field") == OPERATION
        and properties.get(f"{_MARK}marker") == "d"
    )
    fault = None
    if payload.rpartition(".")[2] != _PAYLOAD and not merges_alike:
        merge_rule = payload.rpartition(".")[2] or properties.get(
            "hoodie.record.merge.mode", "nothing"
        )
        fault = f"its rows are merged by {merge_rule}, not by {_PAYLOAD}"
    elif properties.get("hoodie.table.partition.fields"):
        fault = f"it is partitioned by {properties['hoodie.table.partition.fields']}"
    elif _key_generator(properties) not in _UNPARTITIONED:
        fault = f"its key generator is {_key_generator(properties)}, not NonpartitionedKeyGenerator"
    elif not key_fields(properties):
        fault = "it has no record key"
    if fault is not None:
        message = (
            f"The Hudi table of '{collection}' cannot be adopted: {fault}. It was not touched. "
            f"Take lakeingest.table.{collection}.adopt out and load the table anew under another "
            "lakeingest.target.path."
        )
        raise ConfigError(message)


def refuse_other_index(
    collection: str,
    files: Sequence[str],
    options: Mapping[str, str],
    rows_elsewhere: Callable[[str, int], int],
    *,
    consistent: bool,
) -> None:
    """Raise an error if Hudi would look for rows in files that do not contain them.

    A table does not store what its index is, and with another index Hudi writes rows a second time.
    The file names show that there are buckets, but not how many: bucket numbers below 16 do not
    contradict 32 buckets. So the function also checks the buckets of some rows.

    Args:
        collection: The source table.
        files: Ids of some of the table's files.
        options: Options of the writes to the table.
        rows_elsewhere: Counts the rows that Hudi would look for in another bucket; takes the hashed
            fields and the number of buckets.
        consistent: Whether the table has a consistent-hashing index.

    Raises:
        ConfigError: Files and sampled rows show that the index is another one.
    """
    if not files:
        return
    in_buckets = all(_BUCKET.match(file) for file in files)
    engine = bucket_engine(options)
    fields = options.get(_HASHED) or options["hoodie.datasource.write.recordkey.field"]
    number = int(options.get(_BUCKETS, HUDIS_BUCKETS))
    fault = None
    if consistent != (engine == "CONSISTENT_HASHING"):
        article = "an" if consistent else "no"
        fault = (
            f"it has {article} index of consistent hashing. Set {_INDEX} and {_ENGINE} as Hudi "
            "Streamer had them"
        )
    elif consistent:
        return
    elif in_buckets and engine != "SIMPLE":
        fault = (
            f"its rows lie in buckets. Set {_INDEX}=BUCKET and {_BUCKETS}, both as Hudi "
            "Streamer had them"
        )
    elif engine == "SIMPLE" and not in_buckets:
        fault = f"its rows do not lie in buckets. Set {_INDEX} as Hudi Streamer had it"
    elif engine == "SIMPLE" and rows_elsewhere(fields, number):
        fault = (
            f"its rows do not lie by {fields} in {number} buckets. Set {_BUCKETS} "
            f"and {_HASHED} as Hudi Streamer had them"
        )
    if fault is not None:
        message = (
            f"The Hudi table of '{collection}' cannot be adopted with these settings: {fault}; "
            "with another index rows would be there twice. It was not touched."
        )
        raise ConfigError(message)


def refuse_streamer_commits(collection: str, since: Iterable[Commit]) -> None:
    """Raise an error if Hudi Streamer still writes to an adopted table.

    Args:
        collection: The source table.
        since: Commits after a commit of lakeingest.

    Raises:
        ConfigError: Hudi Streamer wrote one of them.
    """
    if any(commit.checkpoint for commit in since):
        message = (
            f"Hudi Streamer wrote to the table of '{collection}' after it was adopted: what it "
            "wrote is in the table and in no publication. Nothing of this batch was published. "
            "Stop it for good, roll the table back to the last commit before that "
            "(Hudi's rollback or restore), and run again."
        )
        raise ConfigError(message)


def refuse_new_log(collection: str, position: str, adopted_at: str) -> None:
    """Raise an error if the source's log has restarted since the adoption of the table.

    LSNs of the new log may be lower, and Hudi would drop every change of a row that has a higher
    LSN.

    Args:
        collection: The source table.
        position: Position of a change; empty: there is no change.
        adopted_at: Position of the adoption.

    Raises:
        DataError: The log has restarted.
    """
    if position and epoch_number(position) > epoch_number(adopted_at):
        message = (
            f"The source's log started over after the table of '{collection}' was adopted from "
            "Hudi Streamer. Such a table is ordered by _event_lsn, which starts over, too, so its "
            "newer rows would be dropped. Nothing of this batch was published. Load the table anew "
            "under another lakeingest.target.path."
        )
        raise DataError(message)


def soft_deletes_error(collection: str) -> ConfigError:
    """Return the error of a pipeline that would keep deleted rows in an adopted table."""
    return ConfigError(
        f"Table '{collection}' was made by Hudi Streamer, and Hudi removes a deleted row from such "
        "a table for good. Set lakeingest.deletes=hard, which keeps the positions of deleted rows "
        "in a table beside it."
    )


def key_fields(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the record key fields of a table."""
    fields = properties.get("hoodie.table.recordkey.fields", "").split(",")
    return tuple(field.strip() for field in fields if field.strip())


def _key_generator(properties: Mapping[str, str]) -> str:
    keys = ("hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class")
    return next((properties[key] for key in keys if key in properties), "unknown")


def adopted_options(
    properties: Mapping[str, str], user_options: Mapping[str, str]
) -> dict[str, str]:
    """Return the options of every write to an adopted table.

    Args:
        properties: The table's own settings.
        user_options: The user's options.
    """
    fixed_options = {
        **ALWAYS_OURS,
        "hoodie.table.name": properties["hoodie.table.name"],
        "hoodie.datasource.write.table.type": properties["hoodie.table.type"],
        "hoodie.datasource.write.recordkey.field": ",".join(key_fields(properties)),
        **partition_options(key_fields(properties), ()),
    }
    return {**WRITING, **user_options, **fixed_options}


def with_lsn_order(rows: DataFrame, names: MetadataColumns) -> DataFrame:
    """Set the columns by which the table merges: LSN and operation.

    The LSN is never lower than the row's present one. A row that has not changed since the adoption
    has the position of the adoption, whose last component is not an LSN. When the sink writes such
    a row for another reason (a new column's default), Hudi would silently drop it because of a
    lower LSN.

    Args:
        rows: Rows to write. Rows without a position keep their LSN.
        names: Names of the metadata columns.
    """
    digits = F.conv(F.substring(names.position, -COMPONENT_WIDTH, COMPONENT_WIDTH), 16, 10)
    lsn = digits.cast("bigint").cast(rows.schema[ORDERING].dataType)
    old = F.when(named(OPERATION) != "d", named(OPERATION))
    operation: Column = F.when(F.col(names.deleted), "d").otherwise(F.coalesce(old, F.lit("u")))
    return rows.withColumns({ORDERING: F.greatest(lsn, named(ORDERING)), OPERATION: operation})


@dataclass(frozen=True)
class Placeholders:
    """Debezium's forms of an unavailable value, as Hudi Streamer stores them.

    Attributes:
        texts: Forms in a text column; the first is the plain text, which in a map is the key and
            the value of an entry.
        octets: Form in a binary column.
    """

    texts: tuple[str, ...]
    octets: bytes


def without_placeholders(rows: DataFrame, placeholders: Placeholders) -> tuple[DataFrame, Column]:
    """Replace every placeholder that Hudi stored as a value by NULL.

    Args:
        rows: Rows of the table.
        placeholders: The forms of an unavailable value.

    Returns:
        The new rows, and a condition on the old rows: whether the row has a placeholder.
    """
    has_placeholder = F.lit(False)
    columns = {}
    for item in rows.schema:
        is_placeholder = _is_placeholder(item, placeholders)
        if is_placeholder is not None:
            has_placeholder = has_placeholder | is_placeholder
            columns[item.name] = F.when(~is_placeholder, named(item.name))
    return rows.withColumns(columns), has_placeholder


def _is_placeholder(item: StructField, placeholders: Placeholders) -> Column | None:
    """Return whether a column's value is a placeholder; None if it cannot be one.

    Hudi Streamer stores arrays as text, and tables with such columns cannot be adopted.
    """
    value, kind = named(item.name), item.dataType
    if isinstance(kind, StringType):
        condition = value.isin(*placeholders.texts)
    elif isinstance(kind, BinaryType):
        condition = value == F.lit(placeholders.octets)
    elif isinstance(kind, MapType) and isinstance(kind.valueType, StringType):
        text = F.lit(placeholders.texts[0])
        condition = F.element_at(value, text) == text
    else:
        return None
    return F.coalesce(condition, F.lit(False))
