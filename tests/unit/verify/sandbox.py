"""A sandbox in memory, on a clock that moves when a check waits, and broken in whichever way a test says."""

import json
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from dueline.client.answers import Job
from dueline.errors import AlreadyFinished, KeyReused, Unavailable
from dueline.lookup.overview import Overview
from dueline.memory import VirtualClock
from dueline.model.job import JobId, Partition, Route, State
from dueline.ports import Depth
from dueline.verify.checks.rights import matrix
from dueline.verify.sandbox import QUEUES, Answer, Landed, Left, Periods, Used
from tests.builders import NOW, a_queue

PARTITIONS = {"flood": 4}
PERIODS = Periods(direct_horizon=300, lookahead=240)
TICK = timedelta(seconds=60)


@dataclass(kw_only=True)
class Waiting:
    """A job, and what became of it."""

    job: Job
    payload: Any
    cancelled: bool = False


@dataclass(kw_only=True)
class Broken:
    """What is broken: by default nothing."""

    early: timedelta = timedelta()
    late: timedelta = timedelta()
    loses: int = 0  # every so manieth job
    drops_cancels: bool = False
    moves_twice: bool = False
    forgets_keys: bool = False
    changes_payloads: bool = False
    takes_any_upload: bool = False
    widened: frozenset[str] = frozenset()
    narrowed: frozenset[str] = frozenset()
    fires: bool = True
    skips: tuple[int, ...] = ()  # minutes in which nothing is fired
    partitions: int | None = None
    chain_ends: int | None = None
    loses_in_faults: bool = False
    silent: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    uses: dict[str, float] = field(default_factory=dict)  # a job


class FakeSandbox:
    """Jobs reach their queues when they are due, ticks raise fences once a minute, and workers process at once."""

    name, region, is_local = "dueline-verify", "eu-central-1", False
    periods = PERIODS

    def __init__(self, **broken: Any) -> None:
        self.broken = Broken(**broken)
        self.clock = VirtualClock(NOW)
        self.clock.sleep = self._sleep
        self.client = FakeClient(self)
        self.faults = self
        self.waiting: dict[str, list[Waiting]] = {queue: [] for queue in QUEUES}
        self.raw: list[tuple[str, Landed]] = []
        self.open: dict[str, Any] = {}
        self.fault = ""
        self.mended: list[str] = []
        self.ringing_now = False
        self.accepted = 0
        self.strange: tuple[str, ...] = ()
        self.untidied: list[str] = []
        self.rows: list[Left] = []
        self.scheduled_alone: list[datetime] = []
        self.tidied = 0

    def spread(self, ask, items):
        return map(ask, items)

    @contextmanager
    def inbox(self, queue):
        landed: list[Landed] = []
        self.open[queue] = lambda waiting, visible: landed.append(_landed(waiting, visible))
        self.raw = [(queue, landed), *self.raw]
        yield landed
        del self.open[queue]

    @contextmanager
    def working(self, queue, function):
        def process(waiting, visible):
            late = (visible - waiting.job.due).total_seconds()
            payload = "changed" if self.broken.changes_payloads else waiting.payload
            job = SimpleNamespace(id=waiting.job.id, payload=payload, lateness=late, lateness_at_most=late)
            with suppress(Unavailable):
                function(job)

        self.open[queue] = process
        yield
        del self.open[queue]

    def send(self, queue, bodies, *, delay):
        visible = self.clock.now() + timedelta(seconds=delay) + self._shift
        for body in bodies:
            self.accepted += 1
            if self._is_kept:
                # Told ahead of its time: checks hold the times in it to one another.
                self.raw[0][1].append(Landed(id="", body=body, sent=self.clock.now(), visible=visible))

    def fence(self, queue):
        minutes = int((self.clock.now() - NOW) / TICK)
        while minutes in self.broken.skips:
            minutes -= 1
        last = NOW + (minutes * TICK if self.broken.fires else timedelta())
        return last + timedelta(seconds=PERIODS.lookahead)

    def request(self, method, path, body=None):
        return Answer(status=201, content={"url": json.dumps(body), "headers": {"content-length": "1"}})

    def put(self, url, headers, body):
        said = json.loads(url)
        is_right = body == b'"as it was said to be"' and len(body) == said["bytes"]
        return 200 if is_right or self.broken.takes_any_upload else 403

    @contextmanager
    def holding(self, policy, queue):
        allowed = {str(right.call) for right in matrix() if right.policy == policy and right.allowed}
        yield lambda call: str(call) in (allowed | self.broken.widened) - self.broken.narrowed

    @contextmanager
    def ringing(self):
        self.ringing_now = True
        yield
        self.ringing_now = False

    def dead_letter_alarms(self):
        def state(name):
            rings = name in self.broken.stuck or (self.ringing_now and name not in self.broken.silent)
            return "ALARM" if rings else "OK"

        return {name: state(name) for name in ("inbound", "dispatch")}

    @contextmanager
    def _broken(self, what):
        self.fault = what
        yield
        self.fault = ""
        self.mended.append(what)

    def schedule_off(self, queue):
        return self._broken("schedule")

    def stopped(self, function):
        return self._broken(function)

    def table_denied(self, *functions):
        return self._broken("table")

    def used(self, queue, *, start, end):
        jobs = sum(start <= at <= end for at in self.scheduled_alone)
        by_job = {"writes": 1.0, "messages": 1.0, "log_bytes": 195.0} | self.broken.uses
        return Used(**{name: each * jobs for name, each in by_job.items()})

    def leave(self, name, *, until):
        self.rows.append(Left(name=name, until=until, is_there=True))

    def left(self):
        return self.rows

    def forget(self, name):
        self.rows = [row for row in self.rows if row.name != name]

    def tidy(self):
        self.tidied += 1
        return self.untidied

    @property
    def _shift(self):
        return self.broken.late - self.broken.early

    @property
    def _is_kept(self):
        return not self.broken.loses or self.accepted % self.broken.loses

    def add(self, queue, payload, due):
        self.accepted += 1
        partitions = self.broken.partitions or PARTITIONS.get(queue, 1)
        partition = Partition(queue=queue, number=self.accepted % partitions)
        route = Route.TABLE if due - self.clock.now() > timedelta(seconds=PERIODS.direct_horizon) else Route.DIRECT
        id = str(JobId(partition=partition, route=route, due=due, uid=str(uuid.UUID(int=self.accepted, version=4))))
        job = Job(id=id, queue=queue, due=due, route=route, state=State.SCHEDULED)
        if self._is_kept and not (self.fault and self.broken.loses_in_faults):
            self.waiting[queue].append(Waiting(job=job, payload=payload))
        return job

    def find(self, id):
        (found,) = [each for each in self.waiting[id.partition(".")[0]] if each.job.id == id]
        return found

    def is_behind_the_fence(self, waiting):
        return waiting.job.route is Route.TABLE and self.fence(waiting.job.queue) < waiting.job.due

    def _sleep(self, seconds):
        self.clock._elapsed += seconds
        for queue, take in list(self.open.items()):
            self._deliver(queue, take)

    def _deliver(self, queue, take):
        now, kept = self.clock.now(), []
        # A worker may schedule more meanwhile, which are met last.
        for waiting in self.waiting[queue]:
            visible = waiting.job.due + self._shift
            if visible > now:
                kept.append(waiting)
            elif not waiting.cancelled or self.broken.drops_cancels:
                take(waiting, visible)
        self.waiting[queue] = kept


def _landed(waiting: Waiting, visible: datetime) -> Landed:
    sent = visible - timedelta(seconds=1)
    return Landed(id=waiting.job.id, body=json.dumps(waiting.payload), sent=sent, visible=visible)


@dataclass
class FakeClient:
    """What checks ask of a client."""

    of: FakeSandbox
    keys: dict[str, tuple[Any, Job]] = field(default_factory=dict)

    def queues(self):
        return [a_queue(name=name) for name in (*QUEUES, *self.of.strange)]

    def queue(self, name):
        scheduled = len(self.of.waiting[name])
        depth = Depth(waiting=0, in_flight=0, delayed=0)
        told = {"more_scheduled": False, "next_due": None, "fence_age": None, "dead": 0}
        return Overview(scheduled=scheduled, levels=(depth,), **told)

    def schedule_many(self, queue, jobs):
        now = self.of.clock.now()
        if self.of.fault == "table":
            return [Unavailable("the table cannot be written") for _ in jobs]
        return [self.of.add(queue, job.payload, job.at or now + timedelta(seconds=job.delay or 0)) for job in jobs]

    def schedule(self, queue, payload, *, at=None, delay=0.0, key=None):
        self.of.scheduled_alone.append(self.of.clock.now())
        known = self.keys.get(key)
        if known and not self.of.broken.forgets_keys:
            if known[0] != payload:
                raise KeyReused("the key is of another payload")
            return known[1]
        if self.of.broken.chain_ends and payload["n"] == self.of.broken.chain_ends:
            raise Unavailable("stopped by a loop detection")
        job = self.of.add(queue, payload, at or self.of.clock.now() + timedelta(seconds=delay))
        if key:
            self.keys[key] = payload, job
        return job

    def cancel_many(self, ids):
        found = [self.of.find(id) for id in ids]
        states = [State.CANCELLED if self.of.is_behind_the_fence(each) else State.CANCEL_REQUESTED for each in found]
        for each, state in zip(found, states, strict=True):
            each.cancelled = state is State.CANCELLED
        return states

    def reschedule(self, id, *, at):
        found = self.of.find(id)
        if not self.of.is_behind_the_fence(found):
            raise AlreadyFinished("it has left")
        found.cancelled = not self.of.broken.moves_twice
        return self.of.add(found.job.queue, found.payload, at)
