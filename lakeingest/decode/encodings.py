"""Settings for decoding, and the forms of the placeholder for a value that is not sent."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Encodings:
    """Settings for decoding: how the connector writes what the wire does not show, and policies.

    The policies are here because a table may have its own, and they go the same way as the
    settings.

    Attributes:
        decimal: ``decimal.handling.mode``: precise, string or double.
        binary: ``binary.handling.mode``: bytes, base64, base64-url-safe or hex.
        placeholder: ``unavailable.value.placeholder``.
        time: ``time.precision.mode``, all of Debezium's.
        decimal_format: ``decimal.format`` of JsonConverter: BASE64 or NUMERIC.
        infinite: Policy for times that no lake can store; see ``logical_type.Site``.
        ambiguous: Meaning of a NULL that may stand for an unchanged value: null, keep or fail.
    """

    decimal: str = "precise"
    binary: str = "bytes"
    placeholder: str = "__debezium_unavailable_value"
    time: str = "adaptive"
    decimal_format: str = "BASE64"
    infinite: str = "fail"
    ambiguous: str = "null"

    def placeholder_bytes(self) -> bytes:
        """Return the placeholder's octets (``hex:`` prefix: raw octets)."""
        if self.placeholder.startswith("hex:"):
            return bytes.fromhex(self.placeholder.removeprefix("hex:"))
        return self.placeholder.encode()

    def json_marks(self) -> tuple[str, ...]:
        """Return the marks: a JSON record with an unavailable value contains one of these texts.

        The variants of the placeholder per declared type are in Debezium's
        ``PostgresValueConverter``; for the types that it sends as NULL, see the README's table of
        limits.
        """
        raw = self.placeholder_bytes()
        text = _json_text(raw.decode(errors="replace"))
        codes = ",".join(str(code) for code in self.codes())
        marks = (
            text,
            # An hstore is JSON inside JSON.
            _json_text(text),
            base64.b64encode(raw).decode(),
            f"[{codes}]",
            self.uuid_mark(),
        )
        return tuple(dict.fromkeys(marks))

    def avro_marks(self) -> tuple[bytes, ...]:
        """Return the marks: an Avro record with an unavailable value contains one of these octets.

        Avro has text and bytea as they are. It has the byte codes of an integer array as zigzag
        numbers: those of six bits take one octet, the rest two.
        """
        raw = self.placeholder_bytes()
        text = raw.decode(errors="replace")
        zigzag = [2 * code if code >= 0 else -2 * code - 1 for code in self.codes()]
        codes = [bytes([n] if n < 128 else [n & 0x7F | 0x80, n >> 7]) for n in zigzag]
        marks = (
            raw,
            # Debezium replaced octets that are not text when it made text of them.
            text.encode(),
            _json_text(text).encode(),
            b"".join(codes),
            # A nullable element follows the number of its branch: 1, written as 2.
            b"\x02".join(codes),
            self.uuid_mark().encode(),
        )
        return tuple(dict.fromkeys(marks))

    def codes(self) -> tuple[int, ...]:
        """Return the placeholder's octets as Java's signed bytes, as integer arrays have them."""
        return tuple(code - 256 if code > 127 else code for code in self.placeholder_bytes())

    def text_marks(self) -> tuple[str, ...]:
        """Return the forms in a text column: as text, as bytea's base64, as an hstore's JSON."""
        raw = self.placeholder_bytes()
        encoded = base64.b64encode(raw).decode()
        return raw.decode(errors="replace"), encoded, self.hstore_mark()

    def hstore_mark(self) -> str:
        """Return the JSON text of an unavailable hstore in mode ``json``."""
        text = _json_text(self.placeholder_bytes().decode(errors="replace"))
        return f'{{"{text}":"{text}"}}'

    def uuid_mark(self) -> str:
        """Return the name-based UUID (version 3, no namespace) of an unavailable ``uuid[]``."""
        digest = bytearray(hashlib.md5(self.placeholder_bytes(), usedforsecurity=False).digest())
        digest[6] = digest[6] & 0x0F | 0x30
        digest[8] = digest[8] & 0x3F | 0x80
        text = digest.hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _json_text(text: str) -> str:
    """Return the text as Jackson writes it inside quotes (control characters in upper case)."""
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    return re.sub(r"\\u00(..)", lambda match: match[0][:4] + match[1].upper(), escaped)
