"""Find settings for tables whose topics no run reads: most likely their names are misspelt."""

from __future__ import annotations

from collections.abc import Iterator

from lakeingest.config.keys import nearest
from lakeingest.config.model import PipelineConfig

_FILTERED = "lakeingest.transaction.filtered.collections"


def idle_tables(config: PipelineConfig) -> Iterator[str]:
    """Yield a warning for each table that has settings and whose topic lakeingest does not read.

    Without a list or a pattern lakeingest reads every topic of the prefix. Then only a run sees
    which topics exist, and there is no warning.
    """
    for collection in config.tables:
        if not config.source.selects(collection):
            yield f"table {collection} is not among the topics{_hint(collection, config)}"
    if "uncounted_collections" in config.referenced:
        return
    for collection in config.uncounted_collections:
        if not config.source.selects(collection):
            hint = _hint(collection, config)
            yield f"{_FILTERED}: {collection} is not among the topics{hint}"


def _hint(collection: str, config: PipelineConfig) -> str:
    source = config.source
    if "topics" in source.referenced:
        return ""
    tables = [source.names.plain(topic) for topic in source.topics]
    nearest_table = nearest(collection, tables)
    return f"; did you mean {nearest_table}?" if nearest_table else ""
