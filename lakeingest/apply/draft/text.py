"""Write the text of a configuration from what its topics show.

Types that only values suggest are comments, so that nobody takes a guess for a fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lakeingest.apply.draft.samples import TopicSample
from lakeingest.apply.table.guesses import column_list, in_ddl
from lakeingest.config import keys
from lakeingest.config.file.properties import property_line
from lakeingest.connectors import CONNECTORS
from lakeingest.errors import ConfigError


def draft_text(settings: Mapping[str, str], samples: Sequence[TopicSample], *, whole: bool) -> str:
    """Return the text of a configuration.

    Args:
        settings: See ``draft``.
        samples: One for each table.
        whole: Whether there is a transaction topic.

    Raises:
        ConfigError: The records do not name one connector that lakeingest knows.
    """
    properties = dict(settings)
    if keys.CONNECTOR not in properties:
        properties[keys.CONNECTOR] = _connector(samples)
    lines = [
        "# Written by lakeingest init. Read it, then: lakeingest validate, lakeingest run.",
        *(property_line(key, value) for key, value in sorted(properties.items())),
    ]
    if not whole and keys.TRANSACTION_MODE not in properties:
        shown = CONNECTORS[properties[keys.CONNECTOR]].shows_transactions
        lines += [
            "",
            "# There is no transaction topic, which counts the rows of each transaction. Set",
            "# provide.transaction.metadata=true in the connector, or choose what promises less",
            "# (lakeingest guide connectors):",
            *([f"#{keys.TRANSACTION_MODE}=boundary"] if shown else []),
            f"#{keys.TRANSACTION_MODE}=none",
        ]
    for sample in sorted(samples, key=lambda sample: sample.collection):
        lines += ["", *_table_lines(sample)]
    return "\n".join(lines) + "\n"


def _table_lines(sample: TopicSample) -> Iterator[str]:
    key = f"key ({', '.join(sample.key)})" if sample.key else "no key seen"
    if sample.has_schema:
        yield f"# {sample.collection}: {key}, types from its schema"
        return
    if not sample.types and not sample.declared:
        yield f"# {sample.collection}: {key}; no row seen, so declare its columns"
        yield f"#{_schema_line(sample, '')}"
        return
    if sample.declared:
        yield f"# {sample.collection}: {key}. Its records have no schema; the catalogue has:"
        columns = [f"{in_ddl(name)} {text}" for name, text in sample.declared.items()]
        yield _schema_line(sample, ", ".join(columns))
        if sample.assumed:
            yield "# No value shows how the connector writes these. They hold for its default mode:"
        for name, mode in sample.assumed.items():
            yield f"#   {name}: {mode}"
        names = sample.types or sample.catalogue
        unknown = [name for name in names if name not in sample.declared]
        if unknown:
            yield "# Declare these, too, as lakeingest types shows:"
        for name in unknown:
            written = sample.catalogue.get(name, "not in the catalogue")
            yield f"#   {name} ({written}): {sample.hint(name)}"
        return
    yield f"# {sample.collection}: {key}. Its records have no schema, so these types are a guess"
    yield "# (with --jdbc, init reads them from the database's catalogue):"
    for name, inferred in sample.types.items():
        if not inferred.certain:
            yield f"#   {name}: {sample.hint(name)}"
    yield "# Correct them as the source has them, then take the # away:"
    kinds = {name: inferred.kind for name, inferred in sample.types.items()}
    yield f"#{_schema_line(sample, column_list(kinds))}"


def _schema_line(sample: TopicSample, columns: str) -> str:
    return property_line(keys.table_key("schema", sample.collection), columns)


def _connector(samples: Sequence[TopicSample]) -> str:
    names = sorted({sample.connector for sample in samples if sample.connector})
    if len(names) == 1 and names[0] in CONNECTORS:
        return names[0]
    what = f"name {', '.join(names)}" if names else "do not name their connector"
    message = (
        f"The records {what}. Name it: --set {keys.CONNECTOR}=… ({', '.join(sorted(CONNECTORS))})."
    )
    raise ConfigError(message)
