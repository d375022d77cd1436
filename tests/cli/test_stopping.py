from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from lakeingest.cli.stopping import STOPPED

# A run whose worker thread does not end when the main thread is interrupted.
STUBBORN = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from lakeingest.cli import main, stopping
def stubborn() -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(time.sleep, 60)
        print("running", flush=True)
        waiting.result()
main.app.command()(stubborn)
sys.argv = ["lakeingest", "stubborn"]
stopping.leave_soon_after_a_signal({grace})
main.leave_soon_after_a_signal = lambda: None
main.main()
"""


@pytest.mark.parametrize(
    ("number", "grace", "signals"),
    [(signal.SIGTERM, 0.5, 1), (signal.SIGINT, 0.5, 1), (signal.SIGINT, 50, 2)],
)
def test_a_process_leaves_although_a_thread_goes_on(
    number: signal.Signals, grace: float, signals: int
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN.format(grace=grace)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        start = time.monotonic()
        for _ in range(signals):
            time.sleep(0.3)
            process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == f"{STOPPED}\n"
    assert time.monotonic() - start < 20
