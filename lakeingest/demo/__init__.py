"""Locate the recorded run in the package: real Debezium events that need no broker.

Its ``pipeline.properties`` is also the configuration example. So the tests run the example, and it
cannot become outdated.
"""

from __future__ import annotations

from pathlib import Path


def demo_folder() -> Path:
    """Return the folder of the recorded run: ``pipeline.properties``, manifest and topics.

    ``lakeingest.source.path`` and ``lakeingest.target.path`` of its configuration are relative
    placeholders. A caller sets the first to this folder and the second to a folder of its own.
    """
    return Path(__file__).resolve().parent / "pg-shop-small"
