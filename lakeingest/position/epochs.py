"""An epoch: the stretch of a source's log in which its positions can be compared.

A source's numbers start over when another server takes over: another uuid counts from 1 again, a
renamed binlog begins with file 1. A transaction's own coordinates (domain and number) give its
epoch, not when or where it was read. So a redelivered transaction, from a connector that went back
across the start of an epoch, has the same position as before, and changes nothing. Rejected: an
offset per partition from which the new epoch holds. Topics have no order between one another, and a
redelivery behind that offset would look new.

MySQL counts the transactions of one server separately for each tag (``uuid:n``, ``uuid:tag:n``),
and the numbers do not say how two tags compare. The server writes all of them into one binlog, so
from the first tag on, its epoch is *in file order*: file and offset make the positions. Rejected:
an epoch for each run of one tag. A server that uses a tag in every other transaction opens an epoch
with each, and every row is compared with all epochs.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakeingest.position.encoding import COMPONENT_WIDTH, EPOCH_WIDTH

IN_FILE_ORDER = ":*"
"""End of a domain that is a server's whole binlog, with or without tags."""


@dataclass(frozen=True)
class Epoch:
    """Transactions of one domain with ``lowest <= number <= highest``.

    Attributes:
        number: Number of the epoch; its positions begin with it.
        domain: The scope in which numbers can be compared: server uuid, GTID domain, binlog base
            name.
        lowest: Lowest transaction number in the epoch.
        highest: Highest transaction number in the epoch; None while it is the newest epoch.
        end_offset: Offset on the transaction topic from which the epoch holds.
    """

    number: int
    domain: str
    lowest: int = 0
    highest: int | None = None
    end_offset: int = 0

    @property
    def in_file_order(self) -> bool:
        """Return whether its positions are places in a binlog, not numbers of transactions.

        Such an epoch holds all transactions of its server that no earlier epoch holds.
        """
        return self.domain.endswith(IN_FILE_ORDER)


def epoch_number(position: str) -> int:
    """Return the epoch of a position."""
    return int(position[:EPOCH_WIDTH], 16)


def leading_component(position: str) -> int:
    """Return the most significant component of a position, where components are numbers."""
    start = EPOCH_WIDTH + 1
    return int(position[start : start + COMPONENT_WIDTH], 16)


def snapshot_floor(epoch: int) -> str:
    """Return a bound above all positions of earlier epochs, below the epoch's snapshot."""
    return f"{epoch:0{EPOCH_WIDTH}X}0"
