"""Declare the columns of tables without schemas by the catalogue of their database.

The connector's modes say how a type is written, and the catalogue does not know them. The values
do (``seen_modes.py``), those of all tables: a connector has one mode for all. What they show stands
in the file as a setting. Columns whose values do not tell are left to the user, and with them
columns of the same kind without a value. Where no table has a value of a kind, its columns are
declared for the connector's default, and the file says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakeingest.apply.draft.samples import TopicSample
from lakeingest.decode.catalogue_types import declaration, kind_of
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.seen_modes import UNDECIDED, Kind, seen_modes
from lakeingest.source.catalogue import Catalogue

_SETTING = "lakeingest.source."


def mode_settings(
    samples: Sequence[TopicSample], catalogue: Catalogue, settings: Mapping[str, str]
) -> dict[str, str]:
    """Return the modes that values show, as settings; empty: those that the user has set.

    A value is ``UNDECIDED`` where the values are of two modes.
    """
    columns: list[tuple[Kind, Sequence[object]]] = []
    for sample in samples:
        for name, written in _types(sample, catalogue).items():
            declared = declaration(catalogue.family, written, Encodings(), None)
            kind = kind_of(declared) if declared else None
            if kind is not None:
                columns.append((kind, sample.values(name)))
    modes = {f"{_SETTING}{kind.value}": mode for kind, mode in seen_modes(columns).items()}
    return {key: mode for key, mode in modes.items() if key not in settings}


def with_declarations(
    sample: TopicSample, catalogue: Catalogue, encodings: Encodings, modes: Mapping[str, str]
) -> TopicSample:
    """Return a table with the declarations of its columns.

    Args:
        sample: The table, as its records show it.
        catalogue: Of its database.
        encodings: The connector's modes, with those that values show.
        modes: Modes that the user has set, and the result of ``mode_settings``.
    """
    if sample.has_schema:
        return sample
    written = _types(sample, catalogue)
    declared: dict[str, str] = {}
    assumed: dict[str, str] = {}
    for name in sample.types or written:
        inferred = sample.types.get(name)
        seen = inferred.kind if inferred and inferred.seen else None
        text = (
            declaration(catalogue.family, written[name], encodings, seen)
            if name in written
            else None
        )
        kind = kind_of(text) if text else None
        mode = modes.get(f"{_SETTING}{kind.value}") if kind else None
        if text is None or mode == UNDECIDED:
            continue
        declared[name] = text
        if kind and mode is None:
            assumed[name] = kind.value
    return replace(sample, catalogue=written, declared=declared, assumed=assumed)


def _types(sample: TopicSample, catalogue: Catalogue) -> Mapping[str, str]:
    return catalogue.tables.get(sample.collection, {})
