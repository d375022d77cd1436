"""Folders that one worker makes and all workers read: a lake costs ten seconds in each."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def shared_folder(
    factory: pytest.TempPathFactory, worker: str, name: str, make: Callable[[Path], None]
) -> Path:
    """Return a folder that no test changes, made by the first worker that asks for it.

    Args:
        factory: The fixture ``tmp_path_factory``.
        worker: The fixture ``worker_id``.
        name: Name of the folder.
        make: Makes what is in it; the folder is there.
    """
    if worker == "master":
        folder = factory.mktemp(name)
        make(folder)
        return folder
    # The workers' own folders lie in one of their run.
    folder = factory.getbasetemp().parent / name
    done = folder.with_suffix(".made")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            # What is there, another worker failed to make.
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
