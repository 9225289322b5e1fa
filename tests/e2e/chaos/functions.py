"""Scenarios `kills` and `network-faults`: jobs are scheduled, cancelled and moved while the functions have faults.

Ticks, the API's function and ingest are killed, or their requests go wrong in every way.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count, cycle
from uuid import UUID

import httpx

from dueline import Client, Job, JobId, NewJob, Route
from dueline.core import instant
from dueline.core.job import Partition
from dueline.errors import RETRYABLE, DuelineError
from tests.e2e.chaos.deployment import Deployment
from tests.e2e.chaos.kills import API, INGEST, TICK, Killer, ingest_has_work
from tests.e2e.chaos.ledger import FAULTS, MOST_TRIES, Ledger, Report
from tests.e2e.chaos.network_faults import RandomFaults
from tests.e2e.chaos.proxy import Around, straight
from tests.e2e.deployed import not_slow
from tests.waiting import wait_until

QUEUES = ("emails", "invoices")
SOON, SOONEST_BY_THE_TABLE = (0.0, 20.0), 27.0
# Sooner than the fence, which is 21 s ahead: the submitter sends it late.
LATE = (0.5, 15.0)
CALL_SECONDS = 2.0
MOST_JOBS_OF_A_CALL, JOBS_OF_AN_EXTRA_CALL = 500, 10
# Of the jobs, so many are cancelled, and as many moved: at once, or within so many seconds.
SHARE, LATER_SECONDS, LATER_LANES = 0.2, 12.0, 4
ANSWERS = {200, 202, 409}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How much there is of it: so many kills, and at least so many faults of the network `of_each` kind.

    So many `promises` are made at least, cancels and as many moves that are answered with 200.
    Jobs that go by the table are due within `spread` seconds of each other.
    """

    kills: int = 0
    of_each: int = 0
    promises: int = 3
    jobs: int
    seconds: float
    spread: float
    seed: int


def run(plan: Plan, deployment: Deployment) -> Report:
    """Schedule, cancel and move for so many seconds, and on until there were all faults; let all settle; check."""
    deployment.start()
    ledger, report = Ledger(), Report(details=[f"seed {plan.seed}"])
    random_faults = RandomFaults(seed=plan.seed, of_each=plan.of_each)
    others: Around = random_faults if plan.of_each else ingest_has_work
    killer = Killer((API, TICK, INGEST), kills=plan.kills, seconds=plan.seconds, seed=plan.seed, otherwise=others)
    deployment.proxy.around = killer
    with ledger.receiving(deployment, *QUEUES):
        _Callers(plan, deployment, ledger, lambda: killer.is_done and random_faults.is_done).run()
        deployment.proxy.around = straight
        wait_until(lambda: not ledger.lost and deployment.is_ingested())
        report.expect(deployment.wait_for_ticks(ledger.last_due, QUEUES), "ticks have ended")
    statuses = dict(ledger.statuses)
    report.expect(statuses.keys() <= ANSWERS | FAULTS, f"callers were answered {statuses}")
    dead_letters = deployment.dead_letters()
    report.expect(not dead_letters, f"parked for a fault that passes: {dead_letters}")
    if not plan.of_each:
        # The emulator hides how ticks end that it fires itself.
        failed = not_slow(deployment.tick_faults, "Worker process died")
        report.expect(not failed, f"ticks failed that were not killed: {failed}")
    report.figures["kills"] = dict(killer.done)
    ledger.check(report, deployment)
    return report


class _Callers:
    """Schedule jobs, cancel some, and move some."""

    def __init__(self, plan: Plan, deployment: Deployment, ledger: Ledger, are_faults_done: Callable[[], bool]) -> None:
        self._plan, self._deployment, self._ledger = plan, deployment, ledger
        self._are_faults_done = are_faults_done
        self._random = random.Random(plan.seed)
        self._client = Client.connect(url=deployment.endpoints.api)
        self._queues = cycle(QUEUES)
        self._timers: list[threading.Timer] = []

    def run(self) -> None:
        """Schedule in calls spread over the time; then, however slow the machine, until there is enough of all."""
        plan, began = self._plan, time.monotonic()
        calls = max(2, round(plan.seconds / CALL_SECONDS), -(-plan.jobs // MOST_JOBS_OF_A_CALL))
        with ThreadPoolExecutor(LATER_LANES) as later:
            for number in range(calls):
                time.sleep(max(0.0, began + number * plan.seconds / calls - time.monotonic()))
                self._call(plan.jobs // calls + (number < plan.jobs % calls), later)
            time.sleep(LATER_SECONDS)
            for further in count(1):
                if self._are_faults_done() and self._is_enough():
                    break
                self._call(JOBS_OF_AN_EXTRA_CALL, later, further=further)
                time.sleep(CALL_SECONDS)
            for timer in self._timers:
                timer.join()

    def _is_enough(self) -> bool:
        cancels = list(self._ledger.cancels.values())
        moves = [move.status for move in list(self._ledger.moves.values())]
        return min(cancels.count(httpx.codes.OK), moves.count(httpx.codes.OK)) >= self._plan.promises

    def _call(self, jobs: int, later: ThreadPoolExecutor, *, further: float = 0) -> None:
        queue = next(self._queues)
        new = [self._new(queue, further) for _ in range(jobs)]
        # The first of them alone.
        scheduled = [job for some in (new[:1], new[1:]) for job in until_answered(self._client, queue, some)]
        for job in scheduled:
            self._ledger.accept(job)
        share = round(len(scheduled) * SHARE)
        for number, job in enumerate(self._random.sample(scheduled, 2 * share)):
            moment = self._random.choice([0.0, self._random.uniform(0, LATER_SECONDS)])
            change = self._cancel if number < share else self._move
            self._timers.append(threading.Timer(moment, later.submit, (change, job.id)))
            self._timers[-1].start()

    def _new(self, queue: str, further: float) -> NewJob:
        """Return a job: 15 % are late, as many direct, 30 % by the table, the rest due in one rush."""
        kind, spread, soonest = self._random.random(), self._plan.spread, SOONEST_BY_THE_TABLE + further
        now = datetime.now(UTC)
        if kind < 0.15:
            return self._late(queue, now + timedelta(seconds=self._random.uniform(*LATE)))
        if kind < 0.3:
            due = now + timedelta(seconds=self._random.uniform(*SOON))
        elif kind < 0.6:
            due = now + timedelta(seconds=soonest + self._random.uniform(0, spread))
        else:
            due = datetime.fromtimestamp(((now.timestamp() + soonest) // spread + 1) * spread, UTC)
        return NewJob(payload={"n": 1}, at=due)

    def _late(self, queue: str, due: datetime) -> NewJob:
        """Return a job by the table though it is due soon, with an id of its caller's."""
        number = self._random.randrange(self._deployment.settings.queues[queue].partitions)
        uid = str(UUID(int=self._random.getrandbits(128), version=4))
        partition = Partition(queue=queue, number=number)
        id = JobId(partition=partition, route=Route.TABLE, due=instant.round_up(due), uid=uid)
        return NewJob(payload={"n": 1}, id=str(id))

    def _cancel(self, id: str) -> None:
        self._ledger.cancel(self._deployment.http, id)

    def _move(self, id: str) -> None:
        """Move a job, to later, or to sooner than the fence, where ingest has a part in it; some callers give up."""
        delay = round(self._random.choice([self._random.uniform(*LATE), SOONEST_BY_THE_TABLE]), 3)
        self._ledger.reschedule(self._deployment.http, id, delay, tries=self._random.choice([1, MOST_TRIES]))


def until_answered(client: Client, queue: str, jobs: Sequence[NewJob]) -> list[Job]:
    """Schedule jobs, and again under the same ids or keys those whose call failed; raise what is refused."""
    answered: dict[int, Job] = {}
    left = dict(enumerate(jobs))
    while left:
        results = dict(zip(left, client.schedule_many(queue, list(left.values())), strict=True))
        answered |= {number: result for number, result in results.items() if isinstance(result, Job)}
        left = {n: _again(left[n], result) for n, result in results.items() if isinstance(result, DuelineError)}
    return [answered[number] for number in sorted(answered)]


def _again(job: NewJob, error: DuelineError) -> NewJob:
    if not isinstance(error, RETRYABLE):
        raise error
    if error.idempotency_key or job.idempotency_key:
        # Where the library could not make an id, it was sent under the name of the call.
        return replace(job, idempotency_key=error.idempotency_key or job.idempotency_key)
    return replace(job, at=None, delay=None, id=error.job_id or job.id) if error.job_id or job.id else job
