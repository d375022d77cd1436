"""Refuse cells of ``value`` and ``set`` that cannot be read (``decode/cells.py``).

All records of a table are read in one way. If some come in cells and some do not, the connector's
plugin was changed while the topics still hold the old records. If the configured connector sends no
cells, no code looks for cells that an update leaves out, and the update would write NULL there.
"""

from __future__ import annotations

from lakeingest.connectors import CONNECTORS
from lakeingest.decode.wire import TableShape
from lakeingest.errors import ConfigError


def refuse_cells(collection: str, shown: TableShape, connector: str) -> None:
    """Raise an error for a table whose cells cannot be read.

    Args:
        collection: The source table.
        shown: Columns and format of the table, from its records.
        connector: One of ``CONNECTORS``.

    Raises:
        ConfigError: Only some of the records come in cells, or the connector sends no cells.
    """
    if shown.mixed:
        message = (
            f"Some records of table '{collection}' come wrapped as value and set, and some do "
            "not: plugin.name of the connector was changed. Start it over with other topics "
            "(topic.prefix), and load the tables anew. Nothing of this batch was published."
        )
        raise ConfigError(message)
    if shown.reader.cells and not CONNECTORS[connector].partial_rows:
        message = (
            f"The columns of table '{collection}' come wrapped as value and set, as YugabyteDB's "
            "connectors write them. Set lakeingest.source.connector=yugabytedb. Nothing of this "
            "batch was published."
        )
        raise ConfigError(message)
