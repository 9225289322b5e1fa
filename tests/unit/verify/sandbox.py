"""A sandbox in memory, on a clock that moves when a check waits, and broken in whichever way a test says."""

import json
import math
import uuid
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from dueline.client.answers import Job
from dueline.config.names import Names
from dueline.errors import AlreadyFinished, KeyReused, Unavailable
from dueline.lookup.overview import Overview
from dueline.memory import VirtualClock
from dueline.model import instant
from dueline.model.job import JobId, Partition, Route, State
from dueline.model.queue_settings import PLANNER
from dueline.ports import Depth
from dueline.verify.check import NotJudged
from dueline.verify.checks.alarms import ON_FAULTS
from dueline.verify.checks.alarms_by_figure import BY_FIGURE
from dueline.verify.checks.rights import matrix
from dueline.verify.sandbox import (
    LEVELS,
    PRIORITIES,
    QUEUES,
    Answer,
    AsDeployed,
    Deployed,
    Landed,
    Left,
    Periods,
    Used,
)
from tests.builders import NOW, a_queue

PARTITIONS = {"flood": 4}
LEVELS_OF = {LEVELS: PRIORITIES}
# One rings with the first message, and one with a second.
ON_DEAD_LETTERS = ("InboundDeadLetters", "InboundDeadLettersGrowing")
PERIODS = Periods(direct_horizon=300, lookahead=240)
TICK = timedelta(seconds=60)
DEPLOYMENT = timedelta(minutes=8)


@dataclass(kw_only=True)
class Waiting:
    """A job, and what became of it."""

    job: Job
    payload: Any
    cancelled: bool = False
    priority: int = 1
    tenant: str | None = None


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
    starting: float = 0.0  # seconds of a function
    answers: int = 200
    most_at_once: int = 1000
    never_buffers: bool = False
    unfair: bool = False
    never_dead: bool = False
    keeps_letters: bool = False
    forgets_levels: bool = False
    loses_parked: bool = False
    set_otherwise: dict[str, dict[str, Any]] = field(default_factory=dict)  # None takes it away
    deeds: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    uses: dict[str, float] = field(default_factory=dict)  # a job
    deploys: bool = True
    refuses: tuple[int, ...] = ()  # these numbers of partitions, for another reason
    unguarded: bool = False
    never_raised: bool = False
    never_lowered: bool = False
    without_schedule: int | None = None  # a partition
    twice: int = 0  # every so manieth job


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
        self.open: dict[tuple[str, int], Any] = {}
        self.room: dict[str, float] = {}  # jobs that a slow worker processes between two looks
        self.dead: list[Waiting] = []
        self.parked: list[Waiting] = []
        self.gone: tuple[str, int] | None = None
        self.fault = ""
        self.mended: list[str] = []
        self.dead_letters = 0
        self.rings_until: dict[str, datetime] = {}
        self.accepted = self.taken = 0
        self.strange: tuple[str, ...] = ()
        self.untidied: list[str] = []
        self.rows: list[Left] = []
        self.scheduled_alone: list[datetime] = []
        self.tidied = 0
        self.partitions = dict(PARTITIONS)
        self.told: list[Any] = []
        self.stopped_functions: list[str] = []
        self.is_hidden = False

    def spread(self, ask, items, *, lanes=None):
        return map(ask, items)

    @contextmanager
    def inbox(self, queue, *, priority=1):
        landed: list[Landed] = []
        self.open[queue, priority] = lambda waiting, visible: landed.append(_landed(waiting, visible))
        self.raw = [(queue, landed), *self.raw]
        yield landed
        del self.open[queue, priority]

    @contextmanager
    def failing(self, queue):
        def fail(waiting, _):
            if not self.broken.never_dead:
                self.dead.append(waiting)

        levels = [(queue, priority) for priority in range(1, PRIORITIES + 1)]
        self.open |= dict.fromkeys(levels, fail)
        yield
        for level in levels:
            del self.open[level]

    def redrive(self, queue):
        letters = [] if self.broken.keeps_letters else self.dead if queue else self.parked
        moved = len(letters)
        while letters:
            each = letters.pop()
            each.priority = 1 if self.broken.forgets_levels else each.priority
            self.waiting[each.job.queue].append(each)
        return moved

    def as_deployed(self):
        return as_deployed(Names(self.name), self.broken.set_otherwise)

    @contextmanager
    def working(self, queue, function, *, seconds=0.0):
        self.room[queue] = 2 / seconds if seconds else math.inf

        def process(waiting, visible):
            late = (visible - waiting.job.due).total_seconds()
            payload = "changed" if self.broken.changes_payloads else waiting.payload
            job = SimpleNamespace(id=waiting.job.id, payload=payload, lateness=late, lateness_at_most=late)
            with suppress(Unavailable):
                function(job)

        self.open[queue, 1] = process
        yield
        del self.open[queue, 1], self.room[queue]

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
        self.clock._elapsed += self.broken.starting
        if method == "GET":
            return Answer(status=self.broken.answers)
        if path.endswith("/jobs"):
            job = self.add(path.split("/")[2], body["payload"], instant.parse(body["at"]))
            told = {"id": job.id, "queue": job.queue, "due": instant.text(job.due)}
            return Answer(status=201, content={**told, "route": job.route.name.lower(), "state": "scheduled"})
        return Answer(status=201, content={"url": json.dumps(body), "headers": {"content-length": "1"}})

    def put(self, url, headers, body):
        said = json.loads(url)
        is_right = body == b'"as it was said to be"' and len(body) == said["bytes"]
        return 200 if is_right or self.broken.takes_any_upload else 403

    @contextmanager
    def holding(self, policy, queue):
        yield self.simulating(policy, queue)

    def simulating(self, policy, queue):
        allowed = {str(right.call) for right in matrix() if right.policy == policy and right.allowed}
        return lambda call: str(call) in (allowed | self.broken.widened) - self.broken.narrowed

    def simulating_function(self, function):
        return lambda call: f"{function}: {call}" in self.broken.deeds

    @contextmanager
    def ringing(self):
        self.dead_letters += 1
        yield
        self.dead_letters -= 1

    def alarms(self):
        for number, name in enumerate(ON_DEAD_LETTERS, start=1):
            if self.dead_letters >= number:
                self.ring(name)
        return {name: self._state(name) for name in (*ON_DEAD_LETTERS, *ON_FAULTS, *BY_FIGURE)}

    def ring(self, name):
        self.rings_until[name] = self.clock.now() + timedelta(minutes=10)

    def _state(self, name):
        if name in self.broken.stuck:
            return "ALARM"
        rings = self.rings_until.get(name, NOW) > self.clock.now() and name not in self.broken.silent
        return ("INSUFFICIENT_DATA" if name == "WithoutTick" else "ALARM") if rings else "OK"

    def tell(self, figures):
        """Note figures, as CloudWatch does: an alarm rings while those that are not over in its window say so."""
        self.told += figures
        for name, each in BY_FIGURE.items():
            ats = [told.at for told in figures if each.rings.get(told.metric) == told.value]
            if ats and min(ats) >= self.clock.now() - each.window:
                self.rings_until[name] = max(min(ats) + each.window, max(ats))

    @contextmanager
    def deploying(self, queue, partitions):
        if not self.broken.deploys:
            raise NotJudged("nothing was said to deploy with")
        through, done = self.clock.now() + DEPLOYMENT, []

        def ended():
            if not done and self.clock.now() >= through:
                done.append(self._deployed(queue, partitions))
            return done[0] if done else None

        yield ended

    def _deployed(self, queue, partitions):
        if partitions in self.broken.refuses:
            return Deployed(is_through=False, told="AccessDenied: you may not deploy")
        going = [each for each in self.waiting[queue] if _partition(each) >= partitions and not each.cancelled]
        if going and not self.broken.unguarded:
            # The core's stack is through by then.
            self.partitions[queue] = self.partitions[queue] if self.broken.never_lowered else partitions
            return Deployed(is_through=False, told=f"queue {queue}: this would strand {len(going)} jobs")
        self.waiting[queue] = [each for each in self.waiting[queue] if each not in going]
        is_kept = self.broken.never_lowered if partitions < self.partitions.get(queue, 1) else self.broken.never_raised
        if not is_kept:
            self.partitions[queue] = partitions
        return Deployed(is_through=True, told="")

    def most_at_once(self):
        return self.broken.most_at_once

    def fail(self, function):
        # The guard needs nothing of what it is invoked with.
        if function != "ttl" or self.is_hidden:
            self.ring(f"{function.capitalize()}Errors")

    @contextmanager
    def _broken(self, what):
        self.fault = what
        self.ring({"api": "ApiThrottles", "tick": "TickThrottles"}.get(what, ""))
        yield
        self.fault = ""
        self.mended.append(what)

    def throttled(self):
        return self._broken("throttled")

    @contextmanager
    def schedule_off(self, queue):
        with self._broken("schedule"):
            yield
        for name in ("WithoutTick", f"{queue} MissingTicks", f"{queue} Lateness"):
            self.ring(name)

    @contextmanager
    def stopped(self, function):
        self.stopped_functions.append(function)
        with self._broken(function):
            yield
        self.stopped_functions.remove(function)

    @contextmanager
    def schedules_hidden(self):
        self.is_hidden = True
        yield
        self.is_hidden = False

    def table_denied(self, *functions):
        return self._broken("table")

    @contextmanager
    def level_gone(self, queue, priority):
        self.gone = queue, priority
        yield
        self.gone = None
        self.mended.append("level")

    def used(self, queue, *, start, end):
        jobs = sum(start <= at <= end for at in self.scheduled_alone)
        by_job = {"writes": 1.0, "reads": 1.2, "messages": 1.0, "requests": 1.0, "log_bytes": 195.0} | self.broken.uses
        used = {name: each * jobs for name, each in by_job.items()}
        # Each tick of each partition reads once, the planner's too.
        ticks = (end - start) / TICK * (sum(PARTITIONS.get(queue, 1) for queue in QUEUES) + 1)
        return Used(**{**used, "reads": used["reads"] + ticks})

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

    def add(self, queue, payload, due, *, priority=1, tenant=None, number=None):
        self.accepted += 1
        partitions = self.broken.partitions or self.partitions.get(queue, 1)
        number = self.accepted % partitions if number is None else number
        partition = Partition(queue=queue, number=number)
        route = Route.TABLE if due - self.clock.now() > timedelta(seconds=PERIODS.direct_horizon) else Route.DIRECT
        id = str(JobId(partition=partition, route=route, due=due, uid=str(uuid.UUID(int=self.accepted, version=4))))
        is_buffered = self.fault == "throttled" and not self.broken.never_buffers
        state = State.ACCEPTED if is_buffered else State.SCHEDULED
        job = Job(id=id, queue=queue, due=due, route=route, state=state)
        if self._is_kept and not (self.fault and self.broken.loses_in_faults):
            self.waiting[queue].append(Waiting(job=job, payload=payload, priority=priority, tenant=tenant))
        return job

    def find(self, id):
        (found,) = [each for each in self.waiting[id.partition(".")[0]] if each.job.id == id]
        return found

    def is_behind_the_fence(self, waiting):
        return waiting.job.route is Route.TABLE and self.fence(waiting.job.queue) < waiting.job.due

    def _sleep(self, seconds):
        self.clock._elapsed += seconds
        self._park()
        for level, take in list(self.open.items()):
            self._deliver(*level, take)

    def _park(self):
        if self.gone is None:
            return
        queue, priority = self.gone
        due = [each for each in self.waiting[queue] if each.priority == priority]
        due = [each for each in due if not self.is_behind_the_fence(each)]
        self.waiting[queue] = [each for each in self.waiting[queue] if each not in due]
        self.parked += due[1:] if self.broken.loses_parked else due

    def _deliver(self, queue, priority, take):
        now, kept = self.clock.now(), []
        room, ordered = self.room.get(queue, math.inf), self._in_order(queue)
        # A worker may schedule more meanwhile, which are met at the next look.
        self.waiting[queue] = []
        for waiting in ordered:
            visible = waiting.job.due + self._shift
            if visible > now or waiting.priority != priority or room <= 0 or self._has_no_tick(waiting):
                kept.append(waiting)
            elif not waiting.cancelled or self.broken.drops_cancels:
                self.taken += 1
                for _ in range(2 if self.broken.twice and not self.taken % self.broken.twice else 1):
                    take(waiting, visible)
                room -= 1
        self.waiting[queue] += kept

    def _has_no_tick(self, waiting):
        return waiting.job.route is Route.TABLE and _partition(waiting) == self.broken.without_schedule

    def _in_order(self, queue):
        """Return what waits: those of the tenant with the fewest jobs first, as of fair queues."""
        count = Counter(each.tenant for each in self.waiting[queue])
        return sorted(self.waiting[queue], key=lambda each: 0 if self.broken.unfair else count[each.tenant])


def _partition(waiting: Waiting) -> int:
    return JobId.parse(waiting.job.id).partition.number


def settings_of(name):
    return a_queue(name=name, partitions=PARTITIONS.get(name, 1), priorities=LEVELS_OF.get(name, 1))


def as_deployed(names: Names, otherwise: dict[str, dict[str, Any]]) -> AsDeployed:
    """Return a deployment that is as it must be, but for what is `otherwise`."""
    queues = [settings_of(queue) for queue in QUEUES]
    levels = {names.queue(each.name, level): each for each in queues for level in range(1, each.priorities + 1)}
    dead_letters = {name: names.queue_dlq(queue.name) for name, queue in levels.items()}
    dead_letters[names.inbound] = names.inbound_dlq
    keeping = [*dead_letters.values(), names.dispatch_dlq, names.tick_dlq]
    partitions = [partition for queue in (*queues, PLANNER) for partition in queue.all_partitions()]
    schedules = [*(names.schedule(each.queue, each.number) for each in partitions), names.watch, names.planner_watch]
    tables = (names.table, names.state, names.once)
    told: dict[str, dict[str, Any]] = {
        "schedules": dict.fromkeys(schedules, True),
        "dead_letters": dead_letters,
        "days": dict.fromkeys(dead_letters, 4) | dict.fromkeys(keeping, 14),
        "expiring": dict.fromkeys(tables, True),
        "deletable": dict.fromkeys(tables, False),
        "alarms": {"late": True, "dead letters": True},
    }
    for what, changed in otherwise.items():
        told[what] = {name: value for name, value in (told[what] | changed).items() if value is not None}
    return AsDeployed(**told)


def _landed(waiting: Waiting, visible: datetime) -> Landed:
    sent = visible - timedelta(seconds=1)
    return Landed(id=waiting.job.id, body=json.dumps(waiting.payload), sent=sent, visible=visible)


@dataclass
class FakeClient:
    """What checks ask of a client."""

    of: FakeSandbox
    keys: dict[str, tuple[Any, Job]] = field(default_factory=dict)

    def queues(self):
        return [settings_of(name) for name in (*QUEUES, *self.of.strange)]

    def queue(self, name):
        scheduled = len(self.of.waiting[name])
        depth = Depth(waiting=0, in_flight=0, delayed=0)
        dead = sum(each.job.queue == name for each in self.of.dead)
        told = {"more_scheduled": False, "next_due": None, "fence_age": None, "dead": dead}
        return Overview(scheduled=scheduled, levels=(depth,), **told)

    def get(self, id):
        is_parked = any(each.job.id == id for each in self.of.parked)
        return SimpleNamespace(state=State.PARKED if is_parked else State.SCHEDULED)

    def schedule_many(self, queue, jobs):
        now = self.of.clock.now()
        if self.of.fault == "table":
            self.of.ring("ApiFaults")
            return [Unavailable("the table cannot be written") for _ in jobs]
        dues = [job.at or now + timedelta(seconds=job.delay or 0) for job in jobs]
        pairs = zip(jobs, dues, strict=True)
        return [self.of.add(queue, job.payload, due, priority=job.priority, tenant=job.tenant) for job, due in pairs]

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
        if "ingest" in self.of.stopped_functions and at <= self.of.fence(found.job.queue):
            self.of.ring("InboundAge")
        return self.of.add(found.job.queue, found.payload, at, number=_partition(found))
