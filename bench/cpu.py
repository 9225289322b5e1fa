"""CPU per job: what our own code and boto3 compute in each step, AWS being other processes, beside Dynein."""

import io
import os
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from bench.cost import Counting, Once
from bench.cost_figures import CALL_JOBS, HIGH, Load
from bench.harness import Figures, Run, Target, emulated_aws, print_progress, print_result, run_apart
from bench.payloads import USUAL
from bench.stage import Stage
from dueline.core.job import Route

SUBMIT, INGEST, TICK = "submit", "ingest", "tick"
OURS, DYNEIN, BATCHED = "Dueline", "Dynein", "Dynein batched"
LEAST_JOBS, TICKED, POLLED = 10_000, 1200, 100


def measure(run: Run) -> Figures:
    """Measure in a process whose environment is the functions'."""
    with emulated_aws(run.scratch) as environment:
        seconds, log = "5" if run.quick else "115", run.scratch / "errors"
        rounds = run_apart("bench.cpu", seconds, log=log, progress=run.progress, environment=environment)
    return {
        "jobs_a_second": {
            step: {who: round(1 / median(each)) for who, each in by.items()} for step, by in rounds.items()
        },
        "against": {
            step: {who: ratio(by[OURS], each) for who, each in by.items() if who != OURS} for step, by in rounds.items()
        },
        "rounds": len(rounds[TICK][OURS]),
    }


def targets(figures: Figures) -> list[Target]:
    jobs = figures["jobs_a_second"]
    return [
        Target(f"CPU: {step}, jobs a CPU second", jobs[step][OURS], LEAST_JOBS, at_most=False)
        for step in (TICK, INGEST)
    ]


def ratio(ours: Sequence[float], others: Sequence[float]) -> float:
    """Return how many times as many jobs ours does in the same time, as the median of the rounds.

    >>> ratio([1.0, 1.0, 2.0], [2.0, 2.0, 2.0])
    2.0
    """
    return median(other / own for own, other in zip(ours, others, strict=True))


def steps(stage: Stage) -> dict[str, dict[str, Once]]:
    """Return who carries out each step. Dynein's submit is until its row is there, as ours is."""
    counting, load = Counting(stage, most_ticked=TICKED, together=1), Load(HIGH)
    dyneins = {DYNEIN: stage.dynein(batched=False), BATCHED: stage.dynein(batched=True)}
    submits = {who: partial(counting.dynein_ingest, dynein, USUAL) for who, dynein in dyneins.items()}
    polls = {who: partial(counting.dynein_poll, dynein, USUAL, POLLED) for who, dynein in dyneins.items()}
    return {
        SUBMIT: {OURS: partial(counting.direct, USUAL, Route.TABLE, CALL_JOBS), **submits},
        INGEST: {OURS: partial(counting.ingest, load.ingested, load.partitions)},
        TICK: {OURS: partial(counting.tick, USUAL, TICKED), **polls},
    }


def main(seconds: float) -> None:
    """Take the steps in turns, round by round, but for a first one; print the CPU seconds a job of each."""
    sys.stdout = out = io.StringIO()
    all, rounds = steps(Stage(out)), dict[str, dict[str, list[float]]]()
    # All threads on one processor: a function of 512 MB has 0.29 of one.
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), {min(os.sched_getaffinity(0))})
    begun, number = time.monotonic(), 0
    while number < 3 or time.monotonic() < begun + seconds:
        print_progress(f"round {number}, {time.monotonic() - begun:.0f} of {seconds:.0f} s")
        for name, by in all.items():
            for who, once in by.items():
                step = once()
                taken = rounds.setdefault(name, defaultdict(list))[who]
                taken += [step.cpu_seconds / step.jobs] if number else []
        number += 1
    print_result(rounds)


if __name__ == "__main__":
    main(float(sys.argv[1]))
