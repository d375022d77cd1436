"""Load the configuration: turn a ``.properties`` file into a frozen, typed ``PipelineConfig``.

``load_config`` is the only entry; nothing else in lakeingest reads files of settings or the
environment. ``model.py`` defines the settings, ``keys.py`` their names.
"""

from lakeingest.config.load import load_config
from lakeingest.config.model import PipelineConfig, SourceConfig, TableConfig, TargetConfig

__all__ = ["PipelineConfig", "SourceConfig", "TableConfig", "TargetConfig", "load_config"]
