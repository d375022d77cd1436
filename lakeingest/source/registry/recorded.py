"""Read the schemas of a recorded folder from ``registry.json``, beside its topics.

The file is an object that maps a schema id to ``schema`` (as JSON), ``references`` (``name``,
``subject``, ``version``), ``subjects`` (pairs of subject and version; references look a schema up
by them) and, if the type is not ``AVRO``, ``schemaType``. The recorded bytes hold the same ids.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lakeingest.errors import DataError, UnavailableError
from lakeingest.source.registry.contract import Registered, WholeSchemas


class RecordedRegistry:
    """The schemas of a recorded folder.

    Args:
        path: The folder that holds ``registry.json``.
        spark: Session that reads the file. It also reads the topics beside it, so that both paths
            have the same meaning. ``None``: read the file as a local one.
    """

    def __init__(self, path: str, spark: SparkSession | None = None) -> None:
        self._file = f"{path.rstrip('/')}/registry.json"
        self._spark = spark
        self._entries: Mapping[str, Any] | None = None
        self._schemas = WholeSchemas(self._registered, self._version)

    def schema(self, schema_id: int) -> str:
        """Return the schema of an id; see ``Registry.schema``."""
        return self._schemas.text(schema_id)

    def check(self) -> None:
        """Read the file.

        Raises:
            UnavailableError: The file does not exist or cannot be read.
        """
        self._entries_by_id()

    def close(self) -> None:
        """Do nothing: a folder holds no client."""

    def _registered(self, schema_id: int) -> Registered:
        entry = self._entries_by_id().get(str(schema_id))
        if entry is None:
            message = (
                f"The schema id {schema_id} is not in {self._file}: the recording lacks it, or the "
                "record was written with another registry."
            )
            raise DataError(message)
        return self._entry(entry, f"Id {schema_id}")

    def _version(self, subject: str, version: int) -> Registered:
        for entry in self._entries_by_id().values():
            if [subject, version] in entry.get("subjects", ()):
                return self._entry(entry, f"{subject} version {version}")
        message = f"{self._file} lacks {subject} version {version}, which another schema refers to."
        raise DataError(message)

    def _entry(self, entry: Mapping[str, Any], name: str) -> Registered:
        kind = entry.get("schemaType", "AVRO")
        if kind != "AVRO" or "schema" not in entry:
            message = f"{name} in {self._file} is no Avro schema (its type is {kind})."
            raise DataError(message)
        references = entry.get("references") or ()
        return Registered(
            json.dumps(entry["schema"]),
            tuple((other["subject"], other["version"]) for other in references),
        )

    def _entries_by_id(self) -> Mapping[str, Any]:
        if self._entries is None:
            try:
                entries = _object(json.loads(self._text()))
            except (OSError, AnalysisException) as error:
                message = (
                    f"{self._file} cannot be read ({type(error).__name__}). A recorded source in "
                    "Avro has its schemas there: check the path, or lakeingest.source.format."
                )
                raise UnavailableError(message) from error
            except ValueError as error:
                message = f"{self._file} holds no schemas by id: {error}."
                raise UnavailableError(message) from error
            self._entries = entries
        return self._entries

    def _text(self) -> str:
        if self._spark is None:
            return Path(self._file).read_text(encoding="utf-8")
        row = self._spark.read.text(self._file, wholetext=True).first()
        return str(row[0]) if row else ""


def _object(entries: Any) -> Mapping[str, Any]:
    if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
        message = "it is not an object of objects"
        raise ValueError(message)
    return entries
