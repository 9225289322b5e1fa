"""What may faults a call of a port."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from dueline.core.message import ID
from dueline.core.ports import ScheduleChange
from dueline.errors import Throttled
from tests.wire import Call, done_in_part, leaving, losing_the_answer, refusing, straight

# The calls that write rows of jobs and schedules; states of partitions are in another table.
ADDING = ("table.write", "table.add", "table.claim", "table.mark_done", "table.mark_exact", "table.move")
ADDING += ("table.change", "table.share", "table.release", "table.take_over", "table.change_calls")


class Crash(BaseException):
    """The end of a process between two of its calls."""


class CallFault(Enum):
    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOST_ANSWER = "took effect, but its answer was lost"
    THROTTLED = "throttled"
    FIRST_LEFT = "the first row unwritten, the first key unread, the first message refused"
    LAST_LEFT = "the last row unwritten, the last key unread, the last message refused"
    STUCK = "one message refused, and again whenever this process sends it"


REFUSALS = (CallFault.THROTTLED, CallFault.FIRST_LEFT, CallFault.LAST_LEFT, CallFault.STUCK)


@dataclass(frozen=True)
class Pause:
    """The process stalls for so long before its call."""

    seconds: float


@dataclass(frozen=True)
class SlowAnswer:
    """The call takes effect at once, and its answer takes so long."""

    seconds: float


@dataclass(frozen=True)
class Late:
    """The request is signed at once, and arrives so much later; the process `dies`, or stands still until then."""

    seconds: float
    dies: bool = False


@dataclass(frozen=True)
class ClockSet:
    """The process's clock is set to be so far off, between its call and the signature of that, or `later`."""

    skew: float
    later: bool = False


@dataclass(frozen=True)
class Gone:
    """The upload that the call looks for is gone."""


@dataclass(frozen=True)
class HotPartitions:
    """The table throttles the partitions of one queue, or of all queues if none is named: all of it, or writes."""

    queue: str = ""
    writes: bool = False


@dataclass(frozen=True)
class Interleaved:
    """Other processes run before the call, one after another; the plan is for the last of them."""

    actions: Sequence[Any]
    plan: Mapping[int | str, "CallFault | Pause"] = field(default_factory=dict)


Fault = CallFault | Pause | SlowAnswer | Late | ClockSet | Gone | HotPartitions | Interleaved
Plan = Mapping[int | str, Fault]
Sleep = Callable[[float], None]


class FaultInjector:
    """Executes the calls of one process, with their faults."""

    def __init__(self, sleep: Sleep) -> None:
        self._sleep = sleep
        self._stuck: set[str] = set()

    def execute(self, call: Call, fault: Fault | None) -> Any:
        if call.name.endswith(".send"):
            self._stuck |= {call.args[0][0].attributes[ID]} if fault is CallFault.STUCK else set()
            if self._stuck:
                return refusing(lambda message: message.attributes[ID] in self._stuck)(call)
        if isinstance(fault, Gone):
            return None if call.name == "payloads.find" else straight(call)
        return self._inject(call, fault)

    def _inject(self, call: Call, fault: Fault | None) -> Any:
        if fault is None:
            return straight(call)
        match fault:
            case CallFault.CRASH_BEFORE:
                raise Crash
            case CallFault.CRASH_AFTER:
                straight(call)
                raise Crash
            case CallFault.LOST_ANSWER:
                return losing_the_answer(call)
            case CallFault.THROTTLED:
                return _without("", call)
            case CallFault.FIRST_LEFT | CallFault.LAST_LEFT:
                return done_in_part(call, last=fault is CallFault.LAST_LEFT)
            case HotPartitions(queue, writes):
                return straight(call) if writes and call.name not in ADDING else _without(queue, call)
            case Pause(seconds) | Late(seconds):
                self._sleep(seconds)
            case SlowAnswer(seconds):
                answer = straight(call)
                self._sleep(seconds)
                return answer
        return straight(call)


def _without(queue: str, call: Call) -> Any:
    """Throttle the part of a call that concerns a queue's partitions: leave it undone, or raise if that is all."""
    items = call.args[0] if call.name in ("table.write", "table.read") else ()
    hot = [number for number, item in enumerate(items) if _is_of(queue, item)]
    if len(hot) == len(items) and (hot or not call.args or _is_of(queue, call.args[0])):
        raise Throttled(f"{call.name}: slow down")
    return leaving(call, hot) if items else straight(call)


def _is_of(queue: str, item: Any) -> bool:
    """Return whether a row, a key or a partition is of a queue."""
    item = item.head if isinstance(item, ScheduleChange) else item
    name = item["pk"] if isinstance(item, Mapping) else item[0] if isinstance(item, tuple) else str(item)
    return name.startswith(queue)
