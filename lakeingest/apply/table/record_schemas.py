"""Learn the schemas of a run's records as they appear, each schema once.

Only the records say which schemas they have. Decoding marks an Avro record of an unknown schema as
malformed (``decode/avro/format.py``). Then, and before the first window, the run collects the
schema ids of the window's records, requests the new ones, and reads the window again. A JSON record
carries its schema and can be read without it: only the types of its columns need it. So JSON
schemas are collected after the window is read. A schema never changes under its id or hash, so each
is requested once.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Protocol, get_args

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from lakeingest.config.model import SourceConfig, TooLarge
from lakeingest.decode.avro.format import AvroFormat
from lakeingest.decode.avro.rows import TAG_OCTETS, tag_of
from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.decode.flattened.avro_format import FlattenedAvroFormat
from lakeingest.decode.flattened.json_format import FlattenedFormat
from lakeingest.decode.json.envelope import carried_schemas
from lakeingest.decode.json.format import CarriedSchema, JsonFormat
from lakeingest.decode.types.logical import AVRO, JSON, JSON_NUMERIC, Form
from lakeingest.decode.wire import WireFormat
from lakeingest.errors import ConfigError, DataError
from lakeingest.source.registry.contract import Registry
from lakeingest.source.registry.factory import open_registry


class Schemas(Protocol):
    """The schemas of the records that a run has learned so far."""

    @property
    def format(self) -> WireFormat:
        """Format that reads the records whose schemas are known."""

    @property
    def needed(self) -> bool:
        """Whether a record cannot be read without its schema."""

    @property
    def readable(self) -> bool:
        """Whether some record of the source may be readable with the schemas known so far."""

    def lacks(self, tags: Collection[bytes]) -> bool:
        """Return whether one of these tags names a schema that is not known yet."""

    def learn(self, records: DataFrame) -> bool:
        """Learn the unknown schemas of these records; return whether there were any.

        Args:
            records: ``topic``, ``timestamp``, ``key`` and ``value``.

        Raises:
            LakeingestError: The registry has no schema of an id, or cannot be reached.
        """

    def check(self) -> None:
        """Check that a run can learn schemas; raise the same errors as ``learn``."""

    def close(self) -> None:
        """Release the registry's client. Safe to call twice."""


class CarriedSchemas:
    """Schemas that JSON records may carry; each is parsed once, when it first appears."""

    needed = False
    readable = True

    def __init__(self, form: Form = JSON, *, flattened: bool = False) -> None:
        """Start without any schema.

        Args:
            form: Wire form of values, and the policy for decimals that are too large.
            flattened: Whether rows come without their envelopes.
        """
        self._form = form
        self._schemas_by_tag: dict[bytes, CarriedSchema] = {}
        format_ = FlattenedFormat if flattened else JsonFormat
        self.format = format_(self._schemas_by_tag)

    def lacks(self, tags: Collection[bytes]) -> bool:
        """See ``Schemas``."""
        return any(tag not in self._schemas_by_tag for tag in tags)

    def learn(self, records: DataFrame) -> bool:
        """See ``Schemas``."""
        count_before = len(self._schemas_by_tag)
        for row in carried_schemas(records).collect():
            tag = bytes(row["tag"])
            schema = self._schemas_by_tag.get(tag)
            if schema is not None:
                # A window's edges may have shown it late.
                since = min(schema.since, row["since"])
                self._schemas_by_tag[tag] = replace(schema, since=since)
            else:
                # A table's policy may differ from the pipeline's.
                self._schemas_by_tag[tag] = self.format.carried_schema(
                    row["since"], row["schema"], self._form, get_args(TooLarge)
                )
        return len(self._schemas_by_tag) > count_before

    def check(self) -> None:
        """Do nothing: JSON records carry their schemas."""

    def close(self) -> None:
        """Do nothing: no client is open."""


class RegistrySchemas:
    """Schemas of records in Confluent's wire format, from a registry."""

    needed = True

    def __init__(self, registry: Registry, form: Form = AVRO, *, flattened: bool = False) -> None:
        """Start without any schema; ``form`` is ``AvroFormat``'s, see ``CarriedSchemas``."""
        self._registry = registry
        self._schemas_by_tag: dict[bytes, AvroSchema] = {}
        format_ = FlattenedAvroFormat if flattened else AvroFormat
        self.format: WireFormat = format_(self._schemas_by_tag, form)

    @property
    def readable(self) -> bool:
        """See ``Schemas``."""
        return bool(self._schemas_by_tag)

    def lacks(self, tags: Collection[bytes]) -> bool:
        """See ``Schemas``."""
        return any(_is_tag(tag) and tag not in self._schemas_by_tag for tag in tags)

    def learn(self, records: DataFrame) -> bool:
        """See ``Schemas``."""
        topics: dict[bytes, str] = {}
        tags = F.explode(F.array(tag_of(F.col("key")), tag_of(F.col("value"))))
        for row in records.select("topic", tags.alias("tag")).distinct().collect():
            if row["tag"] is not None:
                topics[bytes(row["tag"])] = row["topic"]
        new = [tag for tag in topics if tag not in self._schemas_by_tag and _is_tag(tag)]
        for tag in sorted(new):
            self._schemas_by_tag[tag] = self._request(int.from_bytes(tag[1:], "big"), topics[tag])
        return bool(new)

    def check(self) -> None:
        """See ``Schemas``."""
        self._registry.check()

    def close(self) -> None:
        """See ``Schemas``."""
        self._registry.close()

    def _request(self, schema_id: int, topic: str) -> AvroSchema:
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
    """Return the schemas of a source's records, none learned yet; send the registry no request.

    Raises:
        ConfigError: A setting is missing, or the session cannot read Avro.
        UnavailableError: The package of the registry's client is not installed.
    """
    registry = open_registry(config, spark)
    flattened = config.envelope == "flattened"
    if registry is None:
        form = JSON_NUMERIC if config.decimal_format == "NUMERIC" else JSON
        json_form = form.with_policy(config.decimal_too_large)
        return CarriedSchemas(json_form, flattened=flattened)
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
