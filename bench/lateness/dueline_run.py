"""Dueline: jobs are in its table before the ticks begin, as those that were scheduled long ago."""

import math
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.lateness import record
from bench.lateness.books import Books, Run
from bench.lateness.plan import CANCELLED_SHARE, EXACT, LANES, PLAIN, Load, Scheduled, Ticks, Wish, job_of, send
from bench.lateness.stage import Stage
from bench.lateness.ticks import ticking, warm
from bench.lateness.waiting import wait_for, wait_for_the_last
from bench.part import Progress
from bench.processes import python, running, wait_until
from dueline import State
from dueline.model.job import Job

_INGESTED_A_SECOND, _INGEST_SECONDS = 250, 4
_WARMING_JOBS = 200
_NOT_IN_THIS_RUN_SECONDS = 86_400.0
# Half of the cancels are asked for before the first tick, the others in the midst of the run.
_CANCEL_AGAIN_SHARE = 0.35


@dataclass(frozen=True, kw_only=True, slots=True)
class Ours:
    """What came out, whether all was in the table before the first tick, and when one was killed, in s after that."""

    run: Run
    ingested: bool
    killed_at: float
    cancels: dict[str, int]


def measure(stage: Stage, load: Load, ticks: Ticks, progress: Progress) -> Ours:
    """Schedule the load, take some of it back, and let it land."""
    written, wishes = stage.folder / "ours", tuple(load.wishes())
    with _consumers(stage, written):
        begin = math.ceil(time.time() + len(wishes) / _INGESTED_A_SECOND + _INGEST_SECONDS)
        scheduled = Scheduled(begin=begin, wishes=wishes)
        jobs = {wish.number: job_of(wish, scheduled) for wish in wishes}
        progress("Dueline: schedule", 0, 1)
        send(list(jobs.values()), stage.queue(stage.endpoints.inbound_url))
        # What is still on its way by then is handed over by ingest itself.
        ingested = _wait_for_ingest(stage, until=begin)
        answers = _cancel(stage, jobs, _chosen(wishes, seed=1))
        what = "Dueline: jobs land"
        with ticking(stage, ticks, begin=begin) as killing:
            wait_for(begin + load.first + load.steady * _CANCEL_AGAIN_SHARE, what, progress, scheduled=scheduled)
            waiting = tuple(each for each in wishes if scheduled.dues[each.number] > time.time() + 1)
            answers |= _cancel(stage, jobs, _chosen(waiting, seed=2) - answers.keys())
            wait_for_the_last(what, progress, scheduled=scheduled, written=written, but=answers)
    return _read(
        written, scheduled, answers, ingested=ingested, killed_at=killing.killed_at and killing.killed_at - begin
    )


def _chosen(wishes: tuple[Wish, ...], *, seed: int) -> set[int]:
    chance = random.Random(seed)
    return {wish.number for wish in wishes if chance.random() < CANCELLED_SHARE / 2}


def _cancel(stage: Stage, jobs: dict[int, Job], numbers: set[int]) -> dict[int, State]:
    """Take jobs back over the HTTP API; return what was answered. A call that failed promised nothing."""
    asked = sorted(numbers)
    answers = stage.client.cancel_many([str(jobs[number].id) for number in asked])
    promised = [state is State.CANCELLED for state in answers]
    return {
        number: State.CANCELLED if each else State.CANCEL_REQUESTED
        for number, each in zip(asked, promised, strict=True)
    }


def _read(written: Path, scheduled: Scheduled, answers: dict[int, State], *, ingested: bool, killed_at: float) -> Ours:
    promised = {number for number, state in answers.items() if state is State.CANCELLED}
    books = Books(
        dues=scheduled.dues,
        landed=list(record.read(written)),
        cancelled=frozenset(promised),
        asked=frozenset(answers.keys() - promised),
    )
    cancels = {"200": len(promised), "202": len(answers) - len(promised)}
    return Ours(run=Run(scheduled=scheduled, books=books), ingested=ingested, killed_at=killed_at, cancels=cancels)


@contextmanager
def _consumers(stage: Stage, written: Path) -> Iterator[None]:
    """Have a process of plain consumers and one of a worker, both of which have received a first job."""
    environment, log = stage.environment(written), stage.folder / "consumers.log"
    urls = [stage.endpoints.queues[lane] for lane in PLAIN]
    worker = python("dueline", "worker", "bench.lateness.worker:worker", "--grace", "1")
    with (
        running(python("bench.lateness.plain_consumer", *urls), log=log, environment=environment),
        running(worker, log=log, environment=environment),
    ):
        _warm_up(stage, written)
        warm(stage)
        yield


def _warm_up(stage: Stage, written: Path) -> None:
    """Send a job to each queue, and enough to ingest for all of its functions to start; nobody counts them."""
    now = Scheduled(begin=int(time.time()), wishes=())
    for number, lane in enumerate(LANES, start=1):
        job = job_of(Wish(number=-number, lane=lane, after=0, rush=False), now)
        send([job], stage.queue(stage.endpoints.queues[lane]))
    later = [Wish(number=-n, lane=EXACT, after=_NOT_IN_THIS_RUN_SECONDS, rush=False) for n in range(_WARMING_JOBS)]
    send([job_of(wish, now) for wish in later], stage.queue(stage.endpoints.inbound_url))
    wait_until(lambda: _is_ingested(stage), what="ingest is ready")
    wait_until(lambda: len({each.number for each in record.read(written)}) == len(LANES), what="consumers are ready")


def _wait_for_ingest(stage: Stage, *, until: float) -> bool:
    while time.time() < until:
        if _is_ingested(stage):
            return True
        time.sleep(0.2)
    return False


def _is_ingested(stage: Stage) -> bool:
    depth = stage.queue(stage.endpoints.inbound_url).depth()
    return not (depth.waiting or depth.in_flight)
