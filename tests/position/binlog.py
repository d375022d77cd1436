"""Places in a binlog: file and offset, GTID, and sets of GTIDs.

GTIDs are ordered within what counts them, no further: two servers each have a number 5, and nothing
in the numbers says which came first. Sets of them are partially ordered by containment. Answering
"neither" with a number (as comparators with -1, 0 and 1 must) has cost other tools data; here it
raises. MariaDB counts per domain, across its servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import total_ordering

from tests.position.incomparable import IncomparableError


@total_ordering
@dataclass(frozen=True)
class BinlogPosition:
    """A place in the binlog of one server.

    Attributes:
        base: Name of its files, without the number.
        file: Number of the file: a number, so that 1000000 comes after 999999.
        pos: Offset of the event in the file.
        row: Number of the row in the event.
    """

    base: str
    file: int
    pos: int
    row: int = 0

    @classmethod
    def parse(cls, text: str) -> BinlogPosition:
        """Read ``mysql-bin.000003:484``, or with the row behind another colon.

        Raises:
            ValueError: Another form.
        """
        name, *numbers = text.split(":")
        base, dot, file = name.rpartition(".")
        known = bool(dot and base) and len(numbers) in (1, 2)
        if not known or not all(map(_is_number, (file, *numbers))):
            message = f"not a place in a binlog: {text!r}"
            raise ValueError(message)
        return cls(base, int(file), *map(int, numbers))

    def __lt__(self, other: BinlogPosition) -> bool:
        if self.base != other.base:
            message = f"binlogs {self.base} and {other.base} have no order"
            raise IncomparableError(message)
        return (self.file, self.pos, self.row) < (other.file, other.pos, other.row)

    def __str__(self) -> str:
        row = f":{self.row}" if self.row else ""
        return f"{self.base}.{self.file:06d}:{self.pos}{row}"


@total_ordering
@dataclass(frozen=True)
class Gtid:
    """One transaction: ``uuid:n`` or ``uuid:tag:n`` (MySQL), ``domain-server-n`` (MariaDB).

    Attributes:
        domain: What counts it: uuid, uuid and tag, or MariaDB's domain.
        number: Its number there.
        server: MariaDB's server that committed it first; null on MySQL.
    """

    domain: str
    number: int
    server: int | None = None

    @classmethod
    def parse(cls, text: str) -> Gtid:
        """Read a GTID.

        Raises:
            ValueError: Another form.
        """
        if ":" in text:
            domain, _, number = text.rpartition(":")
            if domain and _is_number(number):
                return cls(_domain(domain), int(number))
        parts = text.split("-")
        if len(parts) == 3 and all(map(_is_number, parts)):
            return cls(parts[0], int(parts[2]), int(parts[1]))
        message = f"not a GTID: {text!r}"
        raise ValueError(message)

    def __lt__(self, other: Gtid) -> bool:
        if self.domain != other.domain:
            message = f"GTIDs of {self.domain} and {other.domain} have no order"
            raise IncomparableError(message)
        if self.number == other.number and self.server != other.server:
            message = f"two servers have the same number: {self} and {other}"
            raise IncomparableError(message)
        return self.number < other.number

    def __str__(self) -> str:
        if self.server is not None:
            return f"{self.domain}-{self.server}-{self.number}"
        return f"{self.domain}:{self.number}"


Interval = tuple[int, int]
"""First and last number, both in it."""


@dataclass(frozen=True)
class GtidSet:
    """Transactions of MySQL servers, ``uuid:1-5:7,uuid2:3``, with tags ``uuid:1-3:tag:1-9``.

    ``<=`` is containment. Of two sets neither of which contains the other, both have transactions
    that the other lacks: comparing them raises. ``issubset`` answers any two.

    Attributes:
        intervals: Domain to intervals, ascending and apart; no domain is empty.
    """

    intervals: Mapping[str, tuple[Interval, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, numbers: Mapping[str, Iterable[Interval]]) -> GtidSet:
        """Make a set of any intervals; those that touch are joined."""
        joined = {domain: _joined(found) for domain, found in sorted(numbers.items())}
        return cls({domain: found for domain, found in joined.items() if found})

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        """Read a set as MySQL writes it; blanks and line ends do not matter.

        Raises:
            ValueError: Another form.
        """
        numbers: dict[str, list[Interval]] = {}
        for part in "".join(text.split()).split(","):
            if not part:
                continue
            uuid, *items = part.split(":")
            domain = _domain(uuid)
            for item in items:
                first, dash, last = item.partition("-")
                if _is_number(first) and (not dash or _is_number(last)):
                    interval = (int(first), int(last) if dash else int(first))
                    numbers.setdefault(domain, []).append(interval)
                elif not dash and item:
                    domain = _domain(f"{uuid}:{item}")
                else:
                    message = f"not a set of GTIDs: {text!r}"
                    raise ValueError(message)
        return cls.of(numbers)

    def __hash__(self) -> int:
        return hash(tuple(self.intervals.items()))

    def __contains__(self, gtid: Gtid) -> bool:
        found = self.intervals.get(gtid.domain, ())
        return any(first <= gtid.number <= last for first, last in found)

    def issubset(self, other: GtidSet) -> bool:
        """Tell whether every transaction of this set is in the other one."""
        return all(
            any(low <= first and last <= high for low, high in other.intervals.get(domain, ()))
            for domain, found in self.intervals.items()
            for first, last in found
        )

    def union(self, other: GtidSet) -> GtidSet:
        """Return the transactions of both."""
        domains = {*self.intervals, *other.intervals}
        return GtidSet.of(
            {
                domain: [*self.intervals.get(domain, ()), *other.intervals.get(domain, ())]
                for domain in domains
            }
        )

    def __le__(self, other: GtidSet) -> bool:
        if self.issubset(other):
            return True
        if other.issubset(self):
            return False
        message = "each of the two sets of GTIDs has transactions that the other lacks"
        raise IncomparableError(message)

    def __lt__(self, other: GtidSet) -> bool:
        return self <= other and self != other

    def __ge__(self, other: GtidSet) -> bool:
        return other <= self

    def __gt__(self, other: GtidSet) -> bool:
        return other < self

    def __str__(self) -> str:
        return ",".join(
            ":".join((domain, *(_shown(*interval) for interval in found)))
            for domain, found in self.intervals.items()
        )


def _shown(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _joined(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    joined: list[Interval] = []
    for first, last in sorted(intervals):
        if last < first or first < 1:
            message = f"not an interval of transaction numbers: {first}-{last}"
            raise ValueError(message)
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def _domain(text: str) -> str:
    """Return uuid and tag as MySQL compares them: in lower case."""
    return text.lower()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
