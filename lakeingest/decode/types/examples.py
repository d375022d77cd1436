"""One value of every type that Debezium writes, on the wire and in the lake.

``lakeingest types`` prints them. They stand in ``examples.jsonl``: the source's types, Connect's
schema and the value as a JSON record has them, and the value in the lake. The converter that reads
such a record gives the Spark type, and a test converts all values to those of the lake. Rejected:
to convert them when the command runs. It takes a Spark session, ten seconds and a JVM, to print
what never changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakeingest.decode.columns import from_connect
from lakeingest.decode.types.logical import JSON, Form
from lakeingest.decode.types.logical_type import LogicalType

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """One value of a type.

    Attributes:
        source: The databases' types that are written like this, or the connector's mode.
        schema: Connect's schema as JsonConverter writes it.
        wire: The value in JSON.
        lake: The value in the lake, as Spark shows it: octets in hexadecimal, composed types as
            JSON.
        form: The form of the wire under the settings of the example.
    """

    source: str
    schema: Schema
    wire: Any
    lake: str
    form: Form = field(default=JSON, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Return Debezium's or Connect's name of the type, or Connect's primitive type."""
        return str(self.schema.get("name") or self.schema["type"])

    @property
    def type(self) -> LogicalType:
        """Return the logical type that a column with this schema gets."""
        (column,) = from_connect([{"field": "value", **self.schema}], self.form)
        return column.type

    @property
    def wire_text(self) -> str:
        """Return the value as a JSON record has it."""
        return json.dumps(self.wire, separators=(",", ":"), ensure_ascii=False)


def _examples() -> Iterator[Example]:
    path = Path(__file__).with_name("examples.jsonl")
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        form = JSON.with_policy(fields.pop("decimal.too.large", JSON.too_large))
        yield Example(**fields, form=form)


EXAMPLES: tuple[Example, ...] = tuple(_examples())
"""Every type, in the order in which ``lakeingest types`` lists them."""
