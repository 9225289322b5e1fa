"""What schedules were, what was planned of them, and the promises that their runs are held against.

Nominals are counted here by themselves, not by the code that is held against them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from dueline.model.job import Job, JobId
from dueline.schedules.definition import CatchUp, Definition
from dueline.schedules.head import Head
from dueline.schedules.occurrence import jitter
from tests.simulation.broken import Broken

if TYPE_CHECKING:
    from tests.simulation.record import Sent

Schedule = tuple[str, str]
# A run as its handler sees it: of which schedule, by which definition, for which nominal.
Run = tuple[str, str, str, datetime]
ON_TIME, A_MOMENT = timedelta(seconds=60), timedelta(microseconds=1)
NEVER = datetime.min.replace(tzinfo=UTC)
FOREVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """A generation, and when its head was put, in seconds from the beginning of the world.

    It was `decided` on when its caller had read the one before, by that caller's clock.
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
class Timetable:
    """All that schedules were. `jobs` are those that anyone submitted for them, `planned` when heads said so."""

    served: dict[Schedule, list[Served]] = field(default_factory=lambda: defaultdict(list))
    steps: dict[Schedule, list[Step]] = field(default_factory=lambda: defaultdict(list))
    jobs: dict[JobId, Job] = field(default_factory=dict)
    planned: dict[JobId, float] = field(default_factory=dict)
    answers: int = 0
    ended: datetime | None = None

    def latest(self) -> list[Head]:
        return [served[-1].head for served in self.served.values()]

    def note_step(self, schedule: Schedule, step: Step, *, at: float) -> None:
        self.steps[schedule].append(step)
        for id, job in self.jobs.items():
            is_of_step = job.nominal is not None and step.after < job.nominal <= step.until
            if is_of_step and (id.queue, job.schedule) == schedule:
                self.planned.setdefault(id, at)

    def check_answer(self, schedule: Schedule, head: Head, effective_from: datetime, *, began: float) -> None:
        """Hold what a caller was told against what was: a generation that served while it asked, and from when on."""
        self.answers += 1
        served = self.served[schedule]
        told = served[head.generation - 1] if head.generation <= len(served) else None
        if told is None or effective_from != told.head.start or head.definition != told.head.definition:
            raise Broken(
                "as answered", f"{schedule} was answered {head.generation} from {effective_from}, which is not"
            )
        following = served[head.generation : head.generation + 1]
        if following and following[0].at < began:
            raise Broken("as answered", f"{schedule} was answered {head.generation} when another served")

    def check_all_goes_on(self, *, now: datetime) -> None:
        """Raise Broken if a run is due by now, and nobody planned it."""
        for schedule, served in self.served.items():
            head = served[-1].head
            steps = [step for step in self.steps[schedule] if step.generation == head.generation]
            planned_to = max((step.until for step in steps), default=head.start)
            nominal = next(_nominals(head.definition, planned_to), None)
            if head.is_live and nominal is not None and nominal <= now:
                what = f"{schedule} has no run for {nominal}: it stands still at {planned_to}"
                raise Broken("a schedule does not die", what)

    def check(self, sent: Iterable["Sent"], *, gone: Collection[JobId]) -> None:
        """Raise Broken for the first promise that does not hold. `gone` are jobs that settled in another way."""
        came: dict[Run, JobId] = {}
        for each in sent:
            if each.schedule is not None and each.nominal is not None:
                self._check_run(each)
                run = each.id.queue, each.schedule, str(each.rule), each.nominal
                if came.setdefault(run, each.id) != each.id:
                    raise Broken("one run", f"{came[run]} and {each.id} came for {each.schedule}@{each.nominal}")
        self._check_what_came({*came, *(_run_of(self.jobs[id]) for id in gone if id in self.jobs)})

    def _check_run(self, sent: "Sent") -> None:
        served = self.served[sent.id.queue, str(sent.schedule)]
        assert sent.nominal is not None
        what = f"{sent.id} came, for {sent.nominal} of rule {sent.rule}"
        serving = [each for each, end in _with_ends(served) if each.head.start < sent.nominal <= end]
        if not serving or (rule_of(serving[0].head.definition) != str(sent.rule) and serving[0].head.is_live):
            raise Broken("never both", f"{what}, which another served")
        if not serving[0].head.is_live or _is_over(sent.id.due, serving[0].head, served):
            raise Broken("nothing after a pause", f"{what}, though it was paused or deleted")
        if next(_nominals(serving[0].head.definition, sent.nominal - A_MOMENT), None) != sent.nominal:
            raise Broken("never both", f"{what}, which is none")
        if sent.nominal <= serving[0].decided and _follows_a_pause(serving[0].head, served):
            raise Broken("nothing after a pause", f"{what}, of the pause that was over at {serving[0].decided}")

    def _check_what_came(self, came: Collection[Run]) -> None:
        for schedule, served in self.served.items():
            for each, end in _with_ends(served):
                for nominal in self._expected(each.head, served, end):
                    if (*schedule, rule_of(each.head.definition), nominal) not in came:
                        self._check_missed(schedule, each.head, nominal, is_last=end == FOREVER)

    def _expected(self, head: Head, served: list[Served], end: datetime) -> Iterator[datetime]:
        if not head.is_live or self.ended is None:
            return
        put_off = jitter(head.queue, head.name, head.definition)
        until = min(end, self.ended - put_off)
        for nominal in takewhile(lambda each: each <= until, _nominals(head.definition, head.start)):
            if not _is_over(nominal + put_off, head, served):
                yield nominal

    def _check_missed(self, schedule: Schedule, head: Head, nominal: datetime, *, is_last: bool) -> None:
        steps = [
            step
            for step in self.steps[schedule]
            if step.generation == head.generation and step.after < nominal <= step.until
        ]
        what = f"{schedule} had no run for {nominal}, of generation {head.generation} from {head.start}"
        if not steps and is_last:
            raise Broken("a schedule does not die", f"{what}: nobody planned it")
        if not any(_may_be_missed(head, nominal, now=step.decided) for step in steps):
            raise Broken("never neither", what)


def rule_of(definition: Definition) -> str:
    """Return the number of a definition, which its runs carry."""
    return definition.payload.partition('"rule": ')[2].partition(",")[0].rstrip("}")


def _run_of(job: Job) -> Run:
    assert job.schedule is not None
    assert job.nominal is not None
    number = job.payload.partition('"rule": ')[2].partition(",")[0].rstrip("}")
    return job.id.queue, job.schedule, number, job.nominal


def _with_ends(served: list[Served]) -> Iterator[tuple[Served, datetime]]:
    """Yield each generation with the instant up to which it serves."""
    for each, following in pairwise(served):
        yield each, following.head.start
    if served:
        yield served[-1], FOREVER


def _is_over(due: datetime, head: Head, served: list[Served]) -> bool:
    """Tell whether a generation's run is due after the schedule was paused or deleted, later."""
    later = [each.head for each in served if each.head.generation > head.generation]
    return any(not each.is_live and each.start < due for each in later)


def _follows_a_pause(head: Head, served: list[Served]) -> bool:
    return any(each.head.generation == head.generation - 1 and not each.head.is_live for each in served)


def _nominals(definition: Definition, after: datetime) -> Iterator[datetime]:
    rule = definition.rule
    assert rule.every is not None
    assert rule.start is not None
    number = max(0, (after - rule.start) // rule.every + 1)
    while rule.count is None or number < rule.count:
        yield rule.start + number * rule.every
        number += 1


def _may_be_missed(head: Head, nominal: datetime, *, now: datetime) -> bool:
    """Tell whether a run may have got no job by what `catch_up` says, as it was decided then."""
    put_off = jitter(head.queue, head.name, head.definition)
    if nominal + put_off + ON_TIME >= now:
        return False
    if head.definition.catch_up is CatchUp.LATEST:
        following = next(_nominals(head.definition, nominal), None)
        return following is not None and following + put_off <= now
    return head.definition.catch_up is CatchUp.NONE
