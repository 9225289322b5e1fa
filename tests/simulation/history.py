"""A history of a world, made of choices: who does what when, and what befalls whom.

Few instants, so that processes meet: the minutes at which ticks fire, and the seconds around what is due.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dueline.model.queue_settings import PLANNER
from tests.simulation import acts, outages, schedules
from tests.simulation.choices import Choices, Stream
from tests.simulation.mishaps import Fault, Meanwhile, Mishap, Pause, Plan, SlowAnswer
from tests.simulation.world import (
    CANCELLATION_OUTLIVES_RETENTION,
    PERIODS,
    RETENTION,
    Befall,
    Running,
    Scale,
    World,
    by,
)
from tests.wire import Call

DUE = (400, 400, 400, 401, 400.5, 310, 460, 5, 100, 520, 700)
MOVED_TO = (400, 400, 401, 310, 460, 0, 520, 700)
SUBMITTED = (0, 0, 30, 60, 90)
AGAIN = (0, 0, 0.1, 5, 30, 300, 700)
VISITORS: Sequence[acts.Act] = (
    *(acts.Cancel(number) for number in (0, 0, 1, 2)),
    *(acts.Reschedule(number, due) for number, due in ((0, 400), (0, 520), (1, 0))),
    *(acts.Tick(number) for number in (0, 0, 0, 1)),
    *(acts.Ingest(), acts.Ingest()),
)
CLOCKS = (0.0, 0.0, 2.5, -2.5, 1.0)
PAUSES = (0.3, 8, 12, 25, 29, 31, 61, 130, 300, 700)
MISHAPS: tuple[tuple[Fault, ...] | type, ...] = (
    (Fault.CRASH_BEFORE, Fault.CRASH_AFTER),
    (Fault.LOST_ANSWER,),
    (Fault.THROTTLED,),
    (Fault.FIRST_LEFT, Fault.LAST_LEFT, Fault.STUCK),
    Pause,
    SlowAnswer,
    Meanwhile,
)
HALFWAY = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_ANSWER, Fault.THROTTLED, Pause(31))
UNTOUCHED = "invoices"
Trouble = acts.Vanish | acts.Slow | acts.Throttle | acts.Grow
LOOKAHEAD = PERIODS.lookahead.total_seconds()
RETAINED = RETENTION.total_seconds()
OUTLIVES = CANCELLATION_OUTLIVES_RETENTION.total_seconds()
MINUTE = 60
AN_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Climate:
    """What may happen at all in a history, and how often."""

    scale: Scale
    partitions: int
    mishaps: Sequence[Any]
    once_in: int
    clocks_differ: bool
    isolated: bool
    switches_once_in: int
    ends: float


def climate_of(stream: Stream) -> Climate:
    scale = Scale(
        page_rows=stream.pick([1000, 1, 2, 3]), batch=stream.pick([2, 1]), wave=2, checkpoint=stream.pick([3, 2, 4])
    )
    return Climate(
        scale=scale,
        partitions=stream.pick([1, 2]),
        mishaps=stream.some(MISHAPS),
        once_in=stream.pick([0, 40, 15, 6]),
        clocks_differ=stream.once_in(2),
        isolated=stream.once_in(6),
        switches_once_in=stream.pick([8, 3, 1]),
        ends=stream.pick([MINUTE * 11, MINUTE * 11, MINUTE * 19]),
    )


class History:
    """Writes a world's history. In an isolated one nothing befalls UNTOUCHED; `alone` leaves out all else."""

    def __init__(self, choices: Choices, *, alone: bool = False) -> None:
        self._choices = choices
        self._alone = alone
        self._due: list[float] = []
        self.climate = climate_of(choices.stream("climate"))
        order, lag, late, levels = (choices.stream(name) for name in ("order", "lag", "unseen", "levels"))
        self.priorities = {"emails": levels.pick([1, 2, 3]), UNTOUCHED: levels.pick([1, 2])}
        self._schedules = choices.stream(schedules.STREAM)
        self.is_planned = not alone and schedules.is_scheduled(self._schedules)
        scale = self.climate.scale
        if self.is_planned:
            few, kept = self._schedules.pick([90, 90, 6]), choices.stream(schedules.FORGETFUL).pick([20, 20, 20, 1])
            scale = replace(scale, cancellations=few, generations=kept)
        outage = choices.stream(outages.STREAM)
        is_guarded = outage.once_in(outages.ONCE_IN) and not (alone or self.is_planned or self.climate.isolated)
        self._outage = outages.Outage(outage, retained=RETAINED) if is_guarded else None
        self._visitors = [*VISITORS, *schedules.visitors()] if self.is_planned else VISITORS
        self._buffers = {queue: choices.stream(f"{queue}, buffers") for queue in self.priorities}
        self._levels = {queue: choices.stream(f"{queue}, levels") for queue in self.priorities}
        self.world = World(
            scale,
            choose=lambda count: order.below(count) if order.once_in(self.climate.switches_once_in) else 0,
            lag=lambda: lag.below(8),
            late=lambda: late.pick([0, 10, 1000]),
            partitions=self.climate.partitions,
            priorities=(self.priorities["emails"], self.priorities[UNTOUCHED]),
            is_planned=self.is_planned,
            is_guarded=is_guarded,
        )

    def write(self) -> World:
        for queue in self.world.stores.settings:
            if queue != PLANNER.name and (queue == UNTOUCHED or not self._alone):
                self._of_queue(queue)
        if self.is_planned:
            queues = ["emails"] if self.climate.isolated else ["emails", "emails", UNTOUCHED]
            written = schedules.ScheduleHistory(self, self._schedules, queues=queues)
            written.write()
            if self.world.scale.generations == 1:
                written.forget(self._choices.stream(schedules.FORGETFUL))
        if self._outage:
            self._outage.write(self, self._due)
        self._of_ingest(self._choices.stream("ingest"))
        if not self._alone:
            self._of_trouble(self._choices.stream("trouble"))
        if self.climate.isolated:
            # So that what no tick of the history hands over is not handed over sooner where less happens.
            self.world.start(acts.Ingest(waiting=()), after=AN_HOUR)
        return self.world

    def _of_queue(self, queue: str) -> None:
        stream = self._choices.stream(queue)
        due: list[float] = []
        for _ in range(stream.pick([1, 2, 3] if queue == "emails" else [0, 0, 1])):
            due += self._submit(stream, queue)
        self._due += due
        for number, partition in enumerate(acts.PARTITIONS):
            if partition.queue == queue:
                self.of_ticks(stream, number, due)
        for _ in range(stream.below(4) if due else 0):
            self.start(acts.Cancel(stream.below(len(due))), after=self._when(stream, due), stream=stream)
        for _ in range(stream.below(3) if due else 0):
            self.start(acts.Work(queue, stream.some(range(3))), after=self._when(stream, due), stream=stream)
        for _ in range(stream.below(3) if due and not self._is_untouched(queue) else 0):
            self._meet(stream, queue, due)
        if due and not self._is_untouched(queue):
            self._of_repeats(self._choices.stream(f"{queue}, again"), due)
            self._of_reschedules(self._choices.stream(f"{queue}, moved"), due)

    def _is_untouched(self, queue: str) -> bool:
        return self.climate.isolated and queue == UNTOUCHED

    def _meet(self, stream: Stream, queue: str, due: Sequence[float]) -> None:
        """Let processes that decide a job's fate meet at a telling moment."""
        at = self._when(stream, due)
        ticks = [acts.Tick(number) for number, partition in enumerate(acts.PARTITIONS) if partition.queue == queue]
        meeting: list[acts.Act] = stream.some([ticks[0], ticks[0], ticks[-1], acts.Ingest(), acts.Ingest()])
        meeting += stream.some([acts.Cancel(number) for number in range(2)])
        for act in meeting:
            self.start(act, after=at, stream=stream)

    def _of_repeats(self, stream: Stream, due: Sequence[float]) -> None:
        """Let callers who may have heard nothing submit their jobs again, under the same ids."""
        for _ in range(stream.pick([0, 0, 1, 3])):
            act = acts.Again(stream.below(len(due)), buffered=stream.once_in(4))
            self.start(act, after=self._when(stream, due), stream=stream)

    def _of_reschedules(self, stream: Stream, due: Sequence[float]) -> None:
        """Move jobs, some of them twice at once, and let some callers end halfway: at the intent, or at the move."""
        for _ in range(stream.pick([0, 1, 2, 4])):
            job = stream.below(len(due))
            fence = max(0.0, due[job] - LOOKAHEAD)
            at = stream.pick([min(2 * MINUTE, fence), fence - 1, fence, fence + 1, self._when(stream, due)])
            act = acts.Reschedule(job, stream.pick(MOVED_TO))
            plan = {stream.pick([2, 1]): stream.pick(HALFWAY)} if stream.once_in(3) else {}
            self.start(act, after=max(0.0, at), stream=stream, plan=plan)
            others = [act, acts.Reschedule(job, 401), acts.Cancel(job), acts.Ingest(), acts.Tick(0)]
            for other in stream.some(others, once_in=5):
                self.start(other, after=max(0.0, at), stream=stream)
            if stream.once_in(4):
                self._race(acts.Reschedule(job, stream.pick([0, 310])), stream, at=max(0.0, at))

    def _race(self, act: acts.Reschedule, stream: Stream, *, at: float) -> None:
        """Let ingest look at an intent just before its caller carries it out, and come to do the same just after."""
        self.start(act, after=at, stream=stream, plan={2: Pause(2)})
        self.start(acts.Ingest(), after=at + 1, stream=stream, plan={stream.pick([1, 2]): Pause(2)})

    def _submit(self, stream: Stream, queue: str) -> list[float]:
        at = stream.pick(SUBMITTED)
        jobs = stream.pick([1, 2, 3, 6, 12])
        same = stream.once_in(2)
        due = [at + stream.pick(DUE)] * jobs if same else [at + stream.pick(DUE) for _ in range(jobs)]
        keys = [f"key {stream.below(4)}" for _ in due] if stream.once_in(3) else []
        priorities = self._priorities_of(queue, keys, jobs)
        buffered = self._buffers[queue].once_in(3)
        for later in [0.0, *([stream.pick(AGAIN) for _ in range(stream.pick([1, 2]))] if keys else [])]:
            self.start(acts.Submit(due, queue, keys, priorities, buffered), after=at + later, stream=stream)
        return due

    def _priorities_of(self, queue: str, keys: Sequence[str], jobs: int) -> list[int]:
        """Return the priority of each job: one and the same for a key, whoever submits under it."""
        levels, stream = self.priorities[queue], self._levels[queue]
        if keys:
            return [1 + int(key.split()[-1]) % levels for key in keys]
        return [1 + stream.below(levels) for _ in range(jobs)]

    def of_ticks(self, stream: Stream, number: int, due: Sequence[float]) -> None:
        """Fire once a minute; miss some, fire some twice, and now and then stand still up to a telling moment."""
        # Which of two ticks at once has the lease is a matter of luck, alone or not.
        is_untouched = self._is_untouched(acts.PARTITIONS[number].queue)
        stands_still = (0.0, 0.0) if is_untouched else self._standstill(stream, due)
        for minute in range(int(self.climate.ends // MINUTE)):
            at = minute * MINUTE + stream.pick([0, 0, 0, 1, 30])
            times = stream.pick([1, 1, 1, 1, 0, 1 if is_untouched else 2])
            if not stands_still[0] < at < stands_still[1]:
                for _ in range(times):
                    self.start(acts.Tick(number, stream.pick([170, 45, 5])), after=at, stream=stream)
        if stands_still[1] > 0:
            self.start(acts.Tick(number), after=stands_still[1], stream=stream)

    def _standstill(self, stream: Stream, due: Sequence[float]) -> tuple[float, float]:
        if due and self._outage and self._outage.is_silent:
            return self._outage.span(due)
        if not (due and stream.once_in(3)):
            return 0.0, 0.0
        begins = stream.below(6) * MINUTE
        ends = stream.pick([due[0] - LOOKAHEAD, due[0], due[0] + MINUTE, due[0] + RETAINED])
        return begins, max(0.0, ends + stream.pick([0.0, 1, 3, -1, -3]))

    def _when(self, stream: Stream, due: Sequence[float]) -> float:
        """Return a telling moment: a minute, at which ticks fire, or one at which a job's fate is decided."""
        minute = stream.below(int(self.climate.ends // MINUTE)) * MINUTE
        job = stream.pick(due)
        fence, over = job - LOOKAHEAD, job + RETAINED
        near = stream.pick([minute, minute, minute, fence, fence, fence + 1, fence - 1, job, over - 1, over])
        return max(0.0, near)

    def _of_ingest(self, stream: Stream) -> None:
        begins = stream.pick([0, 0, 60, 180, 300, 420, 600])
        if self._due and stream.once_in(8):
            begins = self._stand_still(stream)
        for minute in range(int(self.climate.ends // MINUTE)):
            at = minute * MINUTE + stream.pick([5, 0, 0, 35])
            for _ in range(stream.pick([1, 1, 0, 2])):
                if at >= begins:
                    self.start(self._ingest(stream), after=at, stream=stream)

    def _stand_still(self, stream: Stream) -> float:
        """Let the first ingest stand still while what it has goes past its retention; return when others begin."""
        over = stream.pick(self._due) + RETAINED
        plan = {stream.below(5): Pause(stream.pick([OUTLIVES + 2, OUTLIVES + 3, 130]))}
        self.world.start(acts.Ingest(), after=over + stream.pick([-1, -3]), befall=by(plan))
        for number in stream.some(range(4)):
            self.world.start(acts.Cancel(number), after=2 * MINUTE)
        return over

    def _ingest(self, stream: Stream) -> acts.Ingest:
        if not stream.once_in(3):
            return acts.Ingest()
        waiting = stream.some(range(6))
        return acts.Ingest(waiting, stream.some(range(6), once_in=4), stream.some(range(6), once_in=4))

    def _of_trouble(self, stream: Stream) -> None:
        for event, undone in TROUBLES:
            happens = stream.once_in(6)
            if happens and not (self.climate.isolated and event.queue in ("", UNTOUCHED)):
                at = stream.below(11) * MINUTE
                self.world.happen(event, after=at)
                if undone is not None:
                    self.world.happen(undone, after=at + min(stream.pick([20, 60, 150, 400]), self._longest(event)))
        if stream.once_in(4):
            self.start(acts.PutBack(), after=stream.below(14) * MINUTE, stream=stream)
        if stream.once_in(2):
            self._of_ttl(stream)

    def _longest(self, event: Trouble) -> float:
        is_guards = self._outage is not None and isinstance(event, acts.Throttle)
        return outages.LONGEST_THROTTLING if is_guards else math.inf

    def _of_ttl(self, stream: Stream) -> None:
        expiries = {job + RETAINED + more for job in self._due for more in (0, 0.5, OUTLIVES, MINUTE)}
        for at in sorted(expiries | {minute * MINUTE for minute in range(10, 24)}):
            if stream.once_in(2):
                self.world.happen(acts.Collect(stream.below(3), stream.pick([1, 2, 3])), after=at)

    def start(
        self, act: acts.Act, *, after: float, stream: Stream, plan: Plan | None = None, is_disturbed: bool = True
    ) -> None:
        skew = stream.pick(CLOCKS) if self.climate.clocks_differ else 0.0
        if self._alone or self._is_untouched(acts.queue_of(act) or ""):
            self.world.start(act, after=after)
        else:
            befall = by(plan or {}) if plan or not is_disturbed else self._befall()
            self.world.start(act, after=after, befall=befall, skew=skew)

    def _befall(self) -> Befall:
        stream: Stream | None = None
        climate = self.climate

        def befall(me: Running, call: Call) -> Mishap | None:
            nonlocal stream
            if not (climate.once_in and climate.mishaps):
                return None
            stream = stream or self._choices.stream(me.process.name)
            return _mishap(stream, climate.mishaps, self._visitors) if stream.once_in(climate.once_in) else None

        return befall


TROUBLES: Sequence[tuple[Trouble, Trouble | None]] = (
    (acts.Vanish("emails"), acts.Vanish("emails", gone=False)),
    (acts.Vanish("invoices"), acts.Vanish("invoices", gone=False)),
    (acts.Vanish("emails", priority=2), acts.Vanish("emails", gone=False, priority=2)),
    (acts.Slow("emails", 8.0), acts.Slow("emails", 0.0)),
    (acts.Slow("emails", 9.5), acts.Slow("emails", 0.0)),
    (acts.Throttle(), acts.Throttle(on=False)),
    (acts.Throttle("emails"), acts.Throttle("emails", on=False)),
    (acts.Throttle("emails", writes=True), acts.Throttle("emails", on=False)),
    (acts.Grow(), None),
)


def _mishap(stream: Stream, mishaps: Sequence[Any], visitors: Sequence[acts.Act]) -> Mishap:
    kind = stream.pick(mishaps)
    if isinstance(kind, tuple):
        return stream.pick(kind)
    if kind is Meanwhile:
        return Meanwhile([stream.pick(visitors) for _ in range(stream.pick([2, 1]))])
    return kind(stream.pick(PAUSES))
