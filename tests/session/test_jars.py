from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from unittest.mock import Mock

import pytest

from lakeingest.errors import ConfigError, UnavailableError
from lakeingest.session import jars, resolve
from lakeingest.session.lock import Jar, fingerprint, read_lock, write_lock


def pinned(name: str, group: str = "delta") -> Jar:
    """A jar of the pretended lock; its right content is its name."""
    content = name.encode()
    return Jar(
        group=group,
        coordinate=f"org.example:{name}",
        version="1",
        file=f"{name}-1.jar",
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        why="test",
    )


LOCK = (pinned("alpha"), pinned("beta"), pinned("gamma", "kafka"))


class Resolver:
    """Stands where Spark's resolver is, and notes what it was asked for."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.content: Callable[[str], bytes] = str.encode

    def __call__(
        self, coordinates: Sequence[str], folder: Path, excludes: Sequence[str] = ()
    ) -> list[Path]:
        self.requests.append(list(coordinates))
        for coordinate in coordinates:
            group, name, version = coordinate.split(":")
            (folder / f"{group}_{name}-{version}.jar").write_bytes(self.content(name))
        return sorted(folder.iterdir())


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    stand_in = Resolver()
    monkeypatch.setattr(jars, "resolve_packages", stand_in)
    return stand_in


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolver: Resolver) -> Path:
    """A jar folder that holds the whole pretended lock."""
    monkeypatch.setattr(jars, "read_lock", lambda: LOCK)
    full = tmp_path / "jars"
    full.mkdir()
    for jar in LOCK:
        (full / jar.file).write_bytes(jar.coordinate.split(":")[1].encode())
    monkeypatch.setenv("LAKEINGEST_JARS", str(full))
    return full


def test_nothing_is_downloaded_when_all_jars_are_present(folder: Path, resolver: Resolver) -> None:
    assert jars.ensure_jars(["delta"]) == [folder / "alpha-1.jar", folder / "beta-1.jar"]
    assert resolver.requests == []


def test_only_the_missing_jar_is_resolved(folder: Path, resolver: Resolver) -> None:
    (folder / "beta-1.jar").unlink()
    assert folder / "beta-1.jar" in jars.ensure_jars(["delta", "kafka"])
    assert resolver.requests == [["org.example:beta:1"]]
    assert (folder / "beta-1.jar").read_bytes() == b"beta"


def test_a_jar_of_a_group_that_was_not_asked_for_may_be_missing(
    folder: Path, resolver: Resolver
) -> None:
    (folder / "gamma-1.jar").unlink()
    jars.ensure_jars(["delta"])
    assert resolver.requests == []


@pytest.mark.parametrize(
    ("content", "difference"), [(b"ALPHA", "sha256"), (b"alpha and more", "14 bytes")]
)
def test_a_jar_with_a_wrong_checksum_or_size_is_refused(
    content: bytes, difference: str, folder: Path
) -> None:
    (folder / "alpha-1.jar").write_bytes(content)
    expected = rf"alpha-1\.jar has {difference}.* where the lock pins .* Delete it"
    with pytest.raises(UnavailableError, match=expected):
        jars.ensure_jars(["delta"])


def test_a_resolved_jar_that_differs_from_the_lock_never_reaches_the_folder(
    folder: Path, resolver: Resolver
) -> None:
    (folder / "alpha-1.jar").unlink()
    resolver.content = lambda name: name.upper().encode()
    with pytest.raises(UnavailableError, match="sha256"):
        jars.ensure_jars(["delta"])
    assert sorted(path.name for path in folder.iterdir()) == ["beta-1.jar", "gamma-1.jar"]


def test_runs_that_resolve_at_the_same_time_all_get_whole_jars(
    folder: Path, resolver: Resolver
) -> None:
    (folder / "alpha-1.jar").unlink()
    together = Barrier(3, timeout=10)

    def content(name: str) -> bytes:
        together.wait()
        return name.encode()

    resolver.content = content
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: jars.ensure_jars(["delta"]), range(3)))
    assert answers == [[folder / "alpha-1.jar", folder / "beta-1.jar"]] * 3
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_folder_that_cannot_be_made_is_named(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LAKEINGEST_JARS", str(tmp_path / "file" / "jars"))
    with pytest.raises(UnavailableError, match=r"lacks alpha-1\.jar, beta-1\.jar and cannot"):
        jars.ensure_jars(["delta"])


def test_an_unknown_group_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="unknown jar group iceberg; known are delta, kafka"):
        jars.ensure_jars(["delta", "iceberg"])


def test_another_pin_gets_another_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEINGEST_JARS", raising=False)
    assert jars.cache_folder(LOCK).name == fingerprint(LOCK)
    assert jars.cache_folder(LOCK) != jars.cache_folder((*LOCK[:2], pinned("delta")))
    assert jars.cache_folder(LOCK) == jars.cache_folder(LOCK[::-1])


def test_updating_the_lock_writes_the_sums_of_what_was_resolved(
    tmp_path: Path, resolver: Resolver
) -> None:
    path = tmp_path / "lock.json"
    blank = Jar("delta", "org.example:alpha", "1", file="", bytes=0, sha256="", why="test")
    write_lock(path, [blank])
    jars.update_lock(path)
    assert read_lock(path) == LOCK[:1]


def test_a_version_that_the_resolver_replaced_is_not_written_to_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock.json"
    write_lock(path, LOCK)
    monkeypatch.setattr(jars, "resolve_packages", lambda *_: [])
    with pytest.raises(UnavailableError, match="another version than org.example:alpha:1"):
        jars.update_lock(path)
    assert read_lock(path) == LOCK


def test_the_lock_pins_the_versions_that_the_python_packages_have() -> None:
    lock = {jar.coordinate: jar for jar in read_lock()}
    delta = importlib.metadata.version("delta-spark")
    spark = importlib.metadata.version("pyspark")
    assert lock["io.delta:delta-spark_2.12"].version == delta
    assert lock["io.delta:delta-storage"].version == delta
    assert lock["org.apache.spark:spark-sql-kafka-0-10_2.12"].version == spark
    assert all(len(jar.sha256) == 64 and jar.bytes > 0 and jar.why for jar in lock.values())


class Submit:
    """Stands where ``spark-submit`` is."""

    def __init__(self, *names: str) -> None:
        self.runs = 0
        self.names = names

    def __call__(
        self, coordinates: Sequence[str], work: Path, excludes: Sequence[str]
    ) -> list[Path]:
        self.runs += 1
        for name in self.names:
            (work / name).write_text(name)
        return [work / name for name in self.names]


def test_resolved_packages_are_remembered_until_one_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = Submit("a.jar", "b.jar")
    monkeypatch.setattr(resolve, "_submit", submit)
    expected = [tmp_path / "a.jar", tmp_path / "b.jar"]
    assert resolve.resolve_packages(["g:a:1"], tmp_path) == expected
    assert resolve.resolve_packages(["g:a:1"], tmp_path) == expected
    assert submit.runs == 1
    (tmp_path / "b.jar").write_text("cut")
    assert resolve.resolve_packages(["g:a:1"], tmp_path) == expected
    assert submit.runs == 2


@pytest.mark.parametrize(("coordinate", "exclude"), [("g:a:2", "x:*"), ("g:a:1", "y:*")])
def test_other_packages_or_excludes_are_resolved_anew(
    coordinate: str, exclude: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = Submit("a.jar")
    monkeypatch.setattr(resolve, "_submit", submit)
    resolve.resolve_packages(["g:a:1"], tmp_path, ["x:*"])
    resolve.resolve_packages([coordinate], tmp_path, [exclude])
    assert submit.runs == 2


def test_a_resolution_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "_submit", Mock(side_effect=UnavailableError("no network")))
    with pytest.raises(UnavailableError, match="no network"):
        resolve.resolve_packages(["g:a:1"], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_distrusted_certificate_is_told_apart_from_a_missing_network() -> None:
    log = "Exception in thread main: [unresolved dependency: g#a;1: not found]\n"
    distrusted = resolve._failure(["g:a:1"], "PKIX path building failed\n" + log)
    unreachable = resolve._failure(["g:a:1"], "Host not found\n" + log)
    assert "trustStore" in distrusted
    assert "LAKEINGEST_JARS" in unreachable
    assert "g:a:1: unresolved dependency: g#a;1: not found. " in unreachable
