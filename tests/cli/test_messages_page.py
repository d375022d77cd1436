from __future__ import annotations

from lakeingest.cli.guide import read_page
from tests.cli.test_wrong_ways import WRONG, row_of


def test_the_guide_lists_every_way_to_get_it_wrong_that_is_tested() -> None:
    """Renew its rows by ``python -m tests.cli.test_wrong_ways --guide``."""
    rows = [line for line in read_page("messages").text.splitlines() if line.startswith("| ")]
    assert rows[1:] == [row_of(*wrong) for wrong in WRONG.items()]
