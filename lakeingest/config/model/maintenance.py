"""Define what maintenance keeps, and when a run does it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lakeingest.config.model.fields import ConfigModel

_CENTURY = 876_000
"""Hours; a clock cannot be set back by many more."""


class MaintenanceConfig(ConfigModel):
    """What `lakeingest maintain` keeps of a lake, and how much of its work runs do."""

    batches: int | None = Field(default=None, ge=1, validation_alias="lakeingest.maintain.batches")
    """Batches after which a run maintains one table, each table in its turn, as `lakeingest
    maintain` maintains all of them; and with it each table that has many small files. Default:
    never, so that a run does what it was started for; for continuous runs, 100 keeps the tables
    healthy."""
    ledger_hours: int = Field(
        default=168, ge=1, le=_CENTURY, validation_alias="lakeingest.ledger.retention.hours"
    )
    """Hours for which a publication can be read after the next one has followed. Maintenance
    removes the files that only older publications need. Default: a week, as Delta's VACUUM."""
    tombstone_hours: int | None = Field(
        default=None, ge=1, le=_CENTURY, validation_alias="lakeingest.tombstone.retention.hours"
    )
    """Hours after which maintenance removes the tombstone of a deleted row from a Delta table.
    Should the connector later send an older event of the row once more, the row is there again, or
    the run stops: choose more than the topics keep. The ledger keeps transactions as long, to know
    them again. Default: never."""
    deleted_values: Literal["keep", "null"] = Field(
        default="keep", validation_alias="lakeingest.deletes.values"
    )
    """What maintenance does with the values of deleted rows (`lakeingest.deletes=soft`, Delta
    tables): `null` removes all but key, partition columns and metadata, in the table with the
    next publication and from its files once no publication needs them
    (`lakeingest.ledger.retention.hours`). Default: `keep`, because marked rows are of use as
    history."""
