"""Generate the reference of all settings as Markdown from the key table.

``lakeingest config-reference`` prints it, so that it always describes the installed version.
Rejected: a page that someone maintains by hand; it would be a second source of truth.
"""

from __future__ import annotations

from lakeingest.config.kafka.registry import NATIVE
from lakeingest.config.keys import KEYS, REGISTRY, TABLE_KEYS, Key
from lakeingest.config.streamer.settings import HUDI_KEYS

_HEAD = """\
# Configuration reference

A pipeline is configured by a `.properties` file in UTF-8 (Java's format: `key=value`, `\\` at the
end of a line continues it, a backslash in a value is written `\\\\`). `--set key=value` replaces a
setting of the file. Relative paths are relative to the working directory.

`${env:NAME}` and `${file:/path}` in a value are replaced by an environment variable or by the text
of a file; such values, passwords and keys are never shown. Any other `${` is an error.

A collection is named as in Debezium's transaction metadata: `public.orders` on PostgreSQL,
`shop.orders` on MySQL and MariaDB. That is the topic without its prefix.
"""

_KAFKA = """\
## Kafka client

Every key that belongs to no other part of this page is handed to the Kafka client as it is:
`bootstrap.servers` (needed for Kafka), `security.protocol`, `sasl.*`, `ssl.*` … One that Kafka's
clients do not know is a warning; one that is only misspelt (`sasl.jass.config`) is an error.

- `isolation.level` is `read_committed` by default, so that rolled-back records are not read.
- `auto.offset.reset` can only be `earliest`: a pipeline starts at the beginning of its topics, and
  stops when offsets it needs were lost.
- Positions, commits and deserialisers are lakeingest's own: `group.id`, `enable.auto.commit`,
  `key.deserializer` and their like are left out.
"""

_REGISTRY = """\
## Schema registry

For `lakeingest.source.format=avro` from Kafka; names as in Java's Avro deserialiser (`basic.auth.*`
and `bearer.auth.*` also without `schema.registry.`). A trust or key store of type PEM is read too,
any other is refused: export it as PEM. Anything else is a warning.

| key | meaning |
|---|---|
"""

_HUDI = """\
## Hudi Streamer

Settings of a Hudi Streamer file (one topic, one table) that mean something here. A key of ours
wins. Where tables are Hudi's, what concerns its files, index and table services is handed on to its
writer (`hoodie.index.*`, `hoodie.bucket.*`, `hoodie.clean.*`, `hoodie.compact.*`,
`hoodie.metadata.*`, `hoodie.write.lock.*` …). Every other `hoodie.*` key has no effect and is named
in a warning, as is one that looks misspelt. `include=other.properties` reads another file first.
`lakeingest hoodie-streamer` takes the streamer's own command line, each option for one of these
keys; `lakeingest hoodie-multi-table-streamer` that for many tables, with
`hoodie.streamer.ingestion.tablesToBeIngested`, `….<database>.<table>.configFile` and
`….targetBasePath`.

| key | becomes | meaning |
|---|---|---|
"""


def reference() -> str:
    """Return the reference of every setting as Markdown."""
    tables = "\n".join(_row(key) for key in TABLE_KEYS.values())
    settings = "\n".join(_row(key) for key in KEYS)
    header = "| key | type | default | meaning |\n|---|---|---|---|\n"
    registry = "\n".join(f"| `{REGISTRY}{name}` | {meaning} |" for name, meaning in NATIVE.items())
    hudi = "\n".join(
        f"| {', '.join(f'`{name}`' for name in key.names)} "
        f"| {f'`{key.becomes}`' if key.becomes else ''} | {key.description} |"
        for key in HUDI_KEYS
    )
    return "\n".join(
        [
            _HEAD,
            f"## Settings\n\n{header}{settings}\n",
            f"## Tables\n\n{header}{tables}\n",
            _KAFKA,
            f"{_REGISTRY}{registry}\n",
            f"{_HUDI}{hudi}\n",
        ]
    )


def _row(key: Key) -> str:
    default = f"`{key.default}`" if key.default is not None else ""
    type_name = key.type_name.replace("|", "\\|")  # A bare bar would end the cell.
    return f"| `{key.name}` | {type_name} | {default} | {key.description} |"
