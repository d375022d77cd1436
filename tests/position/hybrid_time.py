"""YugabyteDB's hybrid time as an exact value: parsed, compared and shown.

For tools, tests and people, like ``lsn.py``. Java's connector has no unsigned numbers, so a time
from the year 2041 on is written with a sign.
"""

from __future__ import annotations

from dataclasses import dataclass

_LOGICAL = 12
_MOST = 2**64


@dataclass(frozen=True, order=True)
class HybridTime:
    """Microseconds since 1970, and a counter within one; unsigned 64 bit.

    Attributes:
        value: The microseconds times 4096, plus the counter.
    """

    value: int

    def __post_init__(self) -> None:
        if not 0 <= self.value < _MOST:
            message = f"a hybrid time has 64 bits without a sign: {self.value}"
            raise ValueError(message)

    @classmethod
    def parse(cls, text: str) -> HybridTime:
        """Read a decimal number as the connector writes it: Java's long, with or without a sign.

        Raises:
            ValueError: It is none.
        """
        digits = text.removeprefix("-")
        # Not ``int`` alone: it takes blanks, underscores and the digits of any script.
        if not (digits.isascii() and digits.isdigit()):
            message = f"not a hybrid time: {text!r}"
            raise ValueError(message)
        number = int(text)
        return cls(number + _MOST if -_MOST // 2 <= number < 0 else number)

    @property
    def micros(self) -> int:
        """Microseconds since 1970."""
        return self.value >> _LOGICAL

    @property
    def counter(self) -> int:
        """Number of the event within its microsecond."""
        return self.value % (1 << _LOGICAL)

    def signed(self) -> int:
        """Return the number as Java's long has it."""
        return self.value - _MOST if self.value >= _MOST // 2 else self.value

    def __str__(self) -> str:
        return str(self.value)
