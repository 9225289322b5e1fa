"""A history of jobs that are far off, by clocks that are: no fence is read for them, and one request cancels them."""

from tests.simulation import actions
from tests.simulation.choices import Choices, Stream
from tests.simulation.faults import CallFault, ClockSet, Fault, Late, Pause, Plan, SlowAnswer
from tests.simulation.history import fault_source
from tests.simulation.world import MINUTE, Scale, World, planned

STREAM, ONCE_IN = "far", 2
# A signature lives for 112.5 s here, and FAR is 450 s, as much as twice that and a lookahead of 190 s, and a margin.
SHORTER = 8
# How long after it is submitted a job is due, around what is far by a clock that is behind, right or ahead.
AWAY = (350, 360, 400, 700, 455, 460, 560, 700, 800, 290, 250)
LAST_SUBMITTED, MOVED_TO = 600, (700, 900, 1200)
# So that each tick reads a row, and moves its cursor.
STEADY = [float(due) for due in range(310, 1300, 60)]
# How long before it is due a fence may pass a job, by a tick that is ahead or right, and what is far by other clocks.
BEFORE = (450, 345, 340, 300, 295, 290, 225, 190)
# What AWS takes, behind and ahead, and what it refuses unless it arrives late.
BEHIND = (0.0, -105.0, -105.0, -60.0, 105.0, -112.0, -130.0)
AHEAD = (0.0, 105.0, 105.0, 60.0, -105.0, 112.0, 300.0, 900.0)
FAR_AHEAD = (300.0, 300.0, 105.0, 900.0)
LONG = (60.0, 105.0, 112.0, 150.0, 200.0, 224.0, 300.0, 400.0)
SET_TO = (0.0, 105.0, -105.0, -600.0)
FAULTS = (Late, Pause, ClockSet, SlowAnswer, CallFault.LOST_ANSWER, CallFault.CRASH_AFTER, CallFault.CRASH_BEFORE)
MINUTES = 22


class FarHistory:
    """Writes the history of such a world, if there is to be one."""

    def __init__(self, choices: Choices) -> None:
        self._choices, self._stream = choices, choices.stream(STREAM)
        self.is_there = self._stream.once_in(ONCE_IN)
        order, self._once_in = choices.stream("far, order"), self._stream.pick([0, 12, 5, 3])
        scale = Scale(page_rows=self._stream.pick([1000, 1, 2]), shorter=SHORTER)
        often = self._stream.pick([8, 3, 1])
        self.world = World(
            scale,
            choose=lambda count: order.below(count) if order.once_in(often) else 0,
            partitions=1,
            clocks_are_off=True,
        )

    def write(self) -> World:
        stream, due = self._stream, list[float]()
        self.world.start(actions.Submit(STEADY))
        for _ in range(stream.pick([1, 2, 3, 5])):
            at = stream.below(LAST_SUBMITTED // 30) * 30.0
            jobs = [at + stream.pick(AWAY)] * stream.pick([1, 2, 4])
            due += jobs
            submit = actions.Submit(jobs, buffered=stream.once_in(4))
            self._start(submit, after=at, clocks=BEHIND, plan=self._plan(at, jobs[0], "table.write", "table.add"))
        for number, its in enumerate(due, len(STEADY)):
            for _ in range(stream.pick([0, 1, 2])):
                at = self._when(its)
                plan = self._plan(at, its, "table.add")
                self._start(actions.Cancel(number), after=at, clocks=(*BEHIND, *AHEAD), plan=plan)
            if stream.once_in(4):
                self._start(actions.Again(number), after=self._when(its), clocks=BEHIND)
            if stream.once_in(6):
                self._start(actions.Reschedule(number, stream.pick(MOVED_TO)), after=self._when(its), clocks=BEHIND)
        for minute in range(MINUTES):
            tick = actions.Tick(0, stream.pick([170, 45, 5]))
            for _ in range(stream.pick([1, 1, 2, 0])):
                plan = self._plan_of_lease() if stream.once_in(4) else None
                self._start(tick, after=minute * MINUTE, clocks=FAR_AHEAD if plan else AHEAD, plan=plan)
            if stream.once_in(2):
                self._start(actions.Ingest(), after=minute * MINUTE + stream.pick([0, 5, 30]), clocks=BEHIND)
        return self.world

    def _plan(self, at: float, due: float, *calls: str) -> Plan | None:
        """Let a write that begins at a moment arrive at another that matters, or be signed by a clock that is set."""
        if not self._stream.once_in(2):
            return None
        seconds = max(1.0, due - self._stream.pick(BEFORE) + self._stream.pick([1, 61]) - at)
        clocks = ClockSet(self._stream.pick(SET_TO)), ClockSet(-600.0, later=True)
        faults = (Pause(seconds), Late(seconds), Late(seconds, dies=True), *clocks)
        return dict.fromkeys(calls, self._stream.pick(faults))

    def _plan_of_lease(self) -> Plan:
        """Let the request for a lease, which raises the fence, arrive late, or be signed by a clock that is set."""
        late = Late(self._stream.pick([400.0, 300.0, 224.0]), dies=self._stream.once_in(3))
        return {0: self._stream.pick([late, ClockSet(self._stream.pick(SET_TO))])}

    def _when(self, due: float) -> float:
        """Return a moment that matters: at which a job may be far by one clock, and near by another."""
        return max(0.0, due - self._stream.pick([*BEFORE, 700, 650, 600, 570]) - self._stream.pick([0, 1, 10]))

    def _start(
        self, action: actions.Action, *, after: float, clocks: tuple[float, ...], plan: Plan | None = None
    ) -> None:
        drawn = fault_source(self._choices, _fault, once_in=self._once_in, prefix="far, ")
        faults = planned(plan) if plan else drawn
        self.world.start(action, after=after, faults=faults, skew=self._stream.pick(clocks))


def _fault(stream: Stream) -> Fault:
    kind = stream.pick(FAULTS)
    if isinstance(kind, CallFault):
        return kind
    if kind is Late:
        return Late(stream.pick(LONG), dies=stream.once_in(3))
    if kind is ClockSet:
        return ClockSet(stream.pick(SET_TO), later=stream.once_in(2))
    return kind(stream.pick(LONG))
