"""Scenario `schedules`: they are changed while those who plan, change and send their runs are killed and throttled.

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
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import httpx

from dueline.aws.dynamodb import DynamoTable
from dueline.core.queue_settings import PLANNER as PLANNER_QUEUE
from dueline.schedules.head import Generation, Head, planning_job, read_head
from tests.e2e.chaos import repeats
from tests.e2e.chaos.deployment import Deployment, reasons
from tests.e2e.chaos.kills import PLANNER, STEPS_OF_SCHEDULES, Killer
from tests.e2e.chaos.ledger import FAULTS, Ledger, Report
from tests.e2e.chaos.network_faults import LostMessages, ThrottledForAWhile
from tests.e2e.chaos.proxy import straight
from tests.e2e.deployed import not_slow
from tests.e2e.inbox import Landed
from tests.waiting import HANG_SECONDS, wait_until

QUEUES = ("emails", "invoices")
EVERY, FOREVER = timedelta(seconds=60), datetime.max.replace(tzinfo=UTC)
LANES, MOST_TRIES = 3, 100
# Deployed, SQS delivers a planning job again 3 minutes after its planner was killed.
PLANNER_VISIBILITY_SECONDS = 6
# One in so many is never changed: it is planned from step to step.
UNCHANGED_ONE_IN = 5
# A head keeps the last 20 generations: so all of them are known at the end.
MOST_CHANGES = 18
IF_MATCH_SHARE = 0.3
# The lookahead of a local run, and a second: sooner no change takes effect.
CUT_AFTER = timedelta(seconds=22)
# Of changes, so many are of any schedule; the others of one of the few that are due next after their cut.
ANY_SHARE, FEW = 0.3, 2
ANSWERS = {200, 201, 404, 412}
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
# Its first planning job is lost: it stands still until the planner's watch finds it.
STILL = Schedule(queue="emails", name="still")


def run(plan: Plan, deployment: Deployment) -> Report:
    """Change schedules and kill, lose a planning job and have the planner watch; compare what came with the rules."""
    deployment.start()
    ledger, report = Ledger(), Report(details=[f"seed {plan.seed}"])
    planner_queue = deployment.queue_url(deployment.settings.names.queue(PLANNER_QUEUE.name))
    deployment.emulator.client("sqs").set_queue_attributes(
        QueueUrl=planner_queue, Attributes={"VisibilityTimeout": str(PLANNER_VISIBILITY_SECONDS)}
    )
    changes = Changes(ledger, deployment.http, random.Random(plan.seed))
    with ledger.receiving(deployment, *QUEUES):
        killer, throttled = _change_and_kill(plan, deployment, changes)
        _check_watch(report, deployment)
        until = max(datetime.now(UTC), *(head.start for head in heads(deployment).values()))
        until += timedelta(seconds=plan.tail)
        wait_until(lambda: datetime.now(UTC) > until)
        wait_until(lambda: not _runs(deployment, changes, ledger).missing(until), every=0.5)
        report.expect(deployment.wait_for_ticks(until, QUEUES), "ticks have ended")
        wait_until(lambda: not _dead(deployment, until), every=0.5)
    runs = _runs(deployment, changes, ledger)
    report.complaints += runs.complaints(until)
    untrue = changes.untrue(runs.spans)
    report.expect(not untrue, f"answered, but not so: {len(untrue)}, {untrue[:3]}")
    dead = _dead(deployment, until)
    report.expect(not dead, f"a schedule does not die: {dead}")
    causes = repeats.causes_of(ledger, list(deployment.proxy.records), killer.done)
    unexplained = repeats.unexplained(causes)
    report.expect(not unexplained, f"{len(unexplained)} runs came more than once for no cause")
    report.details += map(deployment.history_of, unexplained[:3])
    report.expect(killer.is_done, f"{len(killer.done)} of {plan.kills} kills were done")
    others = not_slow(deployment.tick_faults, "ProvisionedThroughputExceeded", "Worker process died")
    report.expect(not others, f"ticks failed for another reason: {others}")
    report.expect(set(ledger.statuses) <= ANSWERS | FAULTS, f"callers were answered {dict(ledger.statuses)}")
    planning = deployment.all_in(deployment.queue_url(deployment.settings.names.queue_dlq(PLANNER_QUEUE.name)))
    dead_letters = deployment.dead_letters()
    report.expect(not dead_letters and not planning, f"parked: {reasons(dead_letters)}, {len(planning)} planning jobs")
    report.figures = {
        "schedules": len(runs.spans),
        "generations": sum(map(len, runs.spans.values())),
        "changes answered": dict(Counter(change.act for change in changes.answered)),
        "answers": dict(ledger.statuses),
        "kills by step": dict(sorted(Counter(map(str, killer.done)).items())),
        "requests throttled": dict(throttled.counts),
        "runs that had to come": len(runs.expected(until)),
        "runs that came": len(ledger.times),
        "repeats by cause": dict(Counter(cause for each in causes.values() for cause in each)),
        "lateness in s": ledger.lateness(),
    }
    return report


def _change_and_kill(plan: Plan, deployment: Deployment, changes: "Changes") -> tuple[Killer, ThrottledForAWhile]:
    """Put all schedules, then change them until there was enough of everything."""
    losing = deployment.proxy.around = LostMessages(text=f'"schedule":"{STILL.name}","generation"')
    changes.put(STILL, lead=max(plan.lead))
    assert wait_until(lambda: losing.lost > 0), "nobody sends the planning job that is to be lost"
    throttled = ThrottledForAWhile(seconds=plan.seconds)
    killer = Killer(kills=plan.kills, seconds=plan.seconds, steps=STEPS_OF_SCHEDULES, around=throttled)
    losing.around, ends = killer, time.monotonic() + plan.seconds
    schedules = [Schedule(queue=QUEUES[n % len(QUEUES)], name=f"s{n}") for n in range(plan.schedules)]
    changed, pause = schedules[len(schedules) // UNCHANGED_ONE_IN :], LANES * plan.seconds / plan.changes

    def is_enough() -> bool:
        answered = list(changes.answered)
        has_changes = len(answered) >= len(schedules) + plan.changes and {each.act for each in answered} >= NEXT.keys()
        return has_changes and throttled.is_over and killer.is_done

    def change(_: int) -> None:
        while time.monotonic() < ends + (0 if is_enough() else HANG_SECONDS):
            changes.change_one(changed, lead=plan.lead)
            time.sleep(changes.random.uniform(0, 2 * pause))

    with ThreadPoolExecutor(LANES) as lanes:
        list(lanes.map(lambda each: changes.put(each, lead=changes.random.uniform(*plan.lead)), schedules))
        list(lanes.map(change, range(LANES)))
    losing.around = straight
    return killer, throttled


def _check_watch(report: Report, deployment: Deployment) -> None:
    """See that the schedule whose planning job was lost stands still until the planner watches, as it does hourly."""
    still, deployment.proxy.around = heads(deployment)[STILL], straight
    report.expect(still.planned_to == still.start, f"{STILL.path} went on though its planning job was lost")
    name = deployment.settings.names.function(PLANNER)
    answer = deployment.emulator.client("lambda").invoke(FunctionName=name, Payload=b'{"watch": true}')
    report.expect("FunctionError" not in answer, f"the watch failed: {answer['Payload'].read()}")

    is_logged = wait_until(lambda: bool(deployment.log_lines("schedules stood still")))
    report.expect(is_logged, "no log says that a schedule stood still")
    goes_on = wait_until(lambda: heads(deployment)[STILL].planned_to > still.planned_to)
    report.expect(goes_on, f"{STILL.path} still stands still after the watch")


# Schedules as they are in the table.


def heads(deployment: Deployment) -> dict[Schedule, Head]:
    """Return the head of each schedule."""
    names = deployment.settings.names
    table = DynamoTable(deployment.emulator.client("dynamodb"), names.table, state=names.state)
    current = [read_head(row) for queue in QUEUES for row in table.heads(queue, after="", limit=1000).rows]
    return {Schedule(queue=head.queue, name=head.name): head for head in current}


def _dead(deployment: Deployment, until: datetime) -> list[str]:
    """Return the schedules that run, but are not planned by now, or of which nobody has the next planning job."""
    done = [record for record in list(deployment.proxy.records) if record.had_effect]
    submitted = {uid for record in done for uid in (*record.rows, *record.sent)}

    def goes_on(head: Head) -> bool:
        job = planning_job(head, head.planned_to, now=head.start)
        return head.planned_to > until and (job.id.uid if job else "") in submitted

    return [each.path for each, head in heads(deployment).items() if head.is_live and not goes_on(head)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A generation: after `start`, up to `end`, a schedule runs each minute from its `anchor` on, or not at all."""

    number: int
    start: datetime
    end: datetime
    anchor: datetime
    is_live: bool
    is_deleted: bool

    @classmethod
    def of(cls, each: Generation) -> "Span":
        anchor = each.definition.rule.start
        assert anchor is not None, each
        times = {"start": each.start, "end": each.end, "anchor": anchor}
        return cls(number=each.number, is_live=each.is_live, is_deleted=each.deleted, **times)

    def instants(self, until: datetime) -> Iterator[datetime]:
        """Yield the instants of its runs up to an instant."""
        instant = self.anchor + max(0, (self.start - self.anchor) // EVERY + 1) * EVERY
        while self.is_live and instant <= min(self.end, until):
            yield instant
            instant += EVERY

    def is_followed_by(self, other: "Span") -> bool:
        return self.number + 1 == other.number and self.end == other.start and self.start <= self.end


# Callers that change schedules.


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The answer to a change: `anchor` is the start of the rule that was put."""

    schedule: Schedule
    act: str
    anchor: datetime | None
    answer: dict[str, Any]

    def is_true(self, spans: Mapping[Schedule, list[Span]]) -> bool:
        """Return whether the schedule was changed as is answered."""
        number, start = int(self.answer["generation"]), datetime.fromisoformat(self.answer["effective_from"])
        span = next((each for each in spans[self.schedule] if each.number == number), None)
        if span is None or (start, datetime.fromisoformat(self.answer["start"])) != (span.start, span.anchor):
            return False
        return {
            "put": self.anchor == span.anchor and not span.is_deleted,
            "pause": not span.is_live and not span.is_deleted,
            "resume": span.is_live,
            "delete": span.is_deleted,
        }[self.act]


class Changes:
    """Changes schedules, and keeps what is answered. Callers give up at a fault, or try again until answered.

    No two rules have the same start: `versions` has by the start which payload goes with a rule.
    """

    def __init__(self, ledger: Ledger, http: httpx.Client, choices: random.Random) -> None:
        self.answered: list[Change] = []
        self.versions: dict[datetime, int] = {}
        self.random = choices
        self._ledger = ledger
        self._http = http
        self._origin = datetime.now(UTC).replace(second=0, microsecond=0)
        self._latest: dict[Schedule, Change] = {}
        self._counts: Counter[Schedule] = Counter()
        self._lock = threading.Lock()

    def put(self, schedule: Schedule, *, lead: float, tries: int = MOST_TRIES) -> None:
        """Have a schedule run at the second of the minute that comes after `lead` seconds."""
        first = datetime.now(UTC) + timedelta(seconds=lead)
        with self._lock:
            version = len(self.versions) + 1
            anchor = self._origin - version * EVERY + timedelta(seconds=first.second)
            self.versions[anchor] = version
        self._request(schedule, "put", anchor, tries=tries)

    def change_one(self, schedules: list[Schedule], *, lead: tuple[float, float]) -> None:
        """Change one of these schedules in any way; a rule that is put runs first in so many to so many seconds."""
        with self._lock:
            left = [each for each in schedules if self._counts[each] < MOST_CHANGES]
        if not left:
            return
        is_any = self.random.random() < ANY_SHARE
        schedule = self.random.choice(left if is_any else self._due_after_a_cut(left))
        tries, latest = self.random.choice((1, MOST_TRIES)), self._latest.get(schedule)
        act = self.random.choice(NEXT[latest.act] if latest else ("put",))
        if act == "put":
            self.put(schedule, lead=self.random.uniform(*lead), tries=tries)
        else:
            self._request(schedule, act, tries=tries)

    def _due_after_a_cut(self, schedules: list[Schedule]) -> list[Schedule]:
        """Return the schedules of which a run is due the soonest after a change that is made now."""
        cut = datetime.now(UTC) + CUT_AFTER

        def wait(schedule: Schedule) -> timedelta:
            latest = self._latest.get(schedule)
            return (datetime.fromisoformat(latest.answer["start"]) - cut) % EVERY if latest else timedelta()

        return sorted(schedules, key=wait)[:FEW]

    def _request(self, schedule: Schedule, act: str, anchor: datetime | None = None, *, tries: int) -> None:
        with self._lock:
            self._counts[schedule] += 1
            latest = self._latest.get(schedule)
        is_matched = latest is not None and self.random.random() < IF_MATCH_SHARE
        headers = {"If-Match": latest.answer["etag"]} if latest and is_matched else {}
        answer = self._ledger.answered(tries, partial(self._send, schedule, act, anchor, headers))
        if answer.is_success:
            change = Change(schedule=schedule, act=act, anchor=anchor, answer=answer.json())
            with self._lock:
                self.answered.append(change)
                self._latest[schedule] = change

    def _send(self, schedule: Schedule, act: str, anchor: datetime | None, headers: dict[str, str]) -> httpx.Response:
        rule: dict[str, Any] = {"every": int(EVERY.total_seconds()), "catch_up": "all"}
        if anchor:
            rule |= {"start": anchor.isoformat(), "payload": {"version": self.versions[anchor]}}
        methods: dict[str, tuple[str, str, Any]] = {
            "put": ("PUT", schedule.path, rule),
            "delete": ("DELETE", schedule.path, None),
        }
        method, path, body = methods.get(act, ("POST", f"{schedule.path}/{act}", None))
        try:
            return self._http.request(method, path, headers=headers, json=body)
        except httpx.TransportError:
            # As a gateway answers that waits no longer.
            return httpx.Response(httpx.codes.GATEWAY_TIMEOUT)

    def untrue(self, spans: Mapping[Schedule, list[Span]]) -> list[str]:
        """Return the answers that are not so, and what is but nobody had put."""
        wrong = [
            f"{each.act} of {each.schedule.path}: {each.answer}" for each in self.answered if not each.is_true(spans)
        ]
        wrong += [f"{span}" for its in spans.values() for span in its if span.anchor not in self.versions]
        wrong += [f"{its[0]} is the first one" for its in spans.values() if its[0].number != 1]
        pairs = (pair for its in spans.values() for pair in pairwise(its))
        return wrong + [f"{one} {other}" for one, other in pairs if not one.is_followed_by(other)]


# What came of them.


def _runs(deployment: Deployment, changes: Changes, ledger: Ledger) -> "Runs":
    generations = {each: [*reversed(head.generations), head.up_to(FOREVER)] for each, head in heads(deployment).items()}
    spans = {schedule: [Span.of(each) for each in its] for schedule, its in generations.items()}
    return Runs(spans=spans, versions=changes.versions, delivered=list(ledger.delivered))


@dataclass(kw_only=True, slots=True)
class Runs:
    """The runs that came, to compare with the spans. `versions` are the payloads of rules, by their anchors."""

    spans: Mapping[Schedule, list[Span]]
    versions: Mapping[datetime, int]
    delivered: list[Landed]
    came: dict[Run, set[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.came = defaultdict(set)
        for each in self.delivered:
            self.came[_run_of(each)].add(each.id)

    def expected(self, until: datetime) -> set[Run]:
        spans = ((schedule, span) for schedule, its in self.spans.items() for span in its)
        return {(schedule, instant) for schedule, span in spans for instant in span.instants(until)}

    def missing(self, until: datetime) -> set[Run]:
        return self.expected(until) - self.came.keys()

    def complaints(self, until: datetime) -> list[str]:
        """Return the promises that were broken, one a line."""
        broken = {
            "never neither": [_text(run) for run in sorted(self.missing(until), key=str)],
            "one job a run": [f"{_text(run)}: {sorted(ids)}" for run, ids in self.came.items() if len(ids) > 1],
            "never both, nothing after a cut": [
                f"{_text(run)}: {why}" for run in self.came if (why := self._wrong(run))
            ],
            "never early": [f"{each.run}: {each.lateness} s" for each in self.delivered if each.lateness < 0],
            "due at its instant": [
                f"{each.run}: {each.due}" for each in self.delivered if each.due != _run_of(each)[1]
            ],
            "by its own rule": [
                f"{each.run}: {each.payload}" for each in self.delivered if not self._has_its_payload(each)
            ],
        }
        return [f"{promise}: {len(its)}, {'; '.join(its[:5])}" for promise, its in broken.items() if its]

    def _span_of(self, run: Run) -> Span | None:
        schedule, instant = run
        return next((each for each in self.spans.get(schedule, []) if each.start < instant <= each.end), None)

    def _wrong(self, run: Run) -> str:
        """Return why there should be no such run, or nothing if there should."""
        span, (schedule, instant) = self._span_of(run), run
        if span is None:
            return "there is no such schedule"
        if instant in span.instants(instant):
            return ""
        before = [each for each in self.spans[schedule] if each.is_live and each.end < instant]
        cut = next((each.end for each in reversed(before) if not (instant - each.anchor) % EVERY), None)
        return f"no rule names it, generation {span.number}" if cut is None else f"after its cut {cut.isoformat()}"

    def _has_its_payload(self, job: Landed) -> bool:
        span = self._span_of(_run_of(job))
        return span is None or json.loads(job.payload) == {"version": self.versions.get(span.anchor)}


def _run_of(job: Landed) -> Run:
    """Return which run a message says that it is, of the queue in its job's id."""
    name, _, instant = str(job.run).partition("@")
    return Schedule(queue=job.id.partition(".")[0], name=name), datetime.fromisoformat(instant)


def _text(run: Run) -> str:
    schedule, instant = run
    return f"{schedule.queue}/{schedule.name}@{instant.isoformat()}"
