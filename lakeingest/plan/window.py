"""Turn the records of a window into changes and boundaries: the first stages, joined.

A window is the result of one read of the log. It is decoded once, however many batches are cut from
it (``batches.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.connectors import CONNECTORS
from lakeingest.engine.known_columns import Addition, Steps, made_once
from lakeingest.envelope import ChangeSpec, change_steps
from lakeingest.envelope.change import FAMILIES
from lakeingest.envelope.epoch import end_epoch
from lakeingest.plan.end_positions import UNPLACED
from lakeingest.plan.ordering import ordering_values, with_ordering_fields
from lakeingest.plan.spec import PipelineSpec
from lakeingest.position.epochs import Epoch
from lakeingest.transaction import completeness
from lakeingest.transaction.boundary import boundary_steps


def window_changes(records: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Decode data records to ``CHANGE``."""
    family = FAMILIES[spec.connector]
    fields = family.source
    if spec.by_rows:
        fields = StructType([*fields, *family.transaction_fields])
    source = with_ordering_fields(fields, spec.ordering)
    envelopes = spec.format.envelopes(records, event=bool(spec.names.event), source=source)
    return _change_steps(spec).of(envelopes)


@made_once
def _change_steps(spec: PipelineSpec) -> Steps:
    value = F.col("value")
    partial_rows = CONNECTORS[spec.connector].partial_rows
    change_spec = ChangeSpec(
        spec.connector,
        epoch=spec.epoch,
        epochs=spec.epochs,
        marks=spec.format.marks(spec.encodings),
        key_body=spec.format.key_body(F.col("key")),
        may_omit=spec.format.may_omit(value) if partial_rows else None,
        is_foreign=spec.format.is_foreign(value),
        ordering=ordering_values(spec.format, spec.ordering) if spec.ordering else None,
        event=bool(spec.names.event),
        halves=not spec.whole,
        by_rows=spec.by_rows,
    )
    return change_steps(change_spec)


def window_metadata(records: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Decode records of the transaction topic (``WireFormat.transaction_metadata``'s columns)."""
    return spec.format.transaction_metadata(records)


def window_boundaries(metadata: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Find the transactions that are over or open: ``BOUNDARY`` plus ``domain``."""
    return _boundary_steps(spec.connector, spec.epoch, spec.epochs).of(metadata)


@made_once
def _boundary_steps(connector: str, epoch: int, epochs: tuple[Epoch, ...]) -> Steps:
    family, id_ = FAMILIES[connector], F.col("id")
    if family.end_position is None:
        end_position = F.lit(UNPLACED)
    else:
        end_position = family.end_position(end_epoch(family, epoch, epochs, id_), id_)
    more = {"domain": family.domains.domain(id_) if family.domains else F.lit("")}
    if family.end_collection is not None:
        more["collections"] = _with_names(family.end_collection)
    of_family = boundary_steps(
        family.transaction_key(id_), end_position, implied_end=family.implied_end
    )
    return Steps(of_family, Addition(more))


def _with_names(rename: Callable[[Column], Column]) -> Column:
    return F.transform(
        "collections",
        lambda item: F.struct(
            rename(item["data_collection"]).alias("data_collection"), item["event_count"]
        ),
    )


def is_counted(selected: Column | None, uncounted: Sequence[str]) -> Column:
    """Return a condition over ``data_collection``: END's count of its rows must be met here.

    PostgreSQL counts logical messages under names like ``…MessageId@50a5e486``: not rows.

    Args:
        selected: Whether the configuration selects the collection's topic; None: it selects all.
        uncounted: Collections whose rows a transform drops after Debezium counted them.
    """
    name = F.col("data_collection")
    message = name.rlike(r"^io\.debezium\..*@[0-9a-f]+$")
    counted = ~message & ~name.isin("", *uncounted)
    return counted if selected is None else counted & selected


def without_row_after_begin(
    window: DataFrame,
    ends: DataFrame,
    counted: Column,
    metadata: DataFrame,
    records: DataFrame,
    spec: PipelineSpec,
) -> DataFrame:
    """Find transactions with a repeated BEGIN of which no row was written after it.

    Args:
        window: ``CHANGE``.
        ends: ``BOUNDARY``.
        counted: Condition over ``data_collection``.
        metadata: See ``window_metadata``.
        records: ``RECORD``, those of the window.
        spec: Pipeline settings.
    """
    key = FAMILIES[spec.connector].transaction_key(F.col("id"))
    begins = metadata.where(F.col("status") == "BEGIN").select(
        key.alias("transaction_key"), "offset", "timestamp"
    )
    return completeness.without_row_after_begin(window, ends, counted, begins, records)
