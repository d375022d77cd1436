"""Read a ``.properties`` file, ``--set`` overrides, and references to the environment and to files.

The language is Java's (``java_lines.py``); the files of Hudi's streamer are read as Hudi reads them
(``streamer/hudi_lines.py``).

A reference (``${env:NAME}``, ``${file:/path}``) is resolved only when its value is used. Rejected:
to resolve it while reading the file. A key without effect in lakeingest would then stop the run
because of an environment variable that only the old pipeline needed. A value that held a reference
is marked, and no message shows the value or the referenced text. Any other ``${`` is an error:
otherwise another tool's reference, or a broken one, would count as the value itself (a folder named
``${HOME}``, a password that no broker knows).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

import javaproperties

from lakeingest.config.file.java_lines import Dialect, java_lines
from lakeingest.config.redaction import REFERENCE, is_secret_key, remember
from lakeingest.errors import ConfigError, UsageError
from lakeingest.folders import without_file_scheme

_BEGIN = "${"
_KINDS = "${env:NAME} and ${file:/path}"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


@dataclass(frozen=True)
class Entry:
    """A user's key with its text, before references are resolved.

    Attributes:
        key: The key.
        text: The text with unresolved references. ``repr`` omits it: it may be a literal password.
        origin: The entry's place in the file or on the command line, for messages.
        referenced: Whether the text is already the text of a reference.
    """

    key: str
    text: str = field(repr=False)
    origin: str
    referenced: bool = False


@dataclass(frozen=True)
class Value:
    """A resolved value.

    Attributes:
        key: The user's key, for messages.
        text: The value without the white space around it.
        referenced: Whether any part of it came from ``${env:}`` or ``${file:}``.
    """

    key: str
    text: str = field(repr=False)
    referenced: bool = False


@dataclass(frozen=True)
class Properties:
    """All entries by key, in the order of the file; an override replaces the entry of its key.

    Attributes:
        origin: The file or mapping, for messages.
        entries: Entry per key.
        warnings: Harmless oddities, such as a duplicate key.
        problems: Errors that stop the load; ``load.py`` reports them together with all others.
    """

    origin: str
    entries: Mapping[str, Entry]
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def value(self, key: str) -> Value:
        """Return the value of ``key`` with its references resolved; remember it if it is a secret.

        Raises:
            ConfigError: A reference is malformed, or its target does not exist. The message names
                the key and the target.
        """
        value = _resolve(self.entries[key])
        if is_secret_key(key):
            remember(value.text)
        return value

    def overridden(self, overrides: Sequence[str], option: str = "--set") -> Properties:
        """Return these properties, overridden by ``key=value`` texts.

        Args:
            overrides: The texts.
            option: The command-line option that holds them, for messages.

        Raises:
            UsageError: An override has no ``=`` or no key.
        """
        entries = dict(self.entries)
        for number, override in enumerate(overrides, start=1):
            key, separator, text = override.partition("=")
            if not separator or not key.strip():
                # Do not quote the text: it may be a secret whose key the user forgot.
                message = f"{option} number {number} is not of the form key=value"
                raise UsageError(message)
            entries[key.strip()] = Entry(key.strip(), text, option)
        return replace(self, entries=entries)


def from_mapping(mapping: Mapping[str, str]) -> Properties:
    """Return a mapping as properties, for a configuration that a notebook builds.

    A value may be a text, a number or a path.

    Raises:
        ConfigError: A key is no text, or its value has another type; the message names each.
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
    # True is an int, but no setting has the value "True", as Python would write it.
    return isinstance(value, str | int | float | PurePath) and not isinstance(value, bool)


def read_properties(path: str | Path, dialect: Dialect = java_lines) -> Properties:
    """Read a ``.properties`` file in UTF-8.

    Args:
        path: The file.
        dialect: The language of the file and of the files that it includes.

    Try, in this order: the path itself (relative to the working directory), the path with
    ``.properties`` appended, and ``pipeline.properties`` in a folder at the path. A key ``include``
    in the file names another file, relative to it, whose entries stand in the place of the key, as
    in Hudi's files.

    Raises:
        ConfigError: None of these is a file (the message lists them), the file cannot be read, or
            it includes itself.
    """
    return _read(_find(_local_path(path)), str(path), (), dialect)


def _local_path(path: str | Path) -> Path:
    """Return a local path; the text may be a ``file:`` URI, and no other."""
    text = without_file_scheme(str(path))
    if _SCHEME.match(text):
        message = f"cannot read {path}: a file of settings must lie on this machine, copy it here"
        raise ConfigError(message)
    return Path(text)


def _find(path: Path, by: str = "") -> Path:
    """Return the file that a path means.

    Args:
        path: See ``read_properties``.
        by: What names the path, as the beginning of a message.

    Raises:
        ConfigError: There is no such file.
    """
    places = [path]
    if path.suffix != ".properties":
        places += [path.with_name(f"{path.name}.properties"), path / "pipeline.properties"]
    for place in places:
        if place.is_file():
            return place
    paths = "".join(f"\n  {place.absolute()}" for place in places)
    message = f"{by}no configuration file {path}; looked at:{paths}"
    raise ConfigError(message)


def _read(file: Path, origin: str, including: tuple[Path, ...], dialect: Dialect) -> Properties:
    if file.absolute() in including:
        message = f"{file} includes itself, directly or through a file that it includes"
        raise ConfigError(message)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{file} is not in UTF-8 (byte {error.start}): save it as UTF-8"
        raise ConfigError(message) from None
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}"
        raise ConfigError(message) from error
    entries: dict[str, Entry] = {}
    numbers: dict[str, int] = {}
    warnings: list[str] = []
    lines, problems = dialect(text, origin)
    for line in lines:
        key = line.key
        if key == "include":
            path = file.parent / _local_path(line.text.strip())
            place = _find(path, f"{origin}, line {line.number}: include: ")
            included = _read(place, str(path), (*including, file.absolute()), dialect)
            entries |= included.entries
            warnings += included.warnings
            problems += included.problems
            continue
        if key in numbers:
            warnings.append(
                f"{origin}: {key} is there twice, in lines {numbers[key]} and {line.number}; "
                f"the last one counts"
            )
        entries[key] = Entry(key, line.text, f"line {line.number}")
        numbers[key] = line.number
    return Properties(origin, entries, tuple(warnings), tuple(problems))


def _resolve(entry: Entry) -> Value:
    if entry.referenced:  # Already resolved: do not look for references in the secret's text.
        return Value(entry.key, entry.text.strip(), referenced=True)
    if _BEGIN in REFERENCE.sub("", entry.text):
        message = (
            f"{entry.key} ({entry.origin}): {_BEGIN} begins a reference, and this is not one; "
            f"there are {_KINDS}. A value that itself holds {_BEGIN} can come from either"
        )
        raise ConfigError(message)

    def replacement(match: re.Match[str]) -> str:
        text = _referenced_text(entry, match[1], match[2].strip())
        remember(text)
        return text

    text, count = REFERENCE.subn(replacement, entry.text)
    return Value(entry.key, text.strip(), referenced=count > 0)


def _referenced_text(entry: Entry, kind: str, name: str) -> str:
    message = f"${{{kind}:…}} is unknown; there are {_KINDS}"
    if kind == "env":
        if name in os.environ:
            return os.environ[name].strip()
        message = f"the environment variable {name} is not set"
    if kind == "file":
        try:
            return Path(name).read_text(encoding="utf-8").strip()
        except OSError as error:
            message = f"cannot read {Path(name).absolute()}: {error.strerror}"
        except UnicodeDecodeError:
            message = f"{Path(name).absolute()} is not text in UTF-8"
    problem = f"{entry.key} ({entry.origin}): {message}"
    raise ConfigError(problem)


def property_line(key: str, value: str) -> str:
    r"""Return an entry as Java reads it: names may have blanks, colons, backslashes and line ends.

    Java's own writer also escapes the colons of values, and reads them without that as well.
    """
    escaped = javaproperties.join_key_value(key, "", ensure_ascii=False)
    return escaped + value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
