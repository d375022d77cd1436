"""Complete a configuration by what the newest publication says of the lake's tables.

The lake says which tables are retired and which were loaded anew, not the configuration: the other
tables continue from the frontier, which holds only if every run reads the same topics into the same
folders. So a run takes both from the newest publication before it opens source and tables, and
stops if it finds something else later.
"""

from __future__ import annotations

from lakeingest.apply.choice.reloading import refuse_replacing
from lakeingest.apply.guards.unmatched_tables import refuse_left_out
from lakeingest.config.model import PipelineConfig
from lakeingest.errors import FencedError
from lakeingest.ledger.publication import Publication


def as_published(config: PipelineConfig, head: Publication) -> PipelineConfig:
    """Return the configuration for a lake: without the topics of retired tables, and with loads.

    Args:
        config: The configuration as loaded, or as an earlier publication completed it.
        head: The newest publication.
    """
    topics = tuple(sorted(table.topic for table in head.retired.values()))
    if topics == config.source.retired_topics and head.loads == config.loads:
        return config
    rewound = {load.topic: load.offsets for load in head.reloads.values()}
    source = config.source.model_copy(update={"retired_topics": topics, "rewound_topics": rewound})
    return config.model_copy(update={"source": source, "loads": head.loads})


def refuse_other_tables(head: Publication, config: PipelineConfig) -> None:
    """Stop where the lake's tables changed by a command after the run took its configuration.

    Args:
        head: The newest publication.
        config: Result of ``as_published``.

    Raises:
        FencedError: They did.
    """
    if as_published(config, head) is not config:
        message = (
            "A table was retired, or taken up again, since this run began, or is to be loaded "
            "anew; it stopped and published nothing more. Nothing is lost; run again."
        )
        raise FencedError(message)


def refuse_unsuited(config: PipelineConfig, head: Publication) -> None:
    """Stop where a pipeline cannot go on with what is published, as it is configured.

    Raises:
        ConfigError: See ``refuse_left_out`` and ``refuse_replacing``.
    """
    refuse_left_out(config, head.shown)
    refuse_replacing(config, head)
