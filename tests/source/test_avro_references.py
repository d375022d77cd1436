from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from lakeingest.source.registry.references import with_references


def record(name: str, **fields: Any) -> dict[str, Any]:
    """Return a record; a field ``from_`` is named ``from``, and one that may be null is so."""
    listed = [
        {"name": field.rstrip("_"), "type": kind}
        | ({"default": None} if isinstance(kind, list) else {})
        for field, kind in fields.items()
    ]
    return {"type": "record", "name": name, "fields": listed}


COUNTRY = {"type": "enum", "name": "Country", "namespace": "geo", "symbols": ["DE", "FR"]}
ADDRESS = {
    **record(
        "Address",
        country="geo.Country",
        lines={"type": "array", "items": "string"},
        before=["null", "Address"],
    ),
    "namespace": "shop",
}
# Without a namespace, in the midst of a record that has one.
NOTE = record("Note", kind={"type": "fixed", "name": "Kind", "size": 1})
ORDER = record(
    "shop.orders.Order",
    id={"type": "long", "connect.default": 0},
    from_=["null", "shop.Address"],
    to="shop.Address",
    via={"type": "map", "values": "geo.Country"},
    note=["null", "Note"],
    kind=["null", "Kind"],
    next=["null", "Order"],
)
ORDER["fields"][0]["default"] = 0
VALUE: dict[str, Any] = {
    "id": 1,
    "from": None,
    "to": {"country": "FR", "lines": ["a"], "before": None},
    "via": {"x": "DE"},
    "next": None,
}


def whole(schema: Any, *others: Any) -> Any:
    return json.loads(with_references(json.dumps(schema), [json.dumps(other) for other in others]))


def test_a_schema_that_refers_to_none_stays_as_it_is_letter_by_letter() -> None:
    text = '{"type": "long" , "connect.version":1}'
    assert with_references(text, []) == text


def test_a_definition_stands_where_its_type_is_first_used_and_then_its_name() -> None:
    fields = whole(ORDER, ADDRESS, COUNTRY, NOTE)["fields"]
    assert fields[1]["type"][1]["name"] == "Address"
    assert fields[1]["type"][1]["fields"][0]["type"] == COUNTRY
    assert fields[2]["type"] == "shop.Address"
    assert fields[3]["type"] == {"type": "map", "values": "geo.Country"}
    assert fields[0] == ORDER["fields"][0]
    assert fields[6]["type"] == ["null", "shop.orders.Order"]


@pytest.mark.parametrize("others", [(ADDRESS, COUNTRY, NOTE), (NOTE, COUNTRY, ADDRESS)])
def test_the_whole_schema_means_the_same_to_another_reader(others: tuple[Any, ...]) -> None:
    # Avro's specification has no way to name a type without a namespace from within one; Java has.
    fields = [field for field in ORDER["fields"] if field["name"] not in ("note", "kind")]
    parsed = fastavro.parse_schema(whole({**ORDER, "fields": fields}, *others))
    assert fastavro.validate(VALUE, parsed)
    wrong = {**VALUE, "to": {**VALUE["to"], "country": "X"}}
    assert not fastavro.validate(wrong, parsed, raise_errors=False)


def test_the_whole_schema_is_one_to_javas_parser(spark: SparkSession) -> None:
    assert spark._jvm is not None
    text = json.dumps(whole(ORDER, NOTE, ADDRESS, COUNTRY))
    parsed = spark._jvm.org.apache.avro.Schema.Parser().parse(text)
    assert parsed.getFullName() == "shop.orders.Order"
    note = parsed.getField("note").schema().getTypes().get(1)
    assert note.getFullName() == "Note"
    assert note.getField("kind").schema().getFullName() == "Kind"


def test_a_nested_type_that_was_used_before_its_outer_one_is_defined_once() -> None:
    outer = record("a.Outer", inner={"type": "enum", "name": "Inner", "symbols": ["X"]})
    one, two = whole(record("a.User", one="Inner", two="Outer"), outer)["fields"]
    assert one["type"]["symbols"] == ["X"]
    assert two["type"]["fields"][0]["type"] == "a.Inner"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array", "items": "shop.Nowhere"}, "shop.Nowhere"),
        ({"type": "array"}, "no Avro type"),
        ({"type": "map", "values": 7}, "no Avro type"),
    ],
)
def test_what_is_no_schema_says_why(schema: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        whole(schema, COUNTRY)
