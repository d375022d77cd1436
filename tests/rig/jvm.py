"""How the rig runs a Java program: small, and with a log of what is wrong only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lakeingest.session.java import ensure_java

# One core's worth of collector and compiler: several of these share the machine with Spark.
_SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_LOGGING = """\
<Configuration status="WARN">
  <Appenders><Console name="out"><PatternLayout pattern="%d %p %c %m%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="out"/></Root>{loggers}</Loggers>
</Configuration>
"""


def java(heap_mb: int, *options: str) -> list[str]:
    """Return a Java with small settings; main class or ``-jar`` and arguments follow."""
    program = str(ensure_java() / "bin" / "java")
    return [program, f"-Xms{heap_mb // 2}m", f"-Xmx{heap_mb}m", *_SMALL, *options]


def classpath(jars: Sequence[Path]) -> list[str]:
    """Return the option that names the jars."""
    return ["-cp", os.pathsep.join(str(jar) for jar in jars)]


def logging(folder: Path, levels: dict[str, str] | None = None) -> str:
    """Write a log4j configuration that prints warnings and errors; return the option for it.

    Args:
        folder: Where the file goes.
        levels: Other levels by name of the logger.
    """
    loggers = "".join(
        f'<Logger name="{name}" level="{level}"/>' for name, level in (levels or {}).items()
    )
    path = folder / "log4j2.xml"
    path.write_text(_LOGGING.format(loggers=loggers), encoding="utf-8")
    return f"-Dlog4j2.configurationFile={path}"
