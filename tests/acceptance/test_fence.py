"""Jobs while ticks hand them over: none early, none lost, none after its cancel, none twice by a move."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from dueline import AlreadyFinished, DuelineError, Job, NewJob, State
from tests.acceptance.conftest import IS_AWS
from tests.acceptance.inbox import jobs_of, lateness, percentile
from tests.waiting import HANG_SECONDS, wait_until

# What SQS brings again comes within its visibility timeout; what is broken comes at its due time.
REPEATS = timedelta(seconds=3)
# The fence jumps by a tick's period, a minute on AWS: due times are spread over three.
WITHIN = timedelta(seconds=180 if IS_AWS else 12)


def now():
    return datetime.now(UTC)


def spread(client, queue, count, *, after, within):
    """Schedule jobs at random fractions of a second, in the order of their due times."""
    start, scatter = now() + timedelta(seconds=after), random.Random(count)
    dues = sorted(start + within * scatter.random() for _ in range(count))
    return jobs_of(client.schedule_many(queue, [NewJob(payload={"n": n}, at=due) for n, due in enumerate(dues)]))


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """Jobs whose due times the fence crossed while some were cancelled and others moved, and what came of them."""

    timed: dict[str, list[Job]]
    cancelled: list[tuple[Job, State | DuelineError]]
    kept: list[Job]
    moved: list[tuple[Job, Job | None]]


@pytest.fixture(scope="module")
def crossing(clients, inbox, of_scale, table_after):
    client = clients(transport="invoke")
    timed = {"table": spread(client, "flood", of_scale(30, 5000), after=table_after, within=WITHIN)}
    cancels = spread(client, "plain-vip", 2 * of_scale(30, 500), after=table_after, within=WITHIN)
    moves = spread(client, "moved", of_scale(20, 200), after=table_after, within=WITHIN)
    timed["direct"] = spread(client, "flood", of_scale(30, 5000), after=5, within=timedelta(seconds=of_scale(5, 60)))
    boxes = {queue: inbox(queue) for queue in ("flood", "plain-vip", "moved")}
    # Ticks have handed over the first of the jobs, and not yet all.
    at_fence = cancels[len(cancels) // 3].id
    assert wait_until(lambda: client.get(at_fence).state is State.DISPATCHED), "no tick handed it over"
    states = client.cancel_many(job.id for job in cancels[::2])
    chance = random.Random(1)
    delays = (10, table_after if IS_AWS else 5)
    moved = [(job, move(client, job, timedelta(seconds=chance.choice(delays)))) for job in moves]
    for route in timed:
        boxes["flood"].wait_for(*(job.id for job in timed[route]), seconds=table_after + HANG_SECONDS)
    boxes["plain-vip"].wait_for(*(job.id for job in cancels[1::2]))
    boxes["moved"].wait_for(*((new or old).id for old, new in moved), seconds=table_after + HANG_SECONDS)
    # What must not come would have come before a job that is due after all of it.
    for queue, jobs in (("plain-vip", cancels), ("moved", [new or old for old, new in moved])):
        last = max(job.due for job in jobs) + REPEATS
        boxes[queue].wait_for(client.schedule(queue, "last", at=max(now(), last)).id)
    cancelled = list(zip(cancels[::2], states, strict=True))
    return Crossing(timed=timed, cancelled=cancelled, kept=cancels[1::2], moved=moved)


def move(client, job, delay):
    try:
        return client.reschedule(job.id, delay=delay)
    except AlreadyFinished:
        return None


@pytest.mark.parametrize("route", ["direct", "table"])
def test_jobs_come_on_time(crossing, inbox, figure, route):
    jobs = crossing.timed[route]
    assert {job.route.name.lower() for job in jobs} == {route}
    late = lateness(jobs, inbox("flood").landed)
    assert figure(f"{route}: early", sum(each < 0 for each in late)) == 0
    p50, p95 = figure(f"{route}: p50, s", percentile(late, 50)), figure(f"{route}: p95, s", percentile(late, 95))
    assert not IS_AWS or (p50 <= 1.0 and p95 <= 1.5)


def test_cancelled_jobs_never_come(crossing, inbox, figure):
    assert not [each for _, each in crossing.cancelled if isinstance(each, DuelineError)]
    promised = [job for job, state in crossing.cancelled if state is State.CANCELLED]
    requested = len(crossing.cancelled) - len(promised)
    figure("cancelled", len(promised)), figure("cancel requested", requested)
    came = {each.id for each in inbox("plain-vip").landed}
    assert figure("came though cancelled", sum(job.id in came for job in promised)) == 0
    # On either side of the fence, where the machine is as fast as AWS.
    assert not IS_AWS or (promised and requested)


def test_moved_jobs_come_once(crossing, inbox, figure):
    came = {each.id for each in inbox("moved").landed}
    new = [each for _, each in crossing.moved if each]
    figure("moved", len(new)), figure("had left", len(crossing.moved) - len(new))
    assert figure("came though moved away", sum(old.id in came for old, new in crossing.moved if new)) == 0
    assert not IS_AWS or 0 < len(new) < len(crossing.moved)


@pytest.mark.aws_only("the local run fires the ticks itself: EventBridge Scheduler has no part in it")
def test_scheduler_fires_each_tick_once_a_minute(client, figure):
    """A tick raises the fence to its own instant and the lookahead: the fence's age falls when one has fired."""
    minutes, fired = 15, []
    ends, before = now() + timedelta(minutes=minutes), 0.0
    while now() < ends:
        age = client.queue("plain-vip").fence_age or 0.0
        if age < before:
            fired.append(now() - timedelta(seconds=age))
        before = age
        time.sleep(2)
    gaps = [(after - before).total_seconds() for before, after in pairwise(fired)]
    assert abs(figure("ticks less minutes", len(fired) - minutes)) <= 1
    assert figure("longest gap between ticks, s", max(gaps)) <= 120


@pytest.mark.aws_only("the local AWS is one process, slower than SQS the more a queue holds")
def test_20_000_jobs_are_sent_within_a_minute(client, inbox, figure, table_after):
    due, flood = now() + timedelta(seconds=table_after + 60), inbox("flood")

    def schedule(first):
        return jobs_of(client.schedule_many("flood", [NewJob(payload=first + n, at=due) for n in range(500)]))

    # Those of one request share a partition: of four, one is met by none of 40 once in 25,000 runs.
    with ThreadPoolExecutor(10) as pool:
        jobs = [job for some in pool.map(schedule, range(0, 20_000, 500)) for job in some]
    flood.wait_for(*(job.id for job in jobs), seconds=table_after + 2 * HANG_SECONDS)
    sent = {each.id: (each.sent - due).total_seconds() for each in reversed(flood.landed)}
    assert figure("partitions", len({job.id.split(".")[1] for job in jobs})) == 4
    assert figure("early", sum(each < 0 for each in lateness(jobs, flood.landed))) == 0
    assert figure("last sent after the instant, s", max(sent[job.id] for job in jobs)) <= 60
