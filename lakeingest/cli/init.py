"""``lakeingest init``: write a first configuration from what the topics hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakeingest.cli.options import SetOption
from lakeingest.cli.output import message
from lakeingest.cli.pipeline import start_spark
from lakeingest.cli.progress import progress
from lakeingest.errors import UsageError


def init(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The file to write: shop.properties.", show_default=False
        ),
    ],
    prefix: Annotated[
        str,
        typer.Option(help="The connector's topic.prefix.", show_default=False),
    ],
    target: Annotated[
        str,
        typer.Option(help="The folder of the lake.", show_default=False),
    ],
    broker: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The Kafka brokers.", show_default=False),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(help="Or the folder of a recording.", show_default=False),
    ] = None,
    registry: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The schema registry, for Avro.", show_default=False),
    ] = None,
    jdbc: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The source database, for types: jdbc:postgresql://db-1/shop?user=reader. "
            "LAKEINGEST_JDBC_PASSWORD has the password.",
            show_default=False,
        ),
    ] = None,
    settings: SetOption = None,
) -> None:
    """Write a configuration from the records of a connector's topics; overwrites no file."""
    if file.exists():
        problem = f"{file} exists, and init overwrites no file"
        raise UsageError(problem)
    if (broker is None) == (path is None):
        problem = "name the source: --broker or --path"
        raise UsageError(problem)
    if not file.absolute().parent.is_dir():
        problem = f"there is no folder {file.absolute().parent}"
        raise UsageError(problem)
    from lakeingest.config import keys
    from lakeingest.config.file.properties import from_mapping
    from lakeingest.config.redaction import spells_secret

    named = {
        keys.PIPELINE_NAME: prefix,
        keys.TOPIC_PREFIX: prefix,
        keys.TARGET_PATH: target,
        keys.SOURCE_KIND: "recorded" if path else "kafka",
        **({keys.SOURCE_PATH: path} if path else {}),
        **({"bootstrap.servers": broker} if broker else {}),
        **({keys.REGISTRY_URL: registry} if registry else {}),
    }
    entries = from_mapping(named).overridden(settings or ()).entries
    given = {key: entry.text for key, entry in entries.items()}
    for key, text in given.items():
        if spells_secret(key, text):
            problem = (
                f"the file would show the value of {key}; name a variable that has it: "
                f"--set '{key}=${{env:NAME}}'"
            )
            raise UsageError(problem)
    with progress("starting Spark"):
        from lakeingest.apply.draft import draft, provisional

        config = provisional(given)
        kafka = config.source.kind == "kafka"
        spark = start_spark(f"lakeingest init {prefix}", config, kafka=kafka, jdbc=bool(jdbc))
        text = draft(spark, given, jdbc)
    with file.open("x", encoding="utf-8") as written:
        written.write(text)
    message(f"{file} is written. Read it, then: lakeingest validate {file}")
