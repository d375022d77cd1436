"""``lakeingest config-reference``: every setting of the installed version, as Markdown."""

from __future__ import annotations

from lakeingest.cli.output import write_lines


def config_reference() -> None:
    """Print the reference of all settings as Markdown."""
    from lakeingest.config.reference import reference

    write_lines([reference()])
