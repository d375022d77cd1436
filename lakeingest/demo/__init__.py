"""The recorded run that ships with the package: real Debezium events, no broker needed.

Its ``pipeline.properties`` is at the same time the configuration example, so that the example is
executed by the tests and cannot rot.
"""

from __future__ import annotations

from pathlib import Path


def demo_folder() -> Path:
    """Return the folder of the packaged run: ``pipeline.properties``, manifest and topics.

    ``lakeingest.source.path`` and ``lakeingest.target.path`` of its configuration are relative
    placeholders; a caller sets the first to this folder and the second to a folder of its own.
    """
    return Path(__file__).resolve().parent / "pg-shop-small"
