"""Outages longer than any retention, while TTL collects all that it may, and its guard looks after what waits."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from dueline.protocol.ttl_guard import TtlGuard
from tests.simulation import acts
from tests.simulation.choices import Choices, Stream
from tests.simulation.mishaps import Fault, Pause, Plan

if TYPE_CHECKING:
    from tests.simulation.history import History
    from tests.simulation.world import Running, World

STREAM = "outage"
ONCE_IN = 8
MINUTE = 60
# What six hours, fifteen minutes and the guard's second look are where a retention is ten minutes, and DynamoDB's hour.
LATE, CAUGHT_UP, SETTLE = timedelta(seconds=120), timedelta(seconds=30), timedelta(seconds=30)
TTL_TAKES = timedelta(seconds=45)
# Of a row that was late when it was written: so much before its TTL, the guard may come too late.
TOO_LATE_FOR_THE_GUARD = 240
LONGEST_THROTTLING = 150
LASTS_LONGER = (30, 120, 600, 1500)
OF_GUARDS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_ANSWER, Fault.THROTTLED, Pause(31), Pause(61))


def has_outage(seed: int) -> bool:
    """Tell whether the world of a seed may have an outage."""
    return Choices(seed=seed).stream(STREAM).once_in(ONCE_IN)


def guard(world: "World", me: "Running", act: acts.Guard) -> str:
    """Look at all partitions, those that are not declared too."""
    found = TtlGuard(
        table=me.core.table,
        time_to_live=me.core.wire.to("ttl", world.time_to_live),
        clock=me.process,
        settle=SETTLE,
        spread=me.process.spread,
        late=LATE,
        caught_up=CAUGHT_UP,
    ).run(acts.PARTITIONS)
    if found.switched is None:
        return "leaves TTL as it is"
    return f"switches TTL {'on' if found.switched else 'off'}"


class Outage:
    """Ticks of a queue stand still, or get nothing through, until long after its jobs' retention."""

    def __init__(self, stream: Stream, *, retained: float) -> None:
        self._stream = stream
        self._retained = retained
        self._ends = 0.0
        self.is_silent = not stream.once_in(3)

    def span(self, due: Sequence[float]) -> tuple[float, float]:
        """Return from when until when ticks stand still."""
        begins = self._stream.below(6) * MINUTE
        ends = max(due) + self._retained + self._stream.pick(LASTS_LONGER)
        self._ends = max(self._ends, ends)
        return begins, ends

    def write(self, history: "History", due: Sequence[float]) -> None:
        """Let the guard look each minute, now and then in trouble, and TTL take whatever it may."""
        if not self.is_silent:
            begins, ends = self.span(due or [0.0])
            history.world.happen(acts.Slow("emails", 60.0), after=begins)
            history.world.happen(acts.Slow("emails", 0.0), after=ends)
        for minute in range(int(self._ends // MINUTE) + 3):
            is_in_trouble = minute % 2 and self._stream.once_in(2)
            plan: Plan = {self._stream.below(8): self._stream.pick(OF_GUARDS)} if is_in_trouble else {}
            history.start(acts.Guard(), after=minute * MINUTE + 7, stream=self._stream, plan=plan, is_disturbed=False)
        expiries = {each + self._retained + more for each in due for more in (0, 0.5)}
        for at in sorted(expiries | {minute * MINUTE for minute in range(10, int(self._ends // MINUTE) + 2)}):
            history.world.happen(acts.Collect(), after=at)
