"""The schemas that a run's records were written with, learned from the registry as they appear.

Which they are, only the records say. What is not known yet comes out of decoding as malformed
(``decode/avro_format.py``); then, and before the first window, the ids of the window's records are
looked at and the registry is asked for the new ones. A schema has one id for ever, so nothing is
asked twice.
"""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from lakeingest.decode.avro_format import AvroFormat
from lakeingest.decode.avro_rows import TAG_OCTETS, tag_of
from lakeingest.decode.avro_schema import AvroSchema
from lakeingest.decode.json_format import JsonFormat
from lakeingest.decode.wire import WireFormat
from lakeingest.errors import ConfigError, DataError
from lakeingest.source.registry import Registry
from lakeingest.source.registry_opening import RegistrySettings, open_registry


class Schemas(Protocol):
    """What is known of the records' schemas."""

    @property
    def format(self) -> WireFormat:
        """Reads records as far as their schemas are known."""

    @property
    def none_known(self) -> bool:
        """Whether reading is of no use before something is learned."""

    def learn(self, *records: DataFrame) -> bool:
        """Look for schemas that are not known; tell whether there were any.

        Args:
            *records: Frames with ``topic``, ``key`` and ``value``.

        Raises:
            LakeingestError: The registry has none of that id, or cannot be asked.
        """

    def check(self) -> None:
        """See that a run could learn; same errors as ``learn``."""

    def close(self) -> None:
        """Release the registry's client. Safe to call twice."""


class NoSchemas:
    """JSON brings along what there is to know."""

    format: WireFormat = JsonFormat()
    none_known = False

    def learn(self, *_: DataFrame) -> bool:
        """Return false: there is nothing to learn."""
        return False

    def check(self) -> None:
        """Nothing can be wrong."""

    def close(self) -> None:
        """Nothing to release."""


class RegistrySchemas:
    """Schemas of Confluent's wire format, by the registry."""

    def __init__(self, registry: Registry) -> None:
        """Start with none known."""
        self._registry = registry
        self._known: dict[bytes, AvroSchema] = {}
        self.format: WireFormat = AvroFormat(self._known)

    @property
    def none_known(self) -> bool:
        """See ``Schemas``."""
        return not self._known

    def learn(self, *records: DataFrame) -> bool:
        """See ``Schemas``."""
        topics: dict[bytes, str] = {}
        for frame in records:
            tags = F.explode(F.array(tag_of(F.col("key")), tag_of(F.col("value"))))
            for row in frame.select("topic", tags.alias("tag")).distinct().collect():
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


def opened_schemas(spark: SparkSession, config: RegistrySettings) -> Schemas:
    """Return what reads the schemas of a source's records; nothing is asked yet.

    Raises:
        ConfigError: A setting is missing, or the session cannot read Avro.
        UnavailableError: The package that asks a registry is not installed.
    """
    registry = open_registry(config, spark)
    if registry is None:
        return NoSchemas()
    try:
        from_avro(F.lit(None).cast("binary"), '"string"')
    except TypeError:
        message = (
            "The running Spark session cannot read Avro: start it with the package "
            f"org.apache.spark:spark-avro_2.12:{spark.version}, or stop it and let lakeingest "
            "start one."
        )
        raise ConfigError(message) from None
    return RegistrySchemas(registry)
