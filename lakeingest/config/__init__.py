"""Configuration: a ``.properties`` file becomes a frozen, typed ``PipelineConfig``.

``load_config`` is the only way in; nothing else in lakeingest reads files of settings or the
environment. ``model.py`` says what settings there are, ``keys.py`` what they are called.
"""

from lakeingest.config.load import load_config
from lakeingest.config.model import PipelineConfig, SourceConfig, TargetConfig
from lakeingest.config.table import TableConfig

__all__ = ["PipelineConfig", "SourceConfig", "TableConfig", "TargetConfig", "load_config"]
