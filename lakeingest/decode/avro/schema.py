"""Avro schemas of the registry: their named types, and the reader schemas for their records.

``from_avro`` takes two schemas, the writer's and the reader's. Avro's own resolution skips what the
reader does not name: reading ``op`` and positions does not build the row, reading ``after`` does
not build ``source``. So each use has its own reader schema, which this module builds with the
writer's names. All of its fields are ``["null", T]``. So records of any schema version give one
Spark type, and a field that an old version lacks is NULL. Avro also widens types (int to long,
float to double).

Rejected: a reader schema without the writer's record names; resolution inside a union goes by name.
Also rejected: the schema as the registry has it; its logical types would become Spark decimals and
timestamps, with Spark's rules for values that overflow instead of ours.

Source: Avro specification, "Schema Resolution"; Spark's ``AvroDataToCatalyst`` (option
``avroSchema`` is the reader's).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from lakeingest.avro_names import PRIMITIVES, full_name, meanings

_OF_SPARK: Mapping[type[DataType], str] = {
    BooleanType: "boolean",
    ShortType: "int",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    BinaryType: "bytes",
}
READ = "_read"
"""A field of reader schemas only: true in every record that could be read."""

_READ_FIELD = {"name": READ, "type": "boolean", "default": True}

END = "_end"
"""A field behind all other fields of a record. Avro's reader stops where a record ends, and would
ignore octets behind it. So each record gets ``END_MARK`` behind it; if the record has octets more
or less, this field reads something else."""

END_MARK = b"\xf5\x00end\xff\x80\xfa"
_END_TYPE = {"type": "fixed", "name": "lakeingest.End", "size": len(END_MARK)}
_END_FIELD = {"name": END, "type": ["null", _END_TYPE], "default": None}


@dataclass(frozen=True)
class AvroSchema:
    """A schema of the registry with its named types.

    Attributes:
        tree: The schema with full names; references to named types stay as they are.
        names: Definition of each named type.
        text: The schema that Spark reads records with: structure only, and ``END``.
    """

    tree: Any
    names: Mapping[str, Mapping[str, Any]] = field(repr=False)
    text: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> AvroSchema:
        """Parse a schema; references to other subjects must be in it already.

        Raises:
            ValueError: The text is not an Avro schema.
        """
        names: dict[str, Mapping[str, Any]] = {}
        tree = _resolved(json.loads(text), "", names)
        return cls(tree, names, json.dumps(_with_end(_bare(tree))))

    def definition(self, kind: Any) -> Any:
        """Return a type, with a reference replaced by its definition."""
        return self.names.get(kind, kind) if isinstance(kind, str) else kind

    def present(self, kind: Any) -> Any:
        """Return the type of a value that is not null: of a union, its one other branch."""
        kind = self.definition(kind)
        if not isinstance(kind, list):
            return kind
        branches = [branch for branch in kind if branch != "null"]
        return self.definition(branches[0]) if len(branches) == 1 else branches

    def fields(self, kind: Any) -> Mapping[str, Mapping[str, Any]]:
        """Return the fields of a record type by name; of any other type none."""
        kind = self.present(kind)
        if not isinstance(kind, dict) or kind["type"] != "record":
            return {}
        return {item["name"]: item for item in kind["fields"]}


def _resolved(schema: Any, space: str, names: dict[str, Mapping[str, Any]]) -> Any:
    """Spell all names in full, and collect the definitions."""
    if isinstance(schema, str):
        if schema in PRIMITIVES:
            return schema
        candidates = meanings(schema, space)
        for full in candidates:
            if full in names:
                return full
        message = f"the Avro schema refers to a type it does not define: {candidates[0]}"
        raise ValueError(message)
    if isinstance(schema, list):
        return [_resolved(branch, space, names) for branch in schema]
    if not isinstance(schema, dict) or "type" not in schema:
        message = "not an Avro schema: a type is a name, a union or an object with a type"
        raise ValueError(message)
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _resolved(kind, space, names)
    if kind == "array":
        return {**schema, "items": _resolved(schema["items"], space, names)}
    if kind == "map":
        return {**schema, "values": _resolved(schema["values"], space, names)}
    if kind not in ("record", "enum", "fixed"):
        resolved = _resolved(kind, space, names)
        return {**schema, "type": resolved} if isinstance(resolved, str) else resolved
    full = full_name(schema, space)
    definition: dict[str, Any] = {**schema, "name": full}
    # Before its fields: a record may contain itself.
    names[full] = definition
    inner = full.rpartition(".")[0]
    if kind == "record":
        definition["fields"] = [
            {**item, "type": _resolved(item["type"], inner, names)} for item in schema["fields"]
        ]
    return definition


_STRUCTURE = ("type", "name", "fields", "items", "values", "symbols", "size")


def _bare(kind: Any) -> Any:
    """Return structure and names only: the rest could make Spark choose another type."""
    if isinstance(kind, list):
        return list(map(_bare, kind))
    if isinstance(kind, dict):
        bare = {key: _bare(value) for key, value in kind.items() if key in _STRUCTURE}
        return bare["type"] if len(bare) == 1 else bare
    return kind


def _with_end(bare: Any) -> Any:
    """Add ``END`` to a record, unless it contains itself: its inner records have no ``END``."""
    if not isinstance(bare, dict) or bare["type"] != "record":
        return bare
    if json.dumps(bare["name"]) in json.dumps(bare["fields"]):
        return bare
    return {**bare, "fields": [*bare["fields"], {"name": END, "type": _END_TYPE}]}


@dataclass
class _Reader:
    """Writes one reader schema; a named type is defined at its first use."""

    schema: AvroSchema
    defined: set[str] = field(default_factory=set)

    def type_of(self, spark: DataType, kind: Any) -> Any:
        """Return the reader's type for ``spark`` where the writer has ``kind`` (None: nothing)."""
        kind = self.schema.present(kind) if kind is not None else None
        if isinstance(kind, list):
            # Keep a union of several types as the writer has it: Spark makes a struct of it.
            return [_bare(branch) for branch in kind]
        if isinstance(kind, dict) and kind["type"] in ("enum", "fixed"):
            return self._once(kind, _bare(kind))
        if isinstance(spark, ArrayType):
            items = kind["items"] if kind else None
            return {"type": "array", "items": self.nullable(spark.elementType, items)}
        if isinstance(spark, MapType):
            values = kind["values"] if kind else None
            return {"type": "map", "values": self.nullable(spark.valueType, values)}
        if isinstance(spark, StructType):
            name = kind["name"] if kind else f"absent{len(self.defined)}"
            fields = self.fields(spark, self.schema.fields(kind) if kind else {})
            record = {"type": "record", "name": name, "fields": list(fields)}
            return self._once({"name": name}, record)
        return _OF_SPARK.get(type(spark), "string")

    def nullable(self, spark: DataType, kind: Any) -> list[Any]:
        return ["null", self.type_of(spark, kind)]

    def fields(
        self, spark_type: StructType, writer_fields: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        for item in spark_type:
            kind = writer_fields[item.name]["type"] if item.name in writer_fields else None
            yield {
                "name": item.name,
                "type": self.nullable(item.dataType, kind),
                "default": None,
            }

    def _once(self, kind: Mapping[str, Any], definition: Any) -> Any:
        if kind["name"] in self.defined:
            return kind["name"]
        self.defined.add(str(kind["name"]))
        return definition


_OF_AVRO: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
}


def as_written(schema: AvroSchema, spark_type: StructType, kind: Any = None) -> StructType:
    """Return ``spark_type`` with the writer's type in place of text, where the writer has no text.

    Avro does not convert a number or a record to text, Spark does.

    Args:
        schema: The schema of the record.
        spark_type: The fields to read of it.
        kind: The type to read ``spark_type`` from; None: the whole record.
    """
    writer_fields = schema.fields(schema.tree if kind is None else kind)

    def own(item: StructField) -> StructField:
        if item.name not in writer_fields:
            return item
        written = _as_written(schema, item.dataType, writer_fields[item.name]["type"])
        return StructField(item.name, written, item.nullable)

    return StructType(list(map(own, spark_type)))


def _as_written(schema: AvroSchema, spark: DataType, kind: Any) -> DataType:
    if isinstance(spark, StructType):
        return as_written(schema, spark, kind)
    return _spark_of(schema, kind) if isinstance(spark, StringType) else spark


def _spark_of(schema: AvroSchema, kind: Any) -> DataType:
    """Return the writer's type of a value in Spark; text if Spark has no such type."""
    present = schema.present(kind)
    name = present["type"] if isinstance(present, dict) else present
    if name == "record":
        fields = schema.fields(present).items()
        return StructType([StructField(n, _spark_of(schema, item["type"])) for n, item in fields])
    if name == "array":
        return ArrayType(_spark_of(schema, present["items"]))
    if name == "map":
        return MapType(StringType(), _spark_of(schema, present["values"]))
    return _OF_AVRO.get(name, StringType()) if isinstance(name, str) else StringType()


def reader_schema(schema: AvroSchema, spark_type: StructType) -> str:
    """Return the schema that reads ``spark_type`` of a record, and ``READ`` and ``END``.

    Args:
        schema: The schema of the record; anything but a record gives NULL fields.
        spark_type: Fields by name with the type that Spark shall see; the writer may lack them.
    """
    top = schema.present(schema.tree)
    name = top["name"] if isinstance(top, dict) and top["type"] == "record" else "none"
    fields = _Reader(schema, {name}).fields(spark_type, schema.fields(top))
    return json.dumps(
        {"type": "record", "name": name, "fields": [*fields, _READ_FIELD, _END_FIELD]}
    )
