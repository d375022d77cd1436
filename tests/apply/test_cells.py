"""Cells that cannot be read are refused, with what to do about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakeingest.apply.table.cell_guard import refuse_cells
from lakeingest.decode.json.format import JsonFormat
from lakeingest.decode.wire import Samples, TableShape
from lakeingest.errors import ConfigError


def shown(*rows: Any) -> TableShape:
    values = tuple(json.dumps({"after": row}).encode() for row in rows)
    return JsonFormat().table_shape(Samples(values=values))


def cell(value: object) -> dict[str, object]:
    return {"value": value, "set": True}


CELLS = {"id": cell(1), "name": None}
PLAIN = {"id": 1, "name": "x"}


def test_a_plugin_that_was_changed_over_the_same_topics_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'public\.a'.* plugin\.name .* was changed"):
        refuse_cells("public.a", shown(CELLS, PLAIN), "yugabytedb")


@pytest.mark.parametrize("connector", ["postgresql", "mysql"])
def test_cells_of_another_connector_are_refused(connector: str) -> None:
    with pytest.raises(ConfigError, match=r"connector=yugabytedb\b"):
        refuse_cells("public.a", shown(CELLS, CELLS), connector)


@pytest.mark.parametrize("rows", [(CELLS, CELLS, None), (PLAIN, {}), (CELLS, {}), ()])
@pytest.mark.parametrize("connector", ["yugabytedb", "yugabytedb-grpc"])
def test_yugabytedb_may_send_cells_or_none(rows: tuple[Any, ...], connector: str) -> None:
    refuse_cells("public.a", shown(*rows), connector)
