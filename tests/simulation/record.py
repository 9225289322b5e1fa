"""What was asked, answered and sent in a world, and the promises that this is held against, by their names."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from dueline.model import rows
from dueline.model.job import Job, JobId, Partition
from dueline.model.rows import Key
from dueline.protocol import tick
from dueline.protocol.dispatch import PAST_RETENTION
from dueline.protocol.move import Intent
from tests.simulation.broken import Broken
from tests.simulation.timetable import Timetable

# Two processes' clocks, and the part of a second that a TTL knows nothing of.
CLOCKS_DIFFER = 6.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A job as it reached its queue: when a worker sees it, by the clock of who sent it, `by` name, under a key.

    `level` is whose SQS queue it reached, `priority` what it was submitted with. `asked` names its submission, if it
    had no key. `rule` is the number of the definition by which a `schedule` made it for a `nominal`.
    """

    id: JobId
    queue: str
    visible: datetime
    by: str
    key: str | None = None
    level: int = 1
    priority: int = 1
    asked: str | None = None
    rule: int | None = None
    schedule: str | None = None
    nominal: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A key that was claimed for a job, from when until when."""

    id: JobId
    at: float
    until: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Parked:
    """A job as it reached the dispatch dead-letter queue, at a time by the clock of who parked it."""

    job: Job
    reason: str
    at: datetime


@dataclass(kw_only=True, slots=True)
class Record:
    """All that happened. Times are in seconds from the beginning of the world."""

    accepted: dict[JobId, Job] = field(default_factory=dict)
    # By the calls that were made for them, whatever was answered.
    attempted: dict[JobId, Job] = field(default_factory=dict)
    submitted: dict[JobId, float] = field(default_factory=dict)
    asked_back: dict[JobId, float] = field(default_factory=dict)
    promised: set[JobId] = field(default_factory=set)
    # Those that were sent, or carried out without. By the new job's id, which `refused` names where the caller was told
    # that there is none.
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
    outlived: set[JobId] = field(default_factory=set)
    claims: dict[Key, list[Claim]] = field(default_factory=lambda: defaultdict(list))
    timetable: Timetable = field(default_factory=Timetable)

    @property
    def expected(self) -> Iterator[JobId]:
        """The jobs that may come: those accepted, and those that are to take another's place."""
        yield from dict.fromkeys([*self.accepted, *self.intents])

    def is_settled(self, id: JobId) -> bool:
        """Tell whether a job is where it had to go, or one that may have taken its place.

        Or whether it was taken back, or stayed beyond its retention.
        """
        parked = sum(each.job.id == id for each in self.parked)
        return (
            rows.cancellation_key(id) in self.written
            or id in self.outlived
            or any(each.id == id for each in self.sent)
            or parked > self.put_back[id]
            or any(self.is_settled(new) for new, intent in self.intents.items() if intent.old == id)
        )

    def is_calm(self) -> bool:
        return all(map(self.is_settled, self.accepted))

    def check(self) -> None:
        """Raise Broken for the first promise that does not hold."""
        self._check_what_was_accepted()
        self._check_what_was_sent()
        self._check_what_was_parked()
        self._check_what_was_moved()
        self._check_repeats()
        self._check_keys()
        self._check_submissions()
        self.timetable.check(self.sent, gone={each.job.id for each in self.parked} | self.outlived)

    def _check_what_was_accepted(self) -> None:
        for id in self.accepted:
            if not self.is_settled(id):
                was_moved = any(intent.old == id for intent in self.intents.values())
                promise = "never neither" if was_moved else "never lost"
                raise Broken(promise, f"{id} is neither in its queue nor in a dead-letter queue")

    def _check_what_was_sent(self) -> None:
        for each in self.sent:
            if each.id in self.promised:
                raise Broken("exact cancel", f"{each.id} was delivered after its cancel was promised")
            if each.visible < each.id.due:
                raise Broken("never early", f"{each.id} is visible at {each.visible}")
            if each.queue != each.id.queue:
                raise Broken("isolation", f"{each.id} is in {each.queue}")
            if each.level != each.priority:
                raise Broken("own level", f"{each.id} of priority {each.priority} is in that of {each.level}")

    def _check_what_was_parked(self) -> None:
        for each in self.parked:
            past_retention = each.reason == PAST_RETENTION and each.at >= each.job.expires
            if not past_retention and (each.job.id.queue, each.job.priority) not in self.vanished:
                raise Broken("never lost", f"{each.job.id} was parked without need: {each.reason}")

    def _check_what_was_moved(self) -> None:
        """Let no refused job come, and one job alone of those that took each other's place."""
        came: dict[JobId, JobId] = {}
        for id in {each.id: None for each in self.sent}:
            if id in self.refused:
                raise Broken("no second job", f"{id} came, though its reschedule was refused")
            other = came.setdefault(self._first_of(id), id)
            if other != id:
                raise Broken("never both", f"{other} came, and {id}, which took its place")

    def _check_repeats(self) -> None:
        """Lay each repeat at the door of a tick that was interrupted, and of no tick more than design allows."""
        laid: Counter[str] = Counter()
        last: dict[JobId, Sent] = {}
        for each in self.sent:
            before = last.get(each.id)
            if before is not None and each.id not in self.excused:
                laid[before.by if self.interrupted[before.by] else each.by] += 1
            last[each.id] = each
        for name, repeats in laid.items():
            allowed = self.interrupted[name] * (tick.CHECKPOINT_JOBS + tick.WAVE_JOBS)
            if repeats > allowed:
                raise Broken("at least once", f"{name} made {repeats} repeats, and is allowed {allowed}")

    def _check_keys(self) -> None:
        for key, claims in self.claims.items():
            for first, second in pairwise(claims):
                if second.at < first.until - CLOCKS_DIFFER:
                    raise Broken("once by key", f"{second.id} claimed {key[1]}, which {first.id} has")
        for each in self.sent:
            claimed = {claim.id for claim in self._claims_of(each)}
            if each.key is not None and self._first_of(each.id) not in claimed:
                raise Broken("once by key", f"{each.id} was submitted under key {each.key}, which it never had")

    def _check_submissions(self) -> None:
        """Let one job alone come of each submission, or one that took its place."""
        came: dict[str, JobId] = {}
        for each in self.sent:
            if each.asked is not None:
                first = self._first_of(each.id)
                if came.setdefault(each.asked, first) != first:
                    raise Broken("one job", f"{came[each.asked]} came, and {first}, of one submission")

    def _first_of(self, id: JobId) -> JobId:
        """Return the job whose place a job took, by one reschedule or several."""
        while id in self.intents:
            id = self.intents[id].old
        return id

    def _claims_of(self, sent: Sent) -> list[Claim]:
        return [] if sent.key is None else self.claims[rows.idempotency_key(sent.id.queue, sent.key)]
