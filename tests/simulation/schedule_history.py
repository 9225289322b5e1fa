"""The part of a history about schedules: who puts and changes them, and who plans them when."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation import actions
from tests.simulation.choices import Choices, Stream
from tests.simulation.faults import CallFault, Fault, Interleaved, Plan
from tests.simulation.world import MINUTE

if TYPE_CHECKING:
    from tests.simulation.history import History

# Of histories.
ONCE_IN = 10
STREAM, FORGETFUL = "schedules", "schedules, forgetful"
EVERY = (60, 60, 60, 61, 90, 150, 300)
STARTS = (0, 0, 7, 30, -45, 200)
JITTERS = (0, 0, 30, 60)
CATCH_UPS = ("latest", "none", "all")
COUNTS = (None, None, None, 5, 9)
WHATS = ("put", "put", "put", "pause", "resume", "delete", "same")
NAME = "s{}"
# Of a change that took effect.
UNANSWERED = (CallFault.LOST_ANSWER, CallFault.CRASH_AFTER)


def has_schedules(seed: int) -> bool:
    """Return whether the world of a seed has schedules."""
    return is_scheduled(Choices(seed=seed).stream(STREAM))


def is_scheduled(stream: Stream) -> bool:
    return stream.once_in(ONCE_IN)


def interleaved(schedule: str = NAME.format(0)) -> list[actions.Action]:
    """Return the actions that may run between two calls of another, besides those of any world."""
    changes = [actions.Alter(schedule, what=what) for what in ("pause", "resume", "delete")]
    rules = [actions.Rule(7), actions.Rule(8, 90, 7, catch_up="all")]
    puts = [actions.Alter(schedule, rule=rule) for rule in rules]
    return [
        *changes,
        *puts,
        *puts,
        actions.Plan(),
        actions.Plan(again=range(2)),
        actions.Tick(actions.PLANNER_PARTITION),
    ]


class ScheduleHistory:
    """Writes the part of one history about schedules."""

    def __init__(self, history: "History", stream: Stream, *, queues: Sequence[str]) -> None:
        self._history, self._stream, self._queues = history, stream, queues
        self._minutes = int(history.ends // MINUTE)
        begins = stream.below(self._minutes) * MINUTE
        # The planner does nothing meanwhile.
        self._stalled = (begins, begins + stream.pick([3, 5, 8]) * MINUTE) if stream.once_in(2) else (0, 0)

    def write(self) -> None:
        for number in range(self._stream.pick([1, 1, 2])):
            self._of_schedule(NAME.format(number), self._stream.pick(self._queues))
        self._history.of_ticks(self._stream, actions.PLANNER_PARTITION, [self._stream.below(self._minutes) * MINUTE])
        self._of_planner()
        if self._stream.once_in(4):
            self._start(actions.Watch(), after=(5 + self._stream.below(self._minutes)) * MINUTE)

    def _of_schedule(self, name: str, queue: str) -> None:
        stream = self._stream
        levels = self._history.priorities[queue]
        rules = [self._rule(number, levels) for number in range(stream.pick([2, 3, 4]))]
        created = stream.pick([0, 0, 1, 30, 65])
        for _ in range(stream.pick([1, 1, 1, 2])):
            self._start(actions.Alter(name, queue, rule=stream.pick(rules[:2]), again=2), after=created)
        self._start(actions.Alter(name, queue, rule=rules[0]), after=created + 2)
        for _ in range(stream.pick([1, 2, 3, 5])):
            at = self._when()
            for _ in range(stream.pick([1, 1, 1, 2])):
                change = self._change(name, queue, rules)
                unanswered: Plan | None = {"table.change": stream.pick(UNANSWERED)} if stream.once_in(4) else None
                self._history.start(change, after=at, stream=stream, plan=unanswered)
            if stream.once_in(3):
                self._meet(queue, at)
        if stream.once_in(2):
            self._overtake(name, queue)

    def forget(self, stream: Stream) -> None:
        """Change a schedule more often than its head keeps, while jitter delays a run, and end it."""
        name, minute = NAME.format(1), MINUTE * (1 + stream.below(self._minutes))
        delayed = [actions.Rule(number, start=stream.pick(STARTS), jitter=MINUTE) for number in (60, 61, 62)]
        changes = [actions.Alter(name, rule=rule) for rule in delayed]
        changes.append(actions.Alter(name, what=stream.pick(["pause", "delete"])))
        for change, after in zip(changes, (-MINUTE, 0, 1, stream.pick([2, 20])), strict=True):
            self._history.start(change, after=minute + after + stream.pick([5, 20]), stream=stream)

    def _rule(self, number: int, levels: int) -> actions.Rule:
        stream = self._stream
        return actions.Rule(
            number,
            every=stream.pick(EVERY),
            start=stream.pick(STARTS),
            jitter=stream.pick(JITTERS),
            catch_up=stream.pick(CATCH_UPS),
            count=stream.pick(COUNTS),
            priority=1 + stream.below(levels),
        )

    def _change(self, name: str, queue: str, rules: Sequence[actions.Rule]) -> actions.Alter:
        stream = self._stream
        what, rule = stream.pick(WHATS), stream.pick(rules)
        is_matched, again = stream.once_in(4), stream.pick([1, 0, 2])
        if what in ("put", "same"):
            return actions.Alter(
                name, queue, rule=rules[0] if what == "same" else rule, is_matched=is_matched, again=again
            )
        return actions.Alter(name, queue, what, is_matched=is_matched, again=again)

    def _meet(self, queue: str, at: float) -> None:
        """Let a change meet the processes that decide its fate."""
        planner_tick = actions.Tick(actions.PLANNER_PARTITION)
        for action in self._stream.some([*actions.ticks_of(queue)[:2], actions.Plan(), actions.Plan(), planner_tick]):
            self._start(action, after=at)

    def _overtake(self, name: str, queue: str) -> None:
        """Let a caller be overtaken, at a call of its own, while the planner is late."""
        stream, plan = self._stream, dict[int | str, Fault]()
        mine, others = (actions.Alter(name, queue, rule=actions.Rule(number)) for number in (50, 51))
        other = replace(stream.pick([others, actions.Alter(name, queue, "pause")]), again=0)
        ticks = actions.ticks_of(queue)[:2]
        match stream.below(3):
            case 0:
                plan[stream.pick([3, 2, 3, 4, 6, 9])] = Interleaved([other, *ticks])
            case 1:
                plan["table.change"] = Interleaved([actions.Plan(), actions.Plan(), actions.Plan()])
            case 2:
                plan[0] = Interleaved([other], {"table.change": CallFault.LOST_ANSWER})
                plan[1] = Interleaved(ticks)
        at = max(1.0, self._stalled[1] - stream.pick([1, 5, 30, 65]))
        self._history.start(mine, after=at, stream=stream, plan=plan)

    def _when(self) -> float:
        """Return a moment that matters: a minute, at which ticks fire and runs are due, or just before or after."""
        return max(1.0, self._stream.below(self._minutes) * MINUTE + self._stream.pick([0, 0, 0, 1, -1, 5, 30, 50]))

    def _of_planner(self) -> None:
        """Plan each minute; miss some, plan some twice, and now and then stall for long."""
        stream = self._stream
        begins, ends = self._stalled
        for minute in range(self._minutes):
            at = minute * MINUTE + stream.pick([5, 0, 1, 35])
            for _ in range(stream.pick([1, 1, 1, 0, 2])):
                if not begins < at < ends:
                    self._start(self._plan(), after=at)

    def _plan(self) -> actions.Plan:
        stream = self._stream
        if not stream.once_in(3):
            return actions.Plan()
        return actions.Plan(actions.ALL, stream.some(range(4), once_in=4), stream.some(range(4), once_in=4))

    def _start(self, action: actions.Action, *, after: float) -> None:
        self._history.start(action, after=after, stream=self._stream)
