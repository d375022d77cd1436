"""Differences that the recorded events cannot avoid, in one place, each with its reason.

Everything that is not listed here must be equal. An entry names both values, so that it excuses
one known substitution and not the column.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.compare import Accepted
from tests.recordings.oracle import NULL

_NO_DEFAULT = Accepted(
    table="orders",
    column="channel",
    source="web",
    lake=NULL,
    reason=(
        "ALTER TABLE ADD COLUMN … DEFAULT 'web' rewrites no row and sends no event: rows that were "
        "not changed afterwards have the default in the database, and nobody was told"
    ),
)

_CONVERTER_DEFAULTS = (
    Accepted(
        table="customers",
        column="tier",
        source=NULL,
        lake="1",
        reason="the converter ran with replace.null.with.default=true: NULL was sent as 1",
    ),
    Accepted(
        table="orders",
        column="discount",
        source=NULL,
        lake="1.25",
        reason="the converter ran with replace.null.with.default=true: NULL was sent as 1.25",
    ),
)

ACCEPTED: Mapping[str, tuple[Accepted, ...]] = {
    "pg-shop": (_NO_DEFAULT,),
    "pg-shop-small": (_NO_DEFAULT,),
    "mariadb-shop": (_NO_DEFAULT,),
    "pg-kill": _CONVERTER_DEFAULTS,
    "pg-kill-replay": _CONVERTER_DEFAULTS,
    "mariadb-kill": _CONVERTER_DEFAULTS,
    "mariadb-kill-replay": _CONVERTER_DEFAULTS,
    "pg-shop-null-defaults": _CONVERTER_DEFAULTS,
    # Schemas tell the default.
    "pg-shop/json-schema": (),
    "pg-shop-small/json-schema": (),
    # Confluent's Avro converter 7.0.16 has no setting against it.
    "pg-shop/avro": _CONVERTER_DEFAULTS,
    "shop": (_NO_DEFAULT,),
    "shop/json-schema": (),
    "shop/avro": _CONVERTER_DEFAULTS,
}
"""Accepted differences of the final tables, per run, or per run and format where they differ."""

_FILLED = "orders.crc_channel"
"""The recorder counts rows that changed since the ALTER; the lake has the default in the others."""

UNCOUNTED: Mapping[str, frozenset[str]] = {
    "pg-kill": frozenset({"customers.sum_tier"}),
    "pg-kill-replay": frozenset({"customers.sum_tier"}),
    "pg-shop-null-defaults": frozenset({"customers.sum_tier", _FILLED}),
    "pg-shop/json-schema": frozenset({_FILLED}),
    "pg-shop-small/json-schema": frozenset({_FILLED}),
    "pg-shop/avro": frozenset({"customers.sum_tier", _FILLED}),
    "shop/json-schema": frozenset({_FILLED}),
    "shop/avro": frozenset({"customers.sum_tier", _FILLED}),
}
"""Measures that cannot be equal: a sum over the column whose NULLs arrive as 1, and ``_FILLED``."""


def accepted(run: str, form: str) -> tuple[Accepted, ...]:
    """Return the differences to accept in the final tables of a run in one format."""
    return ACCEPTED.get(f"{run}/{form}", ACCEPTED.get(run, ()))


def uncounted(run: str, form: str) -> frozenset[str]:
    """Return the measures (``table.measure``) not to compare for a run in one format."""
    return UNCOUNTED.get(f"{run}/{form}", UNCOUNTED.get(run, frozenset()))
