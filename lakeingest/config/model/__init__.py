"""Define the typed configuration of a pipeline: every setting, its key, default, and reason.

These models are the only source of truth about settings. Each field names its key in a file
(``validation_alias``), so a setting cannot exist in one place and be missing in another: the table
of keys (``keys.py``), the checks (``load.py``) and the printed reference (``reference.py``) read
the fields. The rejected way is a dictionary of strings for all stages: each stage would parse its
own settings, and nobody would notice a misspelt key. Also rejected: to derive a key from the name
of its field; the keys in users' files must stay if a field is renamed.

Models are frozen: a run must end with the settings with which it started (``fields.py``).
"""

from lakeingest.config.model.pipeline import PipelineConfig, TargetConfig
from lakeingest.config.model.source import Connector, SourceConfig
from lakeingest.config.model.table import TableConfig, TooLarge

__all__ = [
    "Connector",
    "PipelineConfig",
    "SourceConfig",
    "TableConfig",
    "TargetConfig",
    "TooLarge",
]
