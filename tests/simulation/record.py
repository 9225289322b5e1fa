"""What was requested, answered and sent in a world, and the promises that this is checked against, by their names."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile

from dueline.core import instant, rows, tick
from dueline.core.dispatch import PAST_RETENTION
from dueline.core.job import JobId, Partition, Route, State, StoredJob, SubmitResult
from dueline.core.move import Intent
from dueline.core.rows import Key, Row
from dueline.schedules.definition import CatchUp, Definition
from dueline.schedules.head import Head, jitter

CLOCKS_DIFFER = 5.0
# Two processes' clocks, and the part of a second that a TTL leaves out.
TTL_DIFFERS = CLOCKS_DIFFER + 1
SQS_DIFFERS = timedelta(seconds=0.02)


class Violation(AssertionError):
    """A promise does not hold. `promise` is its name."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A job as it reached its queue: when a worker sees it, by the clock of who sent it, `by` name, under a key.

    `level` is the priority of the SQS queue that it reached, `priority` what it was submitted with. `submission` names
    its submission, if it had no key. `rule` is the number of the definition by which a `schedule` made it.
    """

    id: JobId
    queue: str
    visible: datetime
    by: str
    key: str | None = None
    level: int = 1
    priority: int = 1
    submission: str | None = None
    rule: int | None = None
    name: str | None = None
    content: int | None = None
    schedule: str | None = None
    scheduled_for: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Parked:
    """A job as it reached the dispatch dead-letter queue, at a time by the clock of who parked it."""

    job: StoredJob
    reason: str
    at: datetime


# Schedules. Their times are computed here on their own, not by the code under test.
Schedule = tuple[str, str]
# A run as its handler sees it: of which schedule, by which definition, for when.
Run = tuple[str, str, str, datetime]
ON_TIME, A_MOMENT = timedelta(seconds=60), timedelta(microseconds=1)
NEVER = datetime.min.replace(tzinfo=UTC)
FOREVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """A generation, and when its head was put, in seconds from the beginning of the world.

    It was `decided` when its caller had read the one before, by that caller's clock.
    """

    head: Head
    at: float
    decided: datetime = NEVER


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """The runs of a generation after one instant, up to another, are planned, as it was decided at a time."""

    generation: int
    after: datetime
    until: datetime
    decided: datetime


@dataclass(kw_only=True, slots=True)
class ScheduleRecord:
    """All versions of schedules. `jobs` were submitted for them by any process, `planned` when heads said so."""

    versions: dict[Schedule, list[Version]] = field(default_factory=lambda: defaultdict(list))
    steps: dict[Schedule, list[Step]] = field(default_factory=lambda: defaultdict(list))
    jobs: dict[JobId, StoredJob] = field(default_factory=dict)
    planned: dict[JobId, float] = field(default_factory=dict)
    answers: int = 0
    ended: datetime | None = None

    def latest(self) -> list[Head]:
        return [versions[-1].head for versions in self.versions.values()]

    def note_step(self, schedule: Schedule, step: Step, *, at: float) -> None:
        self.steps[schedule].append(step)
        for id, job in self.jobs.items():
            is_of_step = job.scheduled_for is not None and step.after < job.scheduled_for <= step.until
            if is_of_step and (id.queue, job.schedule) == schedule:
                self.planned.setdefault(id, at)

    def check_answer(self, schedule: Schedule, head: Head, *, began: float) -> None:
        """Check a caller's answer: a generation that versions during the call, and from when on."""
        self.answers += 1
        versions = self.versions[schedule]
        version = versions[head.generation - 1] if head.generation <= len(versions) else None
        if version is None or (head.start, head.definition) != (version.head.start, version.head.definition):
            raise Violation("as answered", f"{schedule} was answered {head.generation} from {head.start}, which is not")
        following = versions[head.generation : head.generation + 1]
        if following and following[0].at < began:
            raise Violation("as answered", f"{schedule} was answered {head.generation} when another served")

    def check_all_goes_on(self, *, now: datetime) -> None:
        """Raise Violation if a run is due by now, and nobody planned it."""
        for schedule, versions in self.versions.items():
            head = versions[-1].head
            steps = [step for step in self.steps[schedule] if step.generation == head.generation]
            planned_to = max((step.until for step in steps), default=head.start)
            scheduled_for = next(_times(head.definition, planned_to), None)
            if head.is_live and scheduled_for is not None and scheduled_for <= now:
                what = f"{schedule} has no run for {scheduled_for}: it is stalled at {planned_to}"
                raise Violation("a schedule does not die", what)

    def check(self, sent: Iterable[Sent], *, gone: Collection[JobId]) -> None:
        """Raise Violation for the first promise that does not hold. `gone` are jobs that settled in another way."""
        came: dict[Run, JobId] = {}
        for each in sent:
            if each.schedule is not None and each.scheduled_for is not None:
                self._check_run(each)
                run = each.id.queue, each.schedule, str(each.rule), each.scheduled_for
                if came.setdefault(run, each.id) != each.id:
                    raise Violation(
                        "one run", f"{came[run]} and {each.id} came for {each.schedule}@{each.scheduled_for}"
                    )
        self._check_what_came({*came, *(_run_of(self.jobs[id]) for id in gone if id in self.jobs)})

    def _check_run(self, sent: Sent) -> None:
        versions = self.versions[sent.id.queue, str(sent.schedule)]
        what = f"{sent.id} came, for {sent.scheduled_for} of rule {sent.rule}"
        serving = [each for each, end in _with_ends(versions) if each.head.start < sent.scheduled_for <= end]
        if not serving or (rule_of(serving[0].head.definition.payload) != str(sent.rule) and serving[0].head.is_live):
            raise Violation("never both", f"{what}, which another served")
        if not serving[0].head.is_live or _is_over(sent.id.due, serving[0].head, versions):
            raise Violation("nothing after a pause", f"{what}, though it was paused or deleted")
        if next(_times(serving[0].head.definition, sent.scheduled_for - A_MOMENT), None) != sent.scheduled_for:
            raise Violation("never both", f"{what}, which is none")
        if sent.scheduled_for <= serving[0].decided and _follows_a_pause(serving[0].head, versions):
            raise Violation("nothing after a pause", f"{what}, of the pause that was over at {serving[0].decided}")

    def _check_what_came(self, came: Collection[Run]) -> None:
        for schedule, versions in self.versions.items():
            for each, end in _with_ends(versions):
                for scheduled_for in self._expected(each.head, versions, end):
                    if (*schedule, rule_of(each.head.definition.payload), scheduled_for) not in came:
                        self._check_missed(schedule, each.head, scheduled_for, is_last=end == FOREVER)

    def _expected(self, head: Head, versions: list[Version], end: datetime) -> Iterator[datetime]:
        if not head.is_live or self.ended is None:
            return
        delay = jitter(head.queue, head.name, head.definition)
        until = min(end, self.ended - delay)
        for scheduled_for in takewhile(lambda each: each <= until, _times(head.definition, head.start)):
            if not _is_over(scheduled_for + delay, head, versions):
                yield scheduled_for

    def _check_missed(self, schedule: Schedule, head: Head, scheduled_for: datetime, *, is_last: bool) -> None:
        steps = [
            step
            for step in self.steps[schedule]
            if step.generation == head.generation and step.after < scheduled_for <= step.until
        ]
        what = f"{schedule} had no run for {scheduled_for}, of generation {head.generation} from {head.start}"
        if not steps and is_last:
            raise Violation("a schedule does not die", f"{what}: nobody planned it")
        if not any(_may_be_missed(head, scheduled_for, now=step.decided) for step in steps):
            raise Violation("never neither", what)


def rule_of(payload: str) -> str:
    """Return the number of the definition that a payload is of."""
    return payload.partition('"rule": ')[2].partition(",")[0].rstrip("}")


def _run_of(job: StoredJob) -> Run:
    return job.id.queue, job.schedule, rule_of(job.payload), job.scheduled_for


def _with_ends(versions: list[Version]) -> Iterator[tuple[Version, datetime]]:
    """Yield each generation with the instant up to which it serves."""
    for each, following in pairwise(versions):
        yield each, following.head.start
    if versions:
        yield versions[-1], FOREVER


def _is_over(due: datetime, head: Head, versions: list[Version]) -> bool:
    """Return whether a generation's run is due after the schedule was paused or deleted, later."""
    later = [each.head for each in versions if each.head.generation > head.generation]
    return any(not each.is_live and each.start < due for each in later)


def _follows_a_pause(head: Head, versions: list[Version]) -> bool:
    return any(each.head.generation == head.generation - 1 and not each.head.is_live for each in versions)


def _times(definition: Definition, after: datetime) -> Iterator[datetime]:
    rule = definition.rule
    number = max(0, (after - rule.start) // rule.every + 1)
    while rule.count is None or number < rule.count:
        yield rule.start + number * rule.every
        number += 1


def _may_be_missed(head: Head, scheduled_for: datetime, *, now: datetime) -> bool:
    """Return whether a run may have got no job by what `catch_up` says, as it was decided then."""
    delay = jitter(head.queue, head.name, head.definition)
    if scheduled_for + delay + ON_TIME >= now:
        return False
    if head.definition.catch_up is CatchUp.LATEST:
        following = next(_times(head.definition, scheduled_for), None)
        return following is not None and following + delay <= now
    return head.definition.catch_up is CatchUp.NONE


# Names, and the keys of single calls.
OF_CALL, BY_KEY = "its call", "once by key"
CALLS = "one per call"
ONE_JOB = "one per name"
LIVES = "answered jobs live"
STAYS = "a cancel leaves no job"
FOUND = "each id leads on"
SAME = "as requested"
UNSENT = "nothing released is sent"


@dataclass(kw_only=True, slots=True)
class NameRecord:
    """The jobs that had a name, by the row of its key, and the jobs that each call made, by its name.

    A call without a name has a row of its own, by its idempotency key, and what it made is OF_CALL.
    """

    jobs: dict[Key, dict[JobId, None]] = field(default_factory=lambda: defaultdict(dict))
    made: dict[tuple[Key, str], dict[JobId, int]] = field(default_factory=lambda: defaultdict(dict))
    # The cancellations that move nothing, by when they were written.
    cancelled: dict[Key, float] = field(default_factory=dict)
    # The ids that callers were answered, and by which of them a call named its job: its repeats name the same.
    answered: dict[Key, dict[JobId, None]] = field(default_factory=lambda: defaultdict(dict))
    handles: dict[tuple[Key, str], JobId] = field(default_factory=dict)
    # For which call a job is to replace another, also if another process moves it.
    intended: dict[JobId, str] = field(default_factory=dict)
    contents: dict[JobId, int] = field(default_factory=dict)
    released: set[JobId] = field(default_factory=set)
    # Jobs of which their calls noted that they were submitted.
    noted: set[JobId] = field(default_factory=set)

    def forget(self, key: Key) -> None:
        """Forget the calls of a key that is claimed: it was free, past the retention of the job that had it last."""
        for named in [each for each in self.made if each[0] == key]:
            del self.made[named]

    def release(self, id: JobId) -> None:
        """Note that a job was refused: its call has made none, and may make another."""
        self.released.add(id)
        for made in self.made.values():
            made.pop(id, None)

    def note_row(self, row: Row, call: str, *, now: datetime) -> None:
        """Note that a key's row names a job that a call made. Raises Violation if that has made another.

        Past the retention of its job, a key is free, and its calls are forgotten.
        """
        id = JobId.parse(str(row["id"]))
        self.jobs[rows.key(row)][id] = None
        if call:
            made = self.made[rows.key(row), call]
            others = [other for other, ttl in made.items() if ttl > now.timestamp() + TTL_DIFFERS and other != id]
            made[id] = int(row["ttl"])
            if others:
                raise Violation(CALLS if call != OF_CALL else BY_KEY, f"call {call} made {id}, and {others[0]}")

    def check(self, key: Key, existing: Mapping[str, Mapping[str, Row]], *, now: datetime) -> None:
        """Raise Violation if several jobs of a name wait, by the rows that there are."""
        waiting = self.waiting(key, existing, now=now)
        if len(waiting) > 1:
            raise Violation(ONE_JOB, f"{' and '.join(map(str, waiting))} wait under {key[1]}")

    def waiting(self, key: Key, existing: Mapping[str, Mapping[str, Row]], *, now: datetime) -> list[JobId]:
        """Return the jobs of a name that wait."""
        return [id for id in self.jobs[key] if waits(id, existing, now=now)]


def waits(id: JobId, existing: Mapping[str, Mapping[str, Row]], *, now: datetime) -> bool:
    """Return whether a tick will send a job, which it does not past its retention."""
    its = existing[str(id.partition)]
    fence, row = rows.read_state(its.get(rows.STATE)).fence, its.get(rows.job_key(id)[1])
    is_over = not rows.is_live(row, now=now + timedelta(seconds=TTL_DIFFERS))
    return not is_over and rows.cancellation_key(id)[1] not in its and fence < instant.text(id.due)


# Jobs.
@dataclass(kw_only=True, slots=True)
class Record:
    """All that happened. Times are in seconds from the beginning of the world."""

    accepted: dict[JobId, StoredJob] = field(default_factory=dict)
    # By the calls that were made for them, whatever was answered.
    attempted: dict[JobId, StoredJob] = field(default_factory=dict)
    submitted: dict[JobId, float] = field(default_factory=dict)
    cancel_requested: dict[JobId, float] = field(default_factory=dict)
    promised: set[JobId] = field(default_factory=set)
    # Reschedules that were sent, or carried out without an intent, by the new job's id; it is in `refused` where the
    # caller was refused.
    intents: dict[JobId, Intent] = field(default_factory=dict)
    refused: set[JobId] = field(default_factory=set)
    sent: list[Sent] = field(default_factory=list)
    parked: list[Parked] = field(default_factory=list)
    put_back: Counter[JobId] = field(default_factory=Counter)
    vanished: set[tuple[str, int]] = field(default_factory=set)
    # The causes of repeats that are allowed: to jobs by name, and by ticks that were interrupted so many times.
    excused: set[JobId] = field(default_factory=set)
    interrupted: Counter[str] = field(default_factory=Counter)
    # When rows were written. TTL may take one of a job to which no whole tick came.
    written: dict[Key, float] = field(default_factory=dict)
    acknowledged: dict[JobId, float] = field(default_factory=dict)
    finished: dict[Partition, list[float]] = field(default_factory=lambda: defaultdict(list))
    collected_early: set[JobId] = field(default_factory=set)
    # A job whose claim was released, and that no other call shared, may come where a caller submitted it by its id.
    released: set[JobId] = field(default_factory=set)
    shared: set[JobId] = field(default_factory=set)
    submitted_by_id: set[JobId] = field(default_factory=set)
    schedules: ScheduleRecord = field(default_factory=ScheduleRecord)
    names: NameRecord = field(default_factory=NameRecord)
    # By how much more than a lease lasts: then any tick may take over from any other.
    clocks_are_off: bool = False

    @property
    def expected(self) -> Iterator[JobId]:
        """The jobs that may come: those accepted, and those that are to replace another."""
        yield from dict.fromkeys([*self.accepted, *self.intents])

    def accept(self, result: SubmitResult, *, at: float) -> None:
        """Note what a caller was answered. Of a repeat only its first call knows where it is."""
        self.accepted.setdefault(result.job.id, result.job)
        self.submitted.setdefault(result.job.id, at)
        if result.state not in (None, State.ACCEPTED):
            self.acknowledged.setdefault(result.job.id, at)

    def is_settled(self, id: JobId) -> bool:
        """Return whether a job, or one that replaced it, was delivered, parked, cancelled, or stayed past retention."""
        parked = sum(each.job.id == id for each in self.parked)
        return (
            rows.cancellation_key(id) in self.written
            or id in self.collected_early
            or any(each.id == id for each in self.sent)
            or parked > self.put_back[id]
            or any(self.is_settled(new) for new, intent in self.intents.items() if intent.old == id)
        )

    def check(self) -> None:
        """Raise Violation for the first promise that does not hold."""
        self._check_what_was_accepted()
        self._check_what_was_sent()
        self._check_what_was_parked()
        self._check_what_was_moved()
        self._check_repeats()
        self._check_keys()
        self._check_submissions()
        self.schedules.check(self.sent, gone={each.job.id for each in self.parked} | self.collected_early)

    def _check_what_was_accepted(self) -> None:
        for id in self.accepted:
            if not self.is_settled(id):
                was_moved = any(intent.old == id for intent in self.intents.values())
                promise = "never neither" if was_moved else "never lost"
                raise Violation(promise, f"{id} is neither in its queue nor in a dead-letter queue")

    def _check_what_was_sent(self) -> None:
        for each in self.sent:
            if each.id in self.names.released:
                raise Violation(UNSENT, f"{each.id} was delivered")
            if each.id in self.promised:
                raise Violation("exact cancel", f"{each.id} was delivered after its cancel was promised")
            # What goes straight to SQS is held for the seconds that its caller gave, as SQS counts them.
            counted = SQS_DIFFERS if each.id.route is Route.DIRECT else timedelta(0)
            if each.visible < each.id.due - counted:
                raise Violation("never early", f"{each.id} is visible at {each.visible}")
            if each.queue != each.id.queue:
                raise Violation("isolation", f"{each.id} is in {each.queue}")
            if each.level != each.priority:
                raise Violation("own level", f"{each.id} of priority {each.priority} is in that of {each.level}")

    def _check_what_was_parked(self) -> None:
        for each in self.parked:
            past_retention = each.reason == PAST_RETENTION and each.at >= each.job.expires
            if not past_retention and (each.job.id.queue, each.job.priority) not in self.vanished:
                raise Violation("never lost", f"{each.job.id} was parked without need: {each.reason}")

    def _check_what_was_moved(self) -> None:
        """Check that no refused job came, and one alone of those that replaced each other."""
        came: dict[JobId, JobId] = {}
        for id in {each.id: None for each in self.sent}:
            if id in self.refused:
                raise Violation("no second job", f"{id} came, though its reschedule was refused")
            other = came.setdefault(self.line_of(id)[-1], id)
            if other != id:
                raise Violation("never both", f"{other} came, and {id}, which replaced it")

    def _check_repeats(self) -> None:
        """Attribute each repeat to a tick that was interrupted, and to none more than the design allows."""
        if self.clocks_are_off:
            return
        attributed: Counter[str] = Counter()
        last: dict[JobId, Sent] = {}
        for each in self.sent:
            before = last.get(each.id)
            if before is not None and each.id not in self.excused:
                attributed[before.by if self.interrupted[before.by] else each.by] += 1
            last[each.id] = each
        for name, repeats in attributed.items():
            allowed = self.interrupted[name] * (tick.CHECKPOINT_JOBS + tick.WAVE_JOBS)
            if repeats > allowed:
                raise Violation("at least once", f"{name} made {repeats} repeats, and is allowed {allowed}")

    def _check_keys(self) -> None:
        for each in self.sent:
            if each.key is None:
                continue
            claimed = self.names.made[rows.idempotency_key(each.id.queue, each.key), OF_CALL]
            first = self.line_of(each.id)[-1]
            came_by_id = first in (self.released - self.shared) & self.submitted_by_id
            if first not in claimed and not came_by_id:
                raise Violation(BY_KEY, f"{each.id} was submitted under key {each.key}, which it never had")

    def _check_submissions(self) -> None:
        """Check that each submission made one job alone, or one that replaced it."""
        came: dict[str, JobId] = {}
        for each in self.sent:
            if each.submission is not None:
                first = self.line_of(each.id)[-1]
                if came.setdefault(each.submission, first) != first:
                    raise Violation("one job", f"{came[each.submission]} came, and {first}, of one submission")

    def line_of(self, id: JobId) -> list[JobId]:
        """Return a job and those that it replaced, the first one last. Raises Violation if one replaced itself."""
        line = [id]
        while (intent := self.intents.get(line[-1])) is not None:
            if intent.old in line:
                raise Violation(ONE_JOB, f"{intent.old} replaced itself")
            line.append(intent.old)
        return line
