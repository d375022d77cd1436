"""An epoch: the stretch of a source's log in which its positions can be compared.

A source's numbers start over where another server takes over: another uuid numbers from 1 again, a
renamed binlog begins with file 1. Which epoch a transaction is in follows from its own coordinates
(domain and number), not from when or where it was read. So a transaction that is delivered again,
by a connector that went back over the seam, has the position that it had, and changes nothing. The
rejected way is an offset per partition from which the new epoch holds: topics keep no order between
one another, and what is delivered again behind that offset would look new.

MySQL counts the transactions of one server once for each tag (``uuid:n``, ``uuid:tag:n``), and
nothing in the numbers says how those stand to one another. The server writes them into one binlog,
so from the first tag on its epoch is *in file order*: positions are made of file and offset. An
epoch for each run of one tag is rejected: a server that uses a tag in every other transaction opens
one with each, and every row is compared with all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakeingest.position.encoding import COMPONENT_WIDTH, EPOCH_WIDTH

IN_FILE_ORDER = ":*"
"""End of a domain that is a server's whole binlog, whatever its transactions are counted by."""


@dataclass(frozen=True)
class Epoch:
    """Transactions of one domain with ``lowest <= number <= highest``.

    Attributes:
        number: Leads the positions of the epoch.
        domain: What numbers are compared within: server uuid, GTID domain, binlog base name.
        lowest: Lowest number that is in it.
        highest: Highest number that is in it; null while it is the newest epoch.
        end_offset: Offset on the transaction topic from which it holds.
    """

    number: int
    domain: str
    lowest: int = 0
    highest: int | None = None
    end_offset: int = 0

    @property
    def in_file_order(self) -> bool:
        """Whether its positions are places in a binlog, and not numbers of transactions.

        It holds all transactions of its server that no earlier epoch has.
        """
        return self.domain.endswith(IN_FILE_ORDER)

    def holds(self, domain: str, number: int) -> bool:
        """Tell whether a transaction is in it."""
        return (
            self.domain == domain
            and self.lowest <= number
            and (self.highest is None or number <= self.highest)
        )


def epoch_number(position: str) -> int:
    """Return the epoch of a position."""
    return int(position[:EPOCH_WIDTH], 16)


def leading_component(position: str) -> int:
    """Return the most significant component of a position, where components are numbers."""
    start = EPOCH_WIDTH + 1
    return int(position[start : start + COMPONENT_WIDTH], 16)


def snapshot_floor(epoch: int) -> str:
    """Return what lies above every position of earlier epochs and below the epoch's snapshot."""
    return f"{epoch:0{EPOCH_WIDTH}X}0"
