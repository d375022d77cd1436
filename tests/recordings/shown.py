"""What ``lakeingest show --output csv`` prints: in this process, and by the real command."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

from lakeingest.cli.output import OutputFormat
from lakeingest.cli.rows import write_rows
from lakeingest.cli.show import published_rows
from lakeingest.config import load_config
from lakeingest.reader import open_lake
from lakeingest.session import session
from tests.recordings.oracle import Rows, parse_csv

REPOSITORY = Path(__file__).resolve().parents[2]


class ShowFailedError(Exception):
    """``lakeingest show`` ended with another exit code than 0."""


class ShownLake:
    """The newest publication of a pipeline, of which the command would show several tables.

    The lake is opened once, and not for each table; the rest is the command's own code.
    """

    def __init__(self, configuration: Path) -> None:
        """Open the lake of a pipeline."""
        config = load_config(configuration)
        self._lake = open_lake(session(), config.target.path, config.metadata_prefix)
        self._snapshot = self._lake.snapshot()

    def rows(self, collection: str) -> Rows:
        """Return the rows that the command prints."""
        frame = published_rows(self._lake, self._snapshot, collection, metadata=False)
        # newline="" keeps a carriage return that is part of a value.
        printed = io.StringIO(newline="")
        with redirect_stdout(printed):
            write_rows(frame, OutputFormat.CSV, limit=None)
        return parse_csv(printed.getvalue())


def show_through_the_command(configuration: Path, collection: str) -> Rows:
    """Return the rows that ``python -m lakeingest.cli.main show`` prints in its own process."""
    command = [sys.executable, "-m", "lakeingest.cli.main", "show", str(configuration), collection]
    done = subprocess.run(
        [*command, "--output", "csv"], capture_output=True, cwd=REPOSITORY, check=False
    )
    if done.returncode != 0:
        message = f"show {collection} ended with {done.returncode}: {done.stderr.decode()[-2000:]}"
        raise ShowFailedError(message)
    return parse_csv(done.stdout.decode("utf-8"))
