"""What is set for tables that no run of the configuration will meet: most likely misspelt."""

from __future__ import annotations

from collections.abc import Iterator

from lakeingest.config.keys import nearest
from lakeingest.config.model import PipelineConfig

_FILTERED = "lakeingest.transaction.filtered.collections"


def idle_tables(config: PipelineConfig) -> Iterator[str]:
    """Name the tables for which something is set and whose topics are not read.

    Without a list or a pattern every topic of the prefix is, and only a run sees which there are.
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
    listed = [source.names.plain(topic) for topic in source.topics]
    near = nearest(collection, listed)
    return f"; did you mean {near}?" if near else ""
