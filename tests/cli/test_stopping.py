from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from lakeingest.cli.stopping import STOPPED
from tests.forms import further

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


# PySpark sets a handler for Ctrl-C when a session starts. It calls py4j, within whose call for the
# running job the main thread most often waits.
REENTRANT = """
import signal, sys, time, types
import lakeingest.session
from lakeingest.cli import main, pipeline
def reenter(number, frame) -> None:
    raise RuntimeError("reentrant call inside <_io.BufferedReader>")
def session(**options) -> object:
    signal.signal(signal.SIGINT, reenter)
    cancel = lambda: print("cancelled", flush=True)
    return types.SimpleNamespace(sparkContext=types.SimpleNamespace(cancelAllJobs=cancel))
sys.modules["lakeingest.session"].session = session
def waits() -> None:
    pipeline.start_spark("waits", types.SimpleNamespace(formats=set))
    print("running", flush=True)
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(1)
    raise RuntimeError("Job 7 cancelled")
main.app.command()(waits)
sys.argv = ["lakeingest", "waits"]
main.main()
"""


@pytest.mark.parametrize(
    ("number", "grace", "signals"),
    [(signal.SIGTERM, 0.5, 1), further(signal.SIGINT, 0.5, 1), (signal.SIGINT, 50, 2)],
)
def test_a_process_leaves_although_a_thread_goes_on(
    number: signal.Signals, grace: float, signals: int
) -> None:
    (code, _, said), seconds = stopped(STUBBORN.format(grace=grace), number, signals)
    assert code == 130
    assert said == f"{STOPPED}\n"
    assert seconds < 20


def stopped(
    program: str, number: signal.Signals, signals: int = 1
) -> tuple[tuple[int, str, str], float]:
    """Start a program, send it signals once it runs.

    Return its exit code, stdout and stderr, and how many seconds it took from then on.
    """
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        start = time.monotonic()
        for _ in range(signals):
            time.sleep(0.3)
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
    return (process.returncode, out, err), time.monotonic() - start


@pytest.mark.parametrize("number", [signal.SIGINT, further(signal.SIGTERM)])
def test_a_stop_is_130_whatever_pysparks_handler_and_the_cancelled_jobs_raise(
    number: signal.Signals,
) -> None:
    outcome, _ = stopped(REENTRANT, number)
    assert outcome == (130, "cancelled\n", f"{STOPPED}\n")
