"""How a table is written that Hudi Streamer made: with the table's own settings, not with ours.

Hudi fixes record key, key generator, ordering and merge mode when a table is made, and refuses
others later. So rows of ours carry what such a table decides by: ``_event_lsn``, the log sequence
number that our positions end with, and ``_change_operation_type``, whose ``d`` makes Hudi drop the
row. Nothing else is asked of its merge: rows are decided before (``rows.py``), newer ones have
no lower LSN because PostgreSQL locks a row until its transaction is over, and among equals Hudi
takes the one that comes in (measured, 1.2.0: versions 6, 8 and 9, both table types; it upgrades the
first two to 9 with the first commit, which older readers of Hudi cannot read).

It is written as any table of ours but for its files (``hudi_options.WRITING``). The index is Hudi's
default or the user's, never our buckets: the rows do not lie by them, so they
would be written a second time. The metadata table is left as the user has it for the same reason:
the table may have one, and switching it off would remove it.

Rejected: a merge mode of our own on such a table (refused by Hudi for version 9), and making the
table anew from its rows (a copy of all data, and the table's history is gone).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.engine.commit import Commit
from lakeingest.errors import ConfigError, DataError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.named import named
from lakeingest.position import COMPONENT_WIDTH
from lakeingest.position.epochs import epoch_number
from lakeingest.sink.hudi.options import ALWAYS_OURS, WRITING
from lakeingest.sink.hudi.partition import partition_options
from lakeingest.sink.hudi.table_services import HUDIS_BUCKETS

ORDERING = "_event_lsn"
OPERATION = "_change_operation_type"

_PAYLOAD = "PostgresDebeziumAvroPayload"
_PAYLOAD_KEYS = ("hoodie.table.legacy.payload.class", "hoodie.compaction.payload.class")
_MARK = "hoodie.record.merge.property.hoodie.payload.delete."
_INDEX, _ENGINE = "hoodie.index.type", "hoodie.index.bucket.engine"
_BUCKETS, _HASHED = "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field"
_BUCKET = re.compile("000[0-9]{5}-")
"""How the file of a bucket is named: by its number, in eight digits. Others begin with eight random
hexadecimal digits, of which one in forty thousand looks the same."""

_UNPARTITIONED = {"NON_PARTITION", "org.apache.hudi.keygen.NonpartitionedKeyGenerator"}


def refuse_unlike(collection: str, properties: Mapping[str, str]) -> None:
    """Stop at a table that does not merge as ``PostgresDebeziumAvroPayload`` does.

    Args:
        collection: The source table.
        properties: The Hudi table's own settings.

    Raises:
        ConfigError: It merges by other rules, or is partitioned.
    """
    payload = next((properties[key] for key in _PAYLOAD_KEYS if key in properties), "")
    like = (
        properties.get("hoodie.record.merge.mode") == "EVENT_TIME_ORDERING"
        and properties.get("hoodie.table.ordering.fields") == ORDERING
        and properties.get(f"{_MARK}field") == OPERATION
        and properties.get(f"{_MARK}marker") == "d"
    )
    fault = None
    if payload.rpartition(".")[2] != _PAYLOAD and not like:
        said = payload.rpartition(".")[2] or properties.get("hoodie.record.merge.mode", "nothing")
        fault = f"its rows are merged by {said}, not by {_PAYLOAD}"
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


@dataclass(frozen=True)
class Buckets:
    """What the options of our writes say of an index by a fixed number of buckets.

    Attributes:
        fields: Key fields that are hashed, with commas between.
        number: How many buckets there are.
    """

    fields: str
    number: int


def buckets_of(options: Mapping[str, str]) -> Buckets | None:
    """Return the buckets that rows are written to; null: the index is another one."""
    if not _is_by_bucket(options) or _engine(options) != "SIMPLE":
        return None
    fields = options.get(_HASHED) or options["hoodie.datasource.write.recordkey.field"]
    return Buckets(fields, int(options.get(_BUCKETS, HUDIS_BUCKETS)))


def _is_by_bucket(options: Mapping[str, str]) -> bool:
    return options.get(_INDEX, "").upper() == "BUCKET"


def _engine(options: Mapping[str, str]) -> str:
    return options.get(_ENGINE, "SIMPLE").upper()


def refuse_other_index(
    collection: str,
    files: Sequence[str],
    options: Mapping[str, str],
    elsewhere: Callable[[str, int], int],
    *,
    consistent: bool,
) -> None:
    """Stop where rows would be looked for in other files than those in which they lie.

    A table does not say what its index is, and with another one Hudi writes rows a second time.
    The files' names tell buckets, but not how many: 32 are no contradiction to numbers below 16.
    So of some rows it is asked in which bucket they would be.

    Args:
        collection: The source table.
        files: Identifiers of some of the table's files.
        options: Those of our writes to it.
        elsewhere: Counts rows that would be looked for in another bucket, by hashed fields and
            number of buckets.
        consistent: Whether the table has an index of consistent hashing.

    Raises:
        ConfigError: The index is another one, as far as files and some rows tell.
    """
    if not files:
        return
    in_buckets = all(_BUCKET.match(file) for file in files)
    wanted = buckets_of(options)
    fault = None
    if consistent != (_is_by_bucket(options) and _engine(options) == "CONSISTENT_HASHING"):
        has = "an" if consistent else "no"
        fault = (
            f"it has {has} index of consistent hashing. Set {_INDEX} and {_ENGINE} as Hudi "
            "Streamer had them"
        )
    elif consistent:
        return
    elif in_buckets and wanted is None:
        fault = (
            f"its rows lie in buckets. Set {_INDEX}=BUCKET and {_BUCKETS}, both as Hudi "
            "Streamer had them"
        )
    elif wanted is not None and not in_buckets:
        fault = f"its rows do not lie in buckets. Set {_INDEX} as Hudi Streamer had it"
    elif wanted is not None and elsewhere(wanted.fields, wanted.number):
        fault = (
            f"its rows do not lie by {wanted.fields} in {wanted.number} buckets. Set {_BUCKETS} "
            f"and {_HASHED} as Hudi Streamer had them"
        )
    if fault is not None:
        message = (
            f"The Hudi table of '{collection}' cannot be adopted with these settings: {fault}; "
            "with another index rows would be there twice. It was not touched."
        )
        raise ConfigError(message)


def refuse_streamed(collection: str, since: Iterable[Commit]) -> None:
    """Stop where Hudi Streamer goes on writing a table that is ours now.

    Args:
        collection: The source table.
        since: The commits that came after one of ours.

    Raises:
        ConfigError: One of them is Hudi Streamer's.
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
    """Stop where the source's log has started over since the table was adopted.

    Its LSNs may be lower then, and Hudi would drop every change of a row that has a higher one.

    Args:
        collection: The source table.
        position: Of a change; empty: there is none.
        adopted_at: Of the adoption.

    Raises:
        DataError: It has.
    """
    if position and epoch_number(position) > epoch_number(adopted_at):
        message = (
            f"The source's log started over after the table of '{collection}' was adopted from "
            "Hudi Streamer. Such a table is ordered by _event_lsn, which starts over, too, so its "
            "newer rows would be dropped. Nothing of this batch was published. Load the table anew "
            "under another lakeingest.target.path."
        )
        raise DataError(message)


def soft_deletes(collection: str) -> ConfigError:
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
    named_by = ("hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class")
    return next((properties[key] for key in named_by if key in properties), "unknown")


def adopted_options(properties: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the options of every write to an adopted table.

    Args:
        properties: The table's own settings.
        given: The user's.
    """
    ours = {
        **ALWAYS_OURS,
        "hoodie.table.name": properties["hoodie.table.name"],
        "hoodie.datasource.write.table.type": properties["hoodie.table.type"],
        "hoodie.datasource.write.recordkey.field": ",".join(key_fields(properties)),
        **partition_options(key_fields(properties), ()),
    }
    return {**WRITING, **given, **ours}


def decided_by_lsn(rows: DataFrame, names: MetadataColumns) -> DataFrame:
    """Give rows what the table decides by; rows without a position keep what they have.

    Never less than they have: a row that nothing has touched since the table was adopted has the
    position of the adoption, whose last component is no LSN, and one that is written for another
    reason (a new column's default) would be dropped by Hudi without a word.
    """
    digits = F.conv(F.substring(names.position, -COMPONENT_WIDTH, COMPONENT_WIDTH), 16, 10)
    lsn = digits.cast("bigint").cast(rows.schema[ORDERING].dataType)
    old = F.when(named(OPERATION) != "d", named(OPERATION))
    operation: Column = F.when(F.col(names.deleted), "d").otherwise(F.coalesce(old, F.lit("u")))
    return rows.withColumns({ORDERING: F.greatest(lsn, named(ORDERING)), OPERATION: operation})


def without_placeholders(rows: DataFrame, placeholder: str) -> tuple[DataFrame, Column]:
    """Return rows with NULL for every placeholder that was stored as a value.

    Returns:
        The rows, and the condition over the given ones that they had one.
    """
    held = F.lit(False)
    columns = {}
    for item in rows.schema:
        if item.dataType.typeName() in ("string", "binary"):
            mark = F.lit(placeholder).cast(item.dataType)
            held = held | F.coalesce(named(item.name) == mark, F.lit(False))
            columns[item.name] = F.when(named(item.name) != mark, named(item.name))
    return rows.withColumns(columns), held
