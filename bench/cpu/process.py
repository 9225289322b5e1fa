"""The process that is measured: `python -m bench.cpu.process FOLDER SECONDS`."""

import os
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.apart import tell_progress, tell_result
from bench.cpu import material, steps
from bench.cpu.contenders import LANES, contenders
from bench.cpu.figures import BOTO3, INGEST, OURS, TICK
from bench.cpu.loopback import Loopback, answering
from bench.cpu.profiling import profile
from bench.cpu.steps import Step

_JOBS = 2000
_LEAST_ROUNDS = 3
# The share of the time for which lanes are measured over all processors as well.
_SHARED = 0.1
Rounds = dict[str, dict[str, list[float]]]


def rounds(all: Mapping[str, Mapping[str, Step]], *, until: float, now: Callable[[], float] = time.monotonic) -> Rounds:
    """Return the seconds a job of each round, by step and contender: one after the other, round by round."""
    taken: Rounds = {name: {who: [] for who in each} for name, each in all.items()}
    began, number = now(), 0
    while number < _LEAST_ROUNDS or now() < until:
        number += 1
        tell_progress(f"round {number}", int(now() - began), max(1, int(until - began)))
        for name, each in all.items():
            for who, step in each.items():
                jobs, seconds = step()
                taken[name][who].append(seconds / jobs)
    return taken


def _profiles(all: Mapping[str, Mapping[str, Step]]) -> dict[str, dict[str, Any]]:
    """Return where the time of a tick and of an ingest goes, their requests one after the other, in one thread."""
    ingest, tick = steps.function("ingest"), steps.function("tick")
    tick.DEPLOYED.spread = ingest.DEPLOYED.spread = ingest.INGEST._spread = map
    LANES.close()
    return {name: {who: profile(all[name][who]) for who in (OURS, BOTO3)} for name in (TICK, INGEST)}


def _measure(loopback: Loopback, *, seconds: float) -> dict[str, Any]:
    steps.as_deployed(loopback)
    all = contenders(loopback, material.jobs(_JOBS, due=datetime.now(UTC)))
    lanes = {name: {who: all[name][who] for who in (OURS, BOTO3)} for name in (TICK, INGEST)}
    shared = rounds(lanes, until=time.monotonic() + seconds * _SHARED)
    keep_to({min(os.sched_getaffinity(0))})
    answered, own = loopback.seconds(), time.process_time()
    taken = rounds(all, until=time.monotonic() + seconds)
    apart = {"server": loopback.seconds() - answered, "measured": time.process_time() - own}
    return {"seconds_a_job": taken, "shared": shared, "apart": apart, "profiles": _profiles(all)}


def keep_to(processors: Collection[int]) -> None:
    """Have all threads of this process run on those processors."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), processors)


def main(folder: Path, seconds: float) -> None:
    stock = material.stock(material.jobs(_JOBS, due=datetime.now(UTC)), queue_urls=steps.QUEUE_URLS)
    # What the functions log is computed as on Lambda, and goes to a file.
    with (folder / "log").open("w") as log, answering(stock, folder=folder) as loopback, redirect_stdout(log):
        told = _measure(loopback, seconds=seconds)
    tell_result(told)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
