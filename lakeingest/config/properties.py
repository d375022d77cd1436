"""A ``.properties`` file, ``--set`` overrides, and references to the environment and to files.

The language is Java's; the files of Hudi's streamer are read as Hudi reads them
(``property_lines.py``).

References (``${env:NAME}``, ``${file:/path}``) are resolved only when a value is used. Resolving
them while reading is rejected: a key that has no effect here would then stop the run because of an
environment variable that only the old pipeline needed. A value that held a reference is marked, and
neither it nor the text behind the reference is ever shown. What else begins with ``${`` is an
error: another tool's reference, or a broken one, would be taken for the value itself (a folder of
the name ``${HOME}``, a password that no broker knows).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from lakeingest.config.property_lines import Dialect, java_lines
from lakeingest.config.redaction import remember
from lakeingest.errors import ConfigError, UsageError

_REFERENCE = re.compile(r"\$\{([A-Za-z]+):([^}]*)\}")
_BEGIN = "${"
_KINDS = "${env:NAME} and ${file:/path}"
_LOCAL = re.compile(r"^file:/+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_INCLUDE = "include"
_IN_A_FOLDER = "pipeline.properties"


@dataclass(frozen=True)
class Entry:
    """A key as the user wrote it, with its text before references are resolved.

    Attributes:
        key: The key.
        text: The text, references unresolved. Kept out of ``repr``: it may be a literal password.
        origin: Where it was written, for messages.
        referenced: True if the text is already that of a reference.
    """

    key: str
    text: str = field(repr=False)
    origin: str
    referenced: bool = False


@dataclass(frozen=True)
class Value:
    """A resolved value.

    Attributes:
        key: The key the user wrote, for messages.
        text: The value without the white space around it.
        referenced: True if any part of it came from ``${env:}`` or ``${file:}``.
    """

    key: str
    text: str = field(repr=False)
    referenced: bool = False


@dataclass(frozen=True)
class Properties:
    """All entries by key, in the order of the file; an override replaces the entry of its key.

    Attributes:
        origin: What was read, for messages.
        entries: Entry per key.
        warnings: What was odd but harmless, such as a key that is there twice.
        problems: What stops the load, together with whatever else is wrong.
    """

    origin: str
    entries: Mapping[str, Entry]
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def value(self, key: str) -> Value:
        """Return the value of ``key`` with its references resolved.

        Raises:
            ConfigError: A reference points to nothing, or is none; names the key and every place
            looked at.
        """
        entry = self.entries[key]
        return _resolve(entry)

    def overridden(self, overrides: Sequence[str], option: str = "--set") -> Properties:
        """Return these properties with ``key=value`` texts laid over them.

        Args:
            overrides: The texts.
            option: The option that gave them, for messages.

        Raises:
            UsageError: An override has no ``=`` or no key.
        """
        entries = dict(self.entries)
        for number, override in enumerate(overrides, start=1):
            key, separator, text = override.partition("=")
            if not separator or not key.strip():
                # The text is not repeated: it may be the value of a secret whose key was forgotten.
                message = f"{option} number {number} is not of the form key=value"
                raise UsageError(message)
            entries[key.strip()] = Entry(key.strip(), text, option)
        return replace(self, entries=entries)


def from_mapping(mapping: Mapping[str, str]) -> Properties:
    """Return a mapping as properties, for callers that hold their configuration in a notebook.

    Numbers and paths are taken as well as texts.

    Raises:
        ConfigError: A key is no text, or its value is none of these; the message names each.
    """
    problems = [
        f"{key}: its value is of type {type(value).__name__}; write a text"
        if isinstance(key, str)
        else f"the key {key!r} is no text"
        for key, value in mapping.items()
        if not isinstance(key, str) or not _is_text(value)
    ]
    if problems:
        message = f"the given mapping: {'; '.join(problems)}"
        raise ConfigError(message)
    entries = {key: Entry(key, str(text), "the mapping") for key, text in mapping.items()}
    return Properties("the given mapping", entries)


def _is_text(value: object) -> bool:
    # True is an int, but written as Python writes it, it is no setting's value.
    return isinstance(value, str | int | float | PurePath) and not isinstance(value, bool)


def read_properties(path: str | Path, dialect: Dialect = java_lines) -> Properties:
    """Read a ``.properties`` file in UTF-8.

    Args:
        path: The file.
        dialect: The language that it and what it includes are written in.

    Looked at, in this order: the path as it is (relative to the working directory), the path with
    ``.properties`` appended, and ``pipeline.properties`` in the folder of that name. A key
    ``include`` in it names another file, beside it, that is read in its place, as Hudi's files do.

    Raises:
        ConfigError: None of them is a file (the message lists them), it cannot be read, or it
            includes itself.
    """
    return _read(_find(local_path(path)), str(path), (), dialect)


def local_path(path: str | Path) -> Path:
    """Return a path of this machine, which may be written as a ``file:`` URI.

    Raises:
        ConfigError: It is a URI of another kind.
    """
    text = _LOCAL.sub("/", str(path))
    if _SCHEME.match(text):
        message = f"cannot read {path}: a file of settings must lie on this machine, copy it here"
        raise ConfigError(message)
    return Path(text)


def _read(found: Path, origin: str, including: tuple[Path, ...], dialect: Dialect) -> Properties:
    if found.absolute() in including:
        message = f"{found} includes itself, by itself or by what it includes"
        raise ConfigError(message)
    try:
        with found.open(encoding="utf-8-sig") as stream:
            return _parse(stream.read(), origin, (*including, found.absolute()), dialect)
    except UnicodeDecodeError as error:
        message = f"{found} is not in UTF-8 (byte {error.start}): save it as UTF-8"
        raise ConfigError(message) from None
    except OSError as error:
        message = f"cannot read {found}: {error.strerror}"
        raise ConfigError(message) from error


def _find(path: Path) -> Path:
    places = [path, path.with_name(f"{path.name}.properties"), path / _IN_A_FOLDER]
    if path.suffix == ".properties":
        places = [path]
    for place in places:
        if place.is_file():
            return place
    looked = "".join(f"\n  {place.absolute()}" for place in places)
    message = f"no configuration file {path}; looked at:{looked}"
    raise ConfigError(message)


def _parse(text: str, origin: str, including: tuple[Path, ...], dialect: Dialect) -> Properties:
    entries: dict[str, Entry] = {}
    lines: dict[str, int] = {}
    warnings: list[str] = []
    found, problems = dialect(text, origin)
    for line in found:
        key = line.key
        if key == _INCLUDE:
            included = _included(line.text.strip(), including, dialect)
            entries |= included.entries
            warnings += included.warnings
            problems += included.problems
            continue
        if key in lines:
            warnings.append(
                f"{origin}: {key} is there twice, in lines {lines[key]} and {line.number}; "
                f"the last one counts"
            )
        entries[key] = Entry(key, line.text, f"line {line.number}")
        lines[key] = line.number
    return Properties(origin, entries, tuple(warnings), tuple(problems))


def _included(path: str, including: tuple[Path, ...], dialect: Dialect) -> Properties:
    other = including[-1].parent / local_path(path)
    return _read(_find(other), str(other), including, dialect)


def _resolve(entry: Entry) -> Value:
    if entry.referenced:  # Resolved already; what a secret holds is no reference.
        return Value(entry.key, entry.text.strip(), referenced=True)
    if _BEGIN in _REFERENCE.sub("", entry.text):
        message = (
            f"{entry.key} ({entry.origin}): {_BEGIN} begins a reference, and this is none; there "
            f"are {_KINDS}. A value that holds {_BEGIN} itself can come by either"
        )
        raise ConfigError(message)
    referenced = False

    def replacement(match: re.Match[str]) -> str:
        nonlocal referenced
        referenced = True
        text = _referenced_text(entry, match[1], match[2].strip())
        remember(text)
        return text

    text = _REFERENCE.sub(replacement, entry.text).strip()
    return Value(entry.key, text, referenced)


def _referenced_text(entry: Entry, kind: str, name: str) -> str:
    where = f"{entry.key} ({entry.origin})"
    if kind == "env":
        text = os.environ.get(name)
        if text is None:
            message = f"{where}: the environment variable {name} is not set"
            raise ConfigError(message)
        return text.strip()
    if kind == "file":
        try:
            return Path(name).read_text(encoding="utf-8").strip()
        except OSError as error:
            message = f"{where}: cannot read {Path(name).absolute()}: {error.strerror}"
            raise ConfigError(message) from None
        except UnicodeDecodeError:
            message = f"{where}: {Path(name).absolute()} is not text in UTF-8"
            raise ConfigError(message) from None
    message = f"{where}: ${{{kind}:…}} is unknown; there are {_KINDS}"
    raise ConfigError(message)
