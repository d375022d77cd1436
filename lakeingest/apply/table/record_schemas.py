"""The schemas that a run's records were written with, learned as they appear, each once.

Which they are, only the records say. An Avro record of a schema that is not known yet comes out of
decoding as malformed (``decode/avro_format.py``); then, and before the first window, the ids of the
window's records are looked at and the registry is asked for the new ones, and the window is read
again. A JSON record can be read without its schema, which it carries: only the types of its columns
are in it, and those are asked for after reading. A schema never changes under its id or hash, so
nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, get_args

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from lakeingest.config.model import SourceConfig
from lakeingest.config.value_settings import TooLarge
from lakeingest.decode.avro_format import AvroFormat
from lakeingest.decode.avro_rows import TAG_OCTETS, tag_of
from lakeingest.decode.avro_schema import AvroSchema
from lakeingest.decode.flattened import FlattenedFormat
from lakeingest.decode.flattened_avro import FlattenedAvroFormat
from lakeingest.decode.json_envelope import carried_schemas
from lakeingest.decode.json_format import (
    CarriedSchema,
    JsonFormat,
    come_in_cells,
    envelope_columns,
    flattened_columns,
)
from lakeingest.decode.logical import AVRO, JSON, JSON_NUMERIC, Form
from lakeingest.decode.replaced_nulls import nullable_defaults, nullable_defaults_in_row
from lakeingest.decode.wire import WireFormat
from lakeingest.errors import ConfigError, DataError
from lakeingest.source.registry.contract import Registry
from lakeingest.source.registry.factory import open_registry


class Schemas(Protocol):
    """What is known of the records' schemas."""

    @property
    def format(self) -> WireFormat:
        """Reads records as far as their schemas are known."""

    @property
    def needed(self) -> bool:
        """Whether a record cannot be read without its schema."""

    @property
    def readable(self) -> bool:
        """Whether a record of the source may be readable by what is known so far."""

    def lacks(self, tags: Collection[bytes]) -> bool:
        """Tell whether there is something to learn of schemas with these names."""

    def learn(self, records: DataFrame) -> bool:
        """Look for schemas that are not known; tell whether there were any.

        Args:
            records: ``topic``, ``timestamp``, ``key`` and ``value``.

        Raises:
            LakeingestError: The registry has none of that id, or cannot be asked.
        """

    def check(self) -> None:
        """See that a run could learn; same errors as ``learn``."""

    def close(self) -> None:
        """Release the registry's client. Safe to call twice."""


class CarriedSchemas:
    """Schemas that JSON records carry, or do not: each is parsed once, when it is met first."""

    needed = False
    readable = True

    def __init__(self, form: Form = JSON, *, flattened: bool = False) -> None:
        """Start with none known.

        Args:
            form: How values look, and what becomes of those that are too large.
            flattened: Whether rows come without their envelopes.
        """
        self._form = form
        self._known: dict[bytes, CarriedSchema] = {}
        self._columns = flattened_columns if flattened else envelope_columns
        self._defaulted = nullable_defaults_in_row if flattened else nullable_defaults
        known = self._known
        self.format: WireFormat = FlattenedFormat(known) if flattened else JsonFormat(known)

    def lacks(self, tags: Collection[bytes]) -> bool:
        """See ``Schemas``."""
        return any(tag not in self._known for tag in tags)

    def learn(self, records: DataFrame) -> bool:
        """See ``Schemas``."""
        known = len(self._known)
        for row in carried_schemas(records).collect():
            tag = bytes(row["tag"])
            if tag not in self._known:
                text = row["schema"]
                # A table may have another policy than the pipeline.
                by_policy = {
                    policy: self._columns(text, self._form.with_policy(policy))
                    for policy in get_args(TooLarge)
                }
                columns = by_policy[self._form.too_large]
                self._known[tag] = CarriedSchema(
                    row["since"],
                    columns,
                    self._defaulted(text),
                    cells=come_in_cells(text),
                    by_policy=by_policy,
                )
        return len(self._known) > known

    def check(self) -> None:
        """Nothing can be wrong."""

    def close(self) -> None:
        """Nothing to release."""


class RegistrySchemas:
    """Schemas of Confluent's wire format, by the registry."""

    needed = True

    def __init__(self, registry: Registry, form: Form = AVRO, *, flattened: bool = False) -> None:
        """Start with none known; ``form`` is that of ``AvroFormat``, see ``CarriedSchemas``."""
        self._registry = registry
        self._known: dict[bytes, AvroSchema] = {}
        format_ = FlattenedAvroFormat if flattened else AvroFormat
        self.format: WireFormat = format_(self._known, form)

    @property
    def readable(self) -> bool:
        """See ``Schemas``."""
        return bool(self._known)

    def lacks(self, tags: Collection[bytes]) -> bool:
        """See ``Schemas``."""
        return any(_is_tag(tag) and tag not in self._known for tag in tags)

    def learn(self, records: DataFrame) -> bool:
        """See ``Schemas``."""
        topics: dict[bytes, str] = {}
        tags = F.explode(F.array(tag_of(F.col("key")), tag_of(F.col("value"))))
        for row in records.select("topic", tags.alias("tag")).distinct().collect():
            if row["tag"] is not None:
                topics[bytes(row["tag"])] = row["topic"]
        new = [tag for tag in topics if tag not in self._known and _is_tag(tag)]
        for tag in sorted(new):
            self._known[tag] = self._asked(int.from_bytes(tag[1:], "big"), topics[tag])
        return bool(new)

    def check(self) -> None:
        """See ``Schemas``."""
        self._registry.check()

    def close(self) -> None:
        """See ``Schemas``."""
        self._registry.close()

    def _asked(self, schema_id: int, topic: str) -> AvroSchema:
        try:
            return AvroSchema.parse(self._registry.schema(schema_id))
        except (DataError, ValueError) as error:
            message = (
                f"Records of '{topic}' were written with schema {schema_id}, which cannot be used: "
                f"{error} Nothing was skipped."
            )
            raise DataError(message) from None


def _is_tag(octets: bytes) -> bool:
    return len(octets) == TAG_OCTETS and octets[0] == 0


def open_schemas(spark: SparkSession, config: SourceConfig) -> Schemas:
    """Return what reads the schemas of a source's records; nothing is asked yet.

    Raises:
        ConfigError: A setting is missing, or the session cannot read Avro.
        UnavailableError: The package that asks a registry is not installed.
    """
    registry = open_registry(config, spark)
    flattened = config.envelope == "flattened"
    if registry is None:
        form = JSON_NUMERIC if config.decimal_format == "NUMERIC" else JSON
        told = form.with_policy(config.decimal_too_large)
        return CarriedSchemas(told, flattened=flattened)
    try:
        from_avro(F.lit(None).cast("binary"), '"string"')
    except TypeError:
        message = (
            "The running Spark session cannot read Avro: start it with the package "
            f"org.apache.spark:spark-avro_2.12:{spark.version}, or stop it and let lakeingest "
            "start one."
        )
        raise ConfigError(message) from None
    form = AVRO.with_policy(config.decimal_too_large)
    return RegistrySchemas(registry, form, flattened=flattened)
