"""Log sequence numbers and SCNs as exact values: parsed, compared and shown as their database does.

For tools, tests and people. The stages compare encoded columns (``encoding.py``), and these types
are what that order is tested against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

_WORD = 32
_MOST = 2**64


@dataclass(frozen=True, order=True)
class Lsn:
    """A place in PostgreSQL's log: octets since its beginning, unsigned 64 bit."""

    value: int

    def __post_init__(self) -> None:
        _refuse_beyond(self.value, "LSN")

    @classmethod
    def parse(cls, text: str) -> Lsn:
        """Read ``16/B374D848`` or the decimal number that Debezium writes.

        Raises:
            ValueError: It is neither.
        """
        high, slash, low = text.partition("/")
        if not slash:
            return cls(_decimal(text, "LSN"))
        return cls(_hexadecimal(high, 8) << _WORD | _hexadecimal(low, 8))

    def __str__(self) -> str:
        return f"{self.value >> _WORD:X}/{self.value % (1 << _WORD):X}"


@dataclass(frozen=True, order=True)
class BlockLsn:
    """A place in the log of SQL Server (10 octets) or Db2 (16): file, block and slot, hexadecimal.

    Attributes:
        file: First 4 octets.
        block: Next 4.
        slot: The rest: 2 octets on SQL Server, 8 on Db2.
    """

    file: int
    block: int
    slot: int

    WIDTHS: ClassVar[tuple[tuple[int, int, int], ...]] = ((8, 8, 4), (8, 8, 16))

    @classmethod
    def parse(cls, text: str) -> BlockLsn:
        """Read ``00000027:00000ac0:0002`` or, of Db2, ``8:8:16`` digits.

        Raises:
            ValueError: Another form.
        """
        parts = text.split(":")
        if tuple(map(len, parts)) not in cls.WIDTHS:
            message = f"not an LSN of SQL Server or Db2: {text!r}"
            raise ValueError(message)
        file, block, slot = (_hexadecimal(part, len(part)) for part in parts)
        return cls(file, block, slot)

    def __str__(self) -> str:
        width = 4 if self.slot < 1 << 16 else 16
        return f"{self.file:08x}:{self.block:08x}:{self.slot:0{width}x}"


@dataclass(frozen=True, order=True)
class Scn:
    """Oracle's system change number: unsigned, and wider than 48 bits since 12.2."""

    value: int

    def __post_init__(self) -> None:
        _refuse_beyond(self.value, "SCN")

    @classmethod
    def parse(cls, text: str) -> Scn:
        """Read a decimal number, as Debezium writes it.

        Raises:
            ValueError: It is none.
        """
        return cls(_decimal(text, "SCN"))

    def __str__(self) -> str:
        return str(self.value)


def _refuse_beyond(value: int, what: str) -> None:
    if not 0 <= value < _MOST:
        message = f"an {what} has 64 bits without a sign: {value}"
        raise ValueError(message)


def _decimal(text: str, what: str) -> int:
    # Not ``int`` alone: it takes signs, blanks, underscores and the digits of any script.
    if not (text.isascii() and text.isdigit()):
        message = f"not an {what}: {text!r}"
        raise ValueError(message)
    return int(text)


def _hexadecimal(text: str, most: int) -> int:
    if not 0 < len(text) <= most or set(text.lower()) - set("0123456789abcdef"):
        message = f"not {most} hexadecimal digits: {text!r}"
        raise ValueError(message)
    return int(text, 16)
