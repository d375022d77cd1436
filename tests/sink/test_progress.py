"""What the head of a table says about whose it is."""

from __future__ import annotations

import pytest

from lakeingest.errors import ConfigError
from lakeingest.sink.progress import owned


@pytest.mark.parametrize(("kind", "told"), [("Hudi", True), ("Delta", False)])
def test_who_meets_a_table_of_hudi_streamers_is_told_how_to_go_on_with_it(
    kind: str, told: bool
) -> None:
    with pytest.raises(ConfigError, match="belongs to no lakeingest pipeline") as error:
        owned(None, "orders", "s3://lake/orders", kind)
    assert ("lakeingest.table.<table>.adopt=hudi-streamer" in str(error.value)) is told
