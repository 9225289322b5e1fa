"""A history of a world, made of choices: which process does what when, and which faults it meets.

Times are few, so that processes meet: the minutes at which ticks fire, and the seconds around what is due.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dueline.core.queue_settings import PLANNER
from tests.simulation import actions, schedule_history
from tests.simulation.actions import DUE, MOVED_TO
from tests.simulation.choices import Choices, Stream
from tests.simulation.faults import CallFault, Fault, Interleaved, Pause, Plan, SlowAnswer
from tests.simulation.name_history import NameHistory
from tests.simulation.world import (
    CANCELLATION_OUTLIVES_RETENTION,
    LOOKAHEAD,
    MINUTE,
    NO_FAULTS,
    RETAINED,
    FaultSource,
    Running,
    Scale,
    World,
    planned,
)
from tests.wire import Call

SUBMITTED = (0, 0, 30, 60, 90)
AGAIN = (0, 0, 0.1, 5, 30, 300, 700)
INTERLEAVED: Sequence[actions.Action] = (
    *(actions.Cancel(number) for number in (0, 0, 1, 2)),
    *(actions.Reschedule(number, due) for number, due in ((0, 400), (0, 520), (1, 0))),
    *(actions.Tick(number) for number in (0, 0, 0, 1)),
    *(actions.Ingest(), actions.Ingest()),
)
# Of the second in which jobs are due: a wave's batches leave by it.
FRACTIONS = (0.0, 0.0, 0.02, 0.734)
CLOCKS = (0.0, 0.0, 2.5, -2.5, 1.0)
SQS_DIFFERS = (0.0, -0.02, 0.02, -0.007)
PAUSES = (0.3, 8, 12, 25, 29, 31, 61, 130, 300, 700)
FAULTS: tuple[tuple[CallFault, ...] | type, ...] = (
    (CallFault.CRASH_BEFORE, CallFault.CRASH_AFTER),
    (CallFault.LOST_ANSWER,),
    (CallFault.THROTTLED,),
    (CallFault.FIRST_LEFT, CallFault.LAST_LEFT, CallFault.STUCK),
    Pause,
    SlowAnswer,
    Interleaved,
)
HALFWAY = (CallFault.CRASH_BEFORE, CallFault.CRASH_AFTER, CallFault.LOST_ANSWER, CallFault.THROTTLED, Pause(31))
OUTAGE, OUTAGE_ONCE_IN = "outage", 8
LONGEST_THROTTLING = 150
LASTS_LONGER = (30, 120, 600, 1500)
GUARD_FAULTS = (*HALFWAY, Pause(61))
UNTOUCHED = "invoices"
Disturbance = actions.Vanish | actions.Slow | actions.Throttle | actions.Grow
OUTLIVES = CANCELLATION_OUTLIVES_RETENTION.total_seconds()
AN_HOUR = 3600


class History:
    """Writes a world's history. In an isolated one UNTOUCHED has no faults; `alone` leaves out all else."""

    def __init__(self, choices: Choices, *, alone: bool = False) -> None:
        self._choices = choices
        self._alone = alone
        self.due: list[float] = []
        streams = ("climate", "order", "lag", "unseen", "levels", "clocks of SQS")
        climate, order, lag, late, levels, of_sqs = map(choices.stream, streams)
        scale: dict[str, int] = {"page_rows": climate.pick([1000, 1, 2, 3]), "batch": climate.pick([2, 1])}
        scale["checkpoint"] = climate.pick([3, 2, 4])
        partitions = climate.pick([1, 2])
        self._faults, self._once_in = climate.some(FAULTS), climate.pick([0, 40, 15, 6])
        self._clocks_differ, self.is_isolated = climate.once_in(2), climate.once_in(6)
        switches = climate.pick([8, 3, 1])
        self.ends = climate.pick([MINUTE * 11, MINUTE * 11, MINUTE * 19])
        self.priorities = {"emails": levels.pick([1, 2, 3]), UNTOUCHED: levels.pick([1, 2])}
        self._schedules = choices.stream(schedule_history.STREAM)
        self.is_planned = not alone and schedule_history.is_scheduled(self._schedules)
        if self.is_planned:
            scale["cancellations"] = self._schedules.pick([90, 90, 6])
            scale["generations"] = choices.stream(schedule_history.FORGETFUL).pick([20, 20, 20, 1])
        outage = choices.stream(OUTAGE)
        is_guarded = outage.once_in(OUTAGE_ONCE_IN) and not (alone or self.is_planned or self.is_isolated)
        self._outage = Outage(outage) if is_guarded else None
        self._interleaved = [*INTERLEAVED, *schedule_history.interleaved()] if self.is_planned else INTERLEAVED
        self._buffers = {queue: choices.stream(f"{queue}, buffers") for queue in self.priorities}
        self._fractions = {queue: choices.stream(f"{queue}, fractions") for queue in self.priorities}
        self._levels = {queue: choices.stream(f"{queue}, levels") for queue in self.priorities}
        self.world = World(
            Scale(**scale),
            choose=lambda count: order.below(count) if order.once_in(switches) else 0,
            lag=lambda: lag.below(8),
            late=lambda: late.pick([0, 10, 1000]),
            sqs_differs=lambda: of_sqs.pick(SQS_DIFFERS),
            partitions=partitions,
            priorities=(self.priorities["emails"], self.priorities[UNTOUCHED]),
            is_planned=self.is_planned,
            is_guarded=is_guarded,
        )

    def write(self) -> World:
        for queue in self.world.stores.settings:
            if queue != PLANNER.name and (queue == UNTOUCHED or not self._alone):
                self._of_queue(queue)
        if self.is_planned:
            queues = ["emails"] if self.is_isolated else ["emails", "emails", UNTOUCHED]
            written = schedule_history.ScheduleHistory(self, self._schedules, queues=queues)
            written.write()
            if self.world.scale.generations == 1:
                written.forget(self._choices.stream(schedule_history.FORGETFUL))
        if self._outage:
            self._outage.write(self, self.due)
        self._of_ingest(self._choices.stream("ingest"))
        if not self._alone:
            self._disturb(self._choices.stream("trouble"))
        if self.is_isolated:
            # So that what no tick of the history dispatches is not dispatched sooner where less happens.
            self.world.start(actions.Ingest(waiting=()), after=AN_HOUR)
        return self.world

    def _of_queue(self, queue: str) -> None:
        stream = self._choices.stream(queue)
        due: list[float] = []
        for _ in range(stream.pick([1, 2, 3] if queue == "emails" else [0, 0, 1])):
            due += self._submit(stream, queue)
        self.due += due
        names = NameHistory(self, queue, self._choices) if due and not self._is_untouched(queue) else None
        for tick in actions.ticks_of(queue):
            self.of_ticks(stream, tick.partition, due, stands_still=names.stands_still if names else None)
        for _ in range(stream.below(4) if due else 0):
            self.start(actions.Cancel(stream.below(len(due))), after=self.when(stream, due), stream=stream)
        for _ in range(stream.below(3) if due else 0):
            self.start(actions.Work(queue, stream.some(range(3))), after=self.when(stream, due), stream=stream)
        for _ in range(stream.below(3) if due and not self._is_untouched(queue) else 0):
            self._meet(stream, queue, due)
        if names:
            self._of_repeats(self._choices.stream(f"{queue}, again"), due)
            self._of_reschedules(self._choices.stream(f"{queue}, moved"), due)
            names.write()

    def _is_untouched(self, queue: str) -> bool:
        return self.is_isolated and queue == UNTOUCHED

    def _meet(self, stream: Stream, queue: str, due: Sequence[float]) -> None:
        """Let processes that decide a job's fate meet at a moment that matters."""
        at = self.when(stream, due)
        ticks = actions.ticks_of(queue)
        meeting: list[actions.Action] = stream.some([ticks[0], ticks[0], ticks[-1], actions.Ingest(), actions.Ingest()])
        meeting += stream.some([actions.Cancel(number) for number in range(2)])
        for action in meeting:
            self.start(action, after=at, stream=stream)

    def _of_repeats(self, stream: Stream, due: Sequence[float]) -> None:
        """Let callers who may have got no answer submit their jobs again, under the same ids."""
        for _ in range(stream.pick([0, 0, 1, 3])):
            action = actions.Again(stream.below(len(due)), buffered=stream.once_in(4))
            self.start(action, after=self.when(stream, due), stream=stream)

    def _of_reschedules(self, stream: Stream, due: Sequence[float]) -> None:
        """Move jobs, some of them twice at once, and let some callers end halfway: at the intent, or at the move."""
        for _ in range(stream.pick([0, 1, 2, 4])):
            job = stream.below(len(due))
            fence = max(0.0, due[job] - LOOKAHEAD)
            at = stream.pick([min(2 * MINUTE, fence), fence - 1, fence, fence + 1, self.when(stream, due)])
            action = actions.Reschedule(job, stream.pick(MOVED_TO))
            plan = {stream.pick([2, 1]): stream.pick(HALFWAY)} if stream.once_in(3) else None
            self.start(action, after=max(0.0, at), stream=stream, plan=plan)
            others = [action, actions.Reschedule(job, 401), actions.Cancel(job), actions.Ingest(), actions.Tick(0)]
            for other in stream.some(others, once_in=5):
                self.start(other, after=max(0.0, at), stream=stream)
            if stream.once_in(4):
                self._race(actions.Reschedule(job, stream.pick([0, 310])), stream, at=max(0.0, at))

    def _race(self, action: actions.Reschedule, stream: Stream, *, at: float) -> None:
        """Let ingest read an intent just before its caller carries it out, and do the same just after."""
        self.start(action, after=at, stream=stream, plan={2: Pause(2)})
        self.start(actions.Ingest(), after=at + 1, stream=stream, plan={stream.pick([1, 2]): Pause(2)})

    def _submit(self, stream: Stream, queue: str) -> list[float]:
        at = stream.pick(SUBMITTED)
        jobs = stream.pick([1, 2, 3, 6, 12])
        same = stream.once_in(2)
        fraction = self._fractions[queue]
        due = [at + stream.pick(DUE)] * jobs if same else [at + stream.pick(DUE) for _ in range(jobs)]
        due = [each + fraction.pick(FRACTIONS) for each in due]
        keys = [f"key {stream.below(4)}" for _ in due] if stream.once_in(3) else []
        priorities = self._priorities_of(queue, keys, jobs)
        buffered = self._buffers[queue].once_in(3)
        for later in [0.0, *([stream.pick(AGAIN) for _ in range(stream.pick([1, 2]))] if keys else [])]:
            self.start(actions.Submit(due, queue, keys, priorities, buffered), after=at + later, stream=stream)
        return due

    def _priorities_of(self, queue: str, keys: Sequence[str], jobs: int) -> list[int]:
        """Return the priority of each job: the same for all that are submitted under one key."""
        levels, stream = self.priorities[queue], self._levels[queue]
        if keys:
            return [1 + int(key.split()[-1]) % levels for key in keys]
        return [1 + stream.below(levels) for _ in range(jobs)]

    def of_ticks(
        self,
        stream: Stream,
        number: int,
        due: Sequence[float],
        stands_still: Callable[[float], bool] | None = None,
    ) -> None:
        """Fire once a minute; miss some, fire some twice, and now and then stall up to a moment that matters."""
        # Which of two ticks at once has the lease is chance, alone or not.
        is_untouched = self._is_untouched(actions.PARTITIONS[number].queue)
        stalled = (0.0, 0.0) if is_untouched else self._stall(stream, due)
        for minute in range(int(self.ends // MINUTE)):
            at = minute * MINUTE + stream.pick([0, 0, 0, 1, 30])
            times = stream.pick([1, 1, 1, 1, 0, 1 if is_untouched else 2])
            if not (stalled[0] < at < stalled[1] or (stands_still and stands_still(at))):
                for _ in range(times):
                    self.start(actions.Tick(number, stream.pick([170, 45, 5])), after=at, stream=stream)
        if stalled[1] > 0:
            self.start(actions.Tick(number), after=stalled[1], stream=stream)

    def _stall(self, stream: Stream, due: Sequence[float]) -> tuple[float, float]:
        if due and self._outage and self._outage.is_silent:
            return self._outage.span(due)
        if not (due and stream.once_in(3)):
            return 0.0, 0.0
        begins = stream.below(6) * MINUTE
        ends = stream.pick([due[0] - LOOKAHEAD, due[0], due[0] + MINUTE, due[0] + RETAINED])
        return begins, max(0.0, ends + stream.pick([0.0, 1, 3, -1, -3]))

    def when(self, stream: Stream, due: Sequence[float]) -> float:
        """Return a moment that matters: a minute, at which ticks fire, or one at which a job's fate is decided."""
        minute = stream.below(int(self.ends // MINUTE)) * MINUTE
        job = stream.pick(due)
        fence, over = job - LOOKAHEAD, job + RETAINED
        near = stream.pick([minute, minute, minute, fence, fence, fence + 1, fence - 1, job, over - 1, over])
        return max(0.0, near)

    def _of_ingest(self, stream: Stream) -> None:
        begins = stream.pick([0, 0, 60, 180, 300, 420, 600])
        if self.due and stream.once_in(8):
            begins = self._stall_ingest(stream)
        for minute in range(int(self.ends // MINUTE)):
            at = minute * MINUTE + stream.pick([5, 0, 0, 35])
            for _ in range(stream.pick([1, 1, 0, 2])):
                if at >= begins:
                    self.start(self._ingest(stream), after=at, stream=stream)

    def _stall_ingest(self, stream: Stream) -> float:
        """Stall the first ingest while what it has goes past its retention; return when others begin."""
        over = stream.pick(self.due) + RETAINED
        plan = {stream.below(5): Pause(stream.pick([OUTLIVES + 2, OUTLIVES + 3, 130]))}
        self.world.start(actions.Ingest(), after=over + stream.pick([-1, -3]), faults=planned(plan))
        for number in stream.some(range(4)):
            self.world.start(actions.Cancel(number), after=2 * MINUTE)
        return over

    def _ingest(self, stream: Stream) -> actions.Ingest:
        if not stream.once_in(3):
            return actions.Ingest()
        waiting = stream.some(range(6))
        return actions.Ingest(waiting, stream.some(range(6), once_in=4), stream.some(range(6), once_in=4))

    def _disturb(self, stream: Stream) -> None:
        for event, undone in DISTURBANCES:
            happens = stream.once_in(6)
            if happens and not (self.is_isolated and event.queue in ("", UNTOUCHED)):
                at = stream.below(11) * MINUTE
                self.world.happen(event, after=at)
                if undone is not None:
                    self.world.happen(undone, after=at + min(stream.pick([20, 60, 150, 400]), self._longest(event)))
        if stream.once_in(4):
            self.start(actions.PutBack(), after=stream.below(14) * MINUTE, stream=stream)
        if stream.once_in(2):
            self._of_ttl(stream)

    def _longest(self, event: Disturbance) -> float:
        is_guards = self._outage is not None and isinstance(event, actions.Throttle)
        return LONGEST_THROTTLING if is_guards else math.inf

    def _of_ttl(self, stream: Stream) -> None:
        expiries = {job + RETAINED + more for job in self.due for more in (0, 0.5, OUTLIVES, MINUTE)}
        for at in sorted(expiries | {minute * MINUTE for minute in range(10, 24)}):
            if stream.once_in(2):
                self.world.happen(actions.Collect(stream.below(3), stream.pick([1, 2, 3])), after=at)

    def start(
        self,
        action: actions.Action,
        *,
        after: float,
        stream: Stream,
        plan: Plan | None = None,
    ) -> None:
        """Start a process, with the faults of a plan, or with any where there is none."""
        skew = stream.pick(CLOCKS) if self._clocks_differ else 0.0
        if self._alone or self._is_untouched(getattr(action, "queue", "")):
            self.world.start(action, after=after)
        else:
            faults = self._fault_source() if plan is None else planned(plan)
            self.world.start(action, after=after, faults=faults, skew=skew)

    def _fault_source(self) -> FaultSource:
        if not self._faults:
            return NO_FAULTS
        draw = partial(_fault, faults=self._faults, interleaved=self._interleaved)
        return fault_source(self._choices, draw, once_in=self._once_in)


def fault_source(choices: Choices, draw: Callable[[Stream], Fault], *, once_in: int, prefix: str = "") -> FaultSource:
    """Return the faults of one process, by a stream that is named after it: one in so many calls, or never."""
    stream: Stream | None = None

    def faults(me: Running, call: Call) -> Fault | None:
        nonlocal stream
        if not once_in:
            return None
        stream = stream or choices.stream(f"{prefix}{me.process.name}")
        return draw(stream) if stream.once_in(once_in) else None

    return faults


DISTURBANCES: Sequence[tuple[Disturbance, Disturbance | None]] = (
    (actions.Vanish("emails"), actions.Vanish("emails", gone=False)),
    (actions.Vanish("invoices"), actions.Vanish("invoices", gone=False)),
    (actions.Vanish("emails", priority=2), actions.Vanish("emails", gone=False, priority=2)),
    (actions.Slow("emails", 8.0), actions.Slow("emails", 0.0)),
    (actions.Slow("emails", 9.5), actions.Slow("emails", 0.0)),
    (actions.Throttle(), actions.Throttle(on=False)),
    (actions.Throttle("emails"), actions.Throttle("emails", on=False)),
    (actions.Throttle("emails", writes=True), actions.Throttle("emails", on=False)),
    (actions.Grow(), None),
)


def _fault(stream: Stream, faults: Sequence[Any], interleaved: Sequence[actions.Action]) -> Fault:
    kind = stream.pick(faults)
    if isinstance(kind, tuple):
        return stream.pick(kind)
    if kind is Interleaved:
        return Interleaved([stream.pick(interleaved) for _ in range(stream.pick([2, 1]))])
    return kind(stream.pick(PAUSES))


# Outages longer than any retention, while TTL collects all that it may, and its guard looks after what waits.
class Outage:
    """Ticks of a queue stand still, or get nothing through, until long after its jobs' retention."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._ends = 0.0
        self.is_silent = not stream.once_in(3)

    def span(self, due: Sequence[float]) -> tuple[float, float]:
        """Return from when until when ticks stand still."""
        begins = self._stream.below(6) * MINUTE
        ends = max(due) + RETAINED + self._stream.pick(LASTS_LONGER)
        self._ends = max(self._ends, ends)
        return begins, ends

    def write(self, history: "History", due: Sequence[float]) -> None:
        """Let the guard look each minute, now and then in trouble, and TTL take whatever it may."""
        if not self.is_silent:
            begins, ends = self.span(due or [0.0])
            history.world.happen(actions.Slow("emails", 60.0), after=begins)
            history.world.happen(actions.Slow("emails", 0.0), after=ends)
        for minute in range(int(self._ends // MINUTE) + 3):
            is_in_trouble = minute % 2 and self._stream.once_in(2)
            plan: Plan = {self._stream.below(8): self._stream.pick(GUARD_FAULTS)} if is_in_trouble else {}
            history.start(actions.Guard(), after=minute * MINUTE + 7, stream=self._stream, plan=plan)
        expiries = {each + RETAINED + more for each in due for more in (0, 0.5)}
        for at in sorted(expiries | {minute * MINUTE for minute in range(10, int(self._ends // MINUTE) + 2)}):
            history.world.happen(actions.Collect(), after=at)
