"""Scenario `schedules`: they are changed while those who plan, change and send their runs are killed.

Each runs every 60 s, at a second of the minute of its own. At the end the generations in the heads say which runs must
have come: the instants at which runs are due are counted here, not by the code under test.
"""

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

import httpx

from dueline.aws.dynamodb import DynamoTable
from dueline.core.queue_settings import PLANNER as PLANNER_QUEUE
from dueline.schedules.head import Generation, Head, read_head
from tests.acceptance.inbox import Landed
from tests.e2e.chaos.deployment import Deployment
from tests.e2e.chaos.kills import API, PLANNER, TICK, Killer
from tests.e2e.chaos.ledger import FAULTS, MOST_TRIES, Ledger, Report
from tests.e2e.chaos.proxy import straight
from tests.e2e.deployed import not_slow
from tests.waiting import HANG_SECONDS, wait_until

QUEUES = ("emails", "invoices")
EVERY, FOREVER = timedelta(seconds=60), datetime.max.replace(tzinfo=UTC)
LANES = 3
# Deployed, SQS delivers a planning job again 3 minutes after its planner was killed.
PLANNER_VISIBILITY_SECONDS = 6
# One in so many is never changed: it is planned from step to step.
UNCHANGED_ONE_IN = 5
# A head keeps the last 20 generations: so all of them are known at the end.
MOST_CHANGES = 18
ANSWERS = {200, 201, 404}
# What follows most often upon what a schedule is, as far as is known.
NEXT = {
    "put": ("put", "put", "pause", "pause", "delete"),
    "resume": ("put", "pause", "delete"),
    "pause": ("resume", "resume", "resume", "put", "delete"),
    "delete": ("put", "put", "put", "pause"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How much there is of it.

    For `seconds` schedules are changed and processes killed; for `tail` seconds after the last change what is then runs
    on. Rules that are put run first in from so many to so many seconds, their `lead`.
    """

    schedules: int
    changes: int
    kills: int
    seconds: float
    lead: tuple[float, float]
    tail: float
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """A schedule's queue and name."""

    queue: str
    name: str

    @property
    def path(self) -> str:
        return f"/queues/{self.queue}/schedules/{self.name}"


# A run: its schedule, and the instant that the rule names.
Run = tuple[Schedule, datetime]
# What each schedule was, in order.
Generations = Mapping[Schedule, list[Generation]]


def run(plan: Plan, deployment: Deployment) -> Report:
    """Change schedules and kill; compare what came with the rules."""
    deployment.start()
    ledger, report = Ledger(), Report(details=[f"seed {plan.seed}"])
    planner_queue = deployment.queue_url(deployment.settings.names.queue(PLANNER_QUEUE.name))
    deployment.emulator.client("sqs").set_queue_attributes(
        QueueUrl=planner_queue, Attributes={"VisibilityTimeout": str(PLANNER_VISIBILITY_SECONDS)}
    )
    changes = Changes(ledger, deployment.http, random.Random(plan.seed))
    with ledger.receiving(deployment, *QUEUES):
        kills = _change_and_kill(plan, deployment, changes)
        until = max(datetime.now(UTC), *(head.start for head in heads(deployment).values()))
        until += timedelta(seconds=plan.tail)
        wait_until(lambda: datetime.now(UTC) > until)
        wait_until(lambda: not _runs(deployment, ledger).missing(until), every=0.5)
        report.expect(deployment.wait_for_ticks(until, QUEUES), "ticks have ended")
        wait_until(lambda: not _dead(deployment, until), every=0.5)
    runs = _runs(deployment, ledger)
    report.complaints += runs.complaints(until)
    dead = _dead(deployment, until)
    report.expect(not dead, f"a schedule does not die: {dead}")
    others = not_slow(deployment.tick_faults, "ProvisionedThroughputExceeded", "Worker process died")
    report.expect(not others, f"ticks failed for another reason: {others}")
    report.expect(set(ledger.statuses) <= ANSWERS | FAULTS, f"callers were answered {dict(ledger.statuses)}")
    dead_letters = deployment.dead_letters()
    report.expect(not dead_letters, f"parked: {dead_letters}")
    report.figures |= {
        "schedules": len(runs.generations),
        "generations": sum(map(len, runs.generations.values())),
        "changes answered": dict(changes.answered),
        "answers": dict(ledger.statuses),
        "kills": dict(kills),
        "runs that had to come": len(runs.expected(until)),
        "runs that came": len(ledger.times),
    }
    return report


def _change_and_kill(plan: Plan, deployment: Deployment, changes: "Changes") -> Counter[str]:
    """Put all schedules, then change them until there was enough of everything; return the kills."""
    killer = Killer((API, TICK, PLANNER), kills=plan.kills, seconds=plan.seconds, seed=plan.seed)
    deployment.proxy.around = killer
    ends = time.monotonic() + plan.seconds
    schedules = [Schedule(queue=QUEUES[n % len(QUEUES)], name=f"s{n}") for n in range(plan.schedules)]
    changed, pause = schedules[len(schedules) // UNCHANGED_ONE_IN :], LANES * plan.seconds / plan.changes

    def is_enough() -> bool:
        are_all_kinds = changes.answered.keys() >= NEXT.keys()
        return are_all_kinds and changes.answered.total() >= len(schedules) + plan.changes and killer.is_done

    def change(_: int) -> None:
        while time.monotonic() < ends + (0 if is_enough() else HANG_SECONDS):
            changes.change_one(changed, lead=plan.lead)
            time.sleep(changes.random.uniform(0, 2 * pause))

    with ThreadPoolExecutor(LANES) as lanes:
        list(lanes.map(lambda each: changes.put(each, lead=changes.random.uniform(*plan.lead)), schedules))
        list(lanes.map(change, range(LANES)))
    deployment.proxy.around = straight
    return killer.done


# Schedules as they are in the table.


def heads(deployment: Deployment) -> dict[Schedule, Head]:
    """Return the head of each schedule."""
    names = deployment.settings.names
    table = DynamoTable(deployment.emulator.client("dynamodb"), names.table, state=names.state)
    current = [read_head(row) for queue in QUEUES for row in table.heads(queue, after="", limit=1000).rows]
    return {Schedule(queue=head.queue, name=head.name): head for head in current}


def _dead(deployment: Deployment, until: datetime) -> list[str]:
    """Return the schedules that run, but are not planned by now."""
    return [each.path for each, head in heads(deployment).items() if head.is_live and head.planned_to <= until]


def instants(generation: Generation, until: datetime) -> Iterator[datetime]:
    """Yield the instants of the runs of a generation up to an instant."""
    anchor = generation.definition.rule.start
    instant = anchor + max(0, (generation.start - anchor) // EVERY + 1) * EVERY
    while generation.is_live and instant <= min(generation.planned_to, until):
        yield instant
        instant += EVERY


# Callers that change schedules.


class Changes:
    """Changes schedules. Callers give up at a fault, or try again until answered; `answered` counts changes by kind.

    No two rules have the same start, which is their payload, too.
    """

    def __init__(self, ledger: Ledger, http: httpx.Client, choices: random.Random) -> None:
        self.answered: Counter[str] = Counter()
        self.random = choices
        self._ledger = ledger
        self._http = http
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        self._minutes = (now - n * EVERY for n in count(1))
        self._latest: dict[Schedule, str] = {}
        self._counts: Counter[Schedule] = Counter()
        self._lock = threading.Lock()

    def put(self, schedule: Schedule, *, lead: float, tries: int = MOST_TRIES) -> None:
        """Have a schedule run at the second of the minute that comes after `lead` seconds."""
        first = datetime.now(UTC) + timedelta(seconds=lead)
        with self._lock:
            start = (next(self._minutes) + timedelta(seconds=first.second)).isoformat()
        rule = {"every": int(EVERY.total_seconds()), "catch_up": "all", "start": start, "payload": start}
        self._request(schedule, "put", rule, tries=tries)

    def change_one(self, schedules: list[Schedule], *, lead: tuple[float, float]) -> None:
        """Change one of these schedules in any way; a rule that is put runs first in so many to so many seconds."""
        with self._lock:
            left = [each for each in schedules if self._counts[each] < MOST_CHANGES]
        if not left:
            return
        schedule = self.random.choice(left)
        tries, act = self.random.choice((1, MOST_TRIES)), self.random.choice(NEXT[self._latest.get(schedule, "delete")])
        if act == "put":
            self.put(schedule, lead=self.random.uniform(*lead), tries=tries)
        else:
            self._request(schedule, act, tries=tries)

    def _request(self, schedule: Schedule, act: str, rule: dict[str, Any] | None = None, *, tries: int) -> None:
        with self._lock:
            self._counts[schedule] += 1
        answer = self._ledger.answered(tries, partial(self._send, schedule, act, rule))
        if answer.is_success:
            with self._lock:
                self.answered[act] += 1
                self._latest[schedule] = act

    def _send(self, schedule: Schedule, act: str, rule: dict[str, Any] | None) -> httpx.Response:
        method = {"put": "PUT", "delete": "DELETE"}.get(act)
        try:
            if method:
                return self._http.request(method, schedule.path, json=rule)
            return self._http.post(f"{schedule.path}/{act}")
        except httpx.TransportError:
            # As a gateway answers that waits no longer.
            return httpx.Response(httpx.codes.GATEWAY_TIMEOUT)


# What came of them.


@dataclass(kw_only=True, slots=True)
class Runs:
    """The runs that came, to compare with the generations."""

    generations: Generations
    delivered: list[Landed]
    came: dict[Run, set[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.came = defaultdict(set)
        for each in self.delivered:
            self.came[_run_of(each)].add(each.id)

    def expected(self, until: datetime) -> set[Run]:
        pairs = ((schedule, each) for schedule, its in self.generations.items() for each in its)
        return {(schedule, instant) for schedule, each in pairs for instant in instants(each, until)}

    def missing(self, until: datetime) -> set[Run]:
        return self.expected(until) - self.came.keys()

    def complaints(self, until: datetime) -> list[str]:
        """Return the promises that were broken, one a line."""
        broken = {
            "never neither": [_text(run) for run in sorted(self.missing(until), key=str)],
            "one job a run": [f"{_text(run)}: {sorted(ids)}" for run, ids in self.came.items() if len(ids) > 1],
            "never both, nothing after a cut": [_text(run) for run in self.came if not self._is_right(run)],
            "never early": [f"{each}" for each in self.delivered if each.lateness < 0],
            "due at its instant": [f"{each}" for each in self.delivered if each.due != _run_of(each)[1]],
            "by its own rule": [f"{each}" for each in self.delivered if not self._has_its_payload(each)],
        }
        return [f"{promise}: {len(its)}, {'; '.join(its[:5])}" for promise, its in broken.items() if its]

    def _generation_of(self, run: Run) -> Generation | None:
        schedule, instant = run
        return next(
            (each for each in self.generations.get(schedule, []) if each.start < instant <= each.planned_to), None
        )

    def _is_right(self, run: Run) -> bool:
        generation, (_, instant) = self._generation_of(run), run
        return generation is not None and instant in instants(generation, instant)

    def _has_its_payload(self, job: Landed) -> bool:
        generation = self._generation_of(_run_of(job))
        return generation is None or json.loads(job.body) == generation.definition.rule.start.isoformat()


def _runs(deployment: Deployment, ledger: Ledger) -> Runs:
    generations = {
        each: [*reversed(head.generations), replace(head, planned_to=FOREVER)]
        for each, head in heads(deployment).items()
    }
    return Runs(generations=generations, delivered=list(ledger.delivered))


def _run_of(job: Landed) -> Run:
    """Return which run a message says that it is, of the queue in its job's id."""
    name, _, instant = job.attributes["dueline-schedule"].partition("@")
    return Schedule(queue=job.id.partition(".")[0], name=name), datetime.fromisoformat(instant)


def _text(run: Run) -> str:
    schedule, instant = run
    return f"{schedule.queue}/{schedule.name}@{instant.isoformat()}"
