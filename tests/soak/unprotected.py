"""``python -m tests.soak.unprotected NAME run CONFIG …``: lakeingest without one protection.

The real command line in its own process, so that a soak can put it in the place of the real one
and must then find violations (``lost-reply``: must find none). Names are those of ``SWITCHES``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lakeingest.cli.main import main as lakeingest
from tests.soak.switches import SWITCHES, switched_off

USAGE_EXIT_CODE = 2


def main(arguments: Sequence[str]) -> int:
    """Run the command, which ends the process; returns only if there is no such protection."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", ())
    if name not in SWITCHES:
        print(f"usage: tests.soak.unprotected {{{','.join(SWITCHES)}}} COMMAND", file=sys.stderr)
        return USAGE_EXIT_CODE
    sys.argv = ["lakeingest", *rest]
    with switched_off(name):
        return lakeingest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
