"""``python -m tests.benchmarks.jobs RECORDING``: what a batch asks of Spark, and who asks.

Prints jobs, seconds and core seconds of each batch over a recorded run, the medians of the warm
ones, and the lines of lakeingest that asked for these jobs. A batch is prepared while the one
before it is written, so a job counts where it ends.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

from lakeingest.apply.run import run_pipeline
from lakeingest.apply.summary import BatchSummary
from lakeingest.config import load_config
from lakeingest.session import session
from tests.benchmarks.effort import cores_used
from tests.benchmarks.job_book import JobBook
from tests.recordings.configure import recorded_run, run_folder


def main(arguments: argparse.Namespace) -> None:
    """Run over the recording and print what each batch asked."""
    spark = session("jobs", master="local[2]")
    book, run = JobBook(spark), recorded_run(run_folder(arguments.recording), arguments.form)
    clock, cores = time.monotonic(), cores_used()
    warm: list[tuple[int, float, float]] = []
    askers: Counter[str] = Counter()

    def note(summary: BatchSummary) -> None:
        nonlocal clock, cores
        seconds, used = time.monotonic() - clock, cores_used() - cores
        clock, cores = clock + seconds, cores + used
        ended = book.ended()
        is_warm = summary.batch > arguments.warm
        print(
            f"batch {summary.batch}: {summary.events} events, {len(summary.tables)} tables, "
            f"{ended.total()} jobs, {seconds:.1f} s, {used:.1f} core s",
            flush=True,
        )
        if is_warm:
            warm.append((ended.total(), seconds, used))
            askers.update(ended)

    with tempfile.TemporaryDirectory() as lake, book.naming():
        config = load_config(run.configuration(Path(lake), batch_max_events=str(arguments.events)))
        run_pipeline(spark, config, max_batches=arguments.batches, on_batch=note)
    jobs, seconds, used = map(median, zip(*warm, strict=True))
    print(f"median of {len(warm)}: {jobs:.0f} jobs, {seconds:.2f} s, {used:.2f} core s")
    for name, number in askers.most_common():
        print(f"{number / len(warm):6.1f}  {name}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.jobs")
    parser.add_argument("recording", help="folder of a recorded run")
    parser.add_argument("--form", default="json", help="form of its events")
    parser.add_argument("--events", type=int, default=500, help="events of a batch")
    parser.add_argument("--batches", type=int, default=30, help="batches to apply")
    parser.add_argument("--warm", type=int, default=16, help="batches before the medians begin")
    return parser.parse_args()


if __name__ == "__main__":
    main(_arguments())
