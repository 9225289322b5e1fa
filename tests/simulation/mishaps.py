"""What may befall a call of a port."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from dueline.errors import Throttled
from dueline.model.message import ID
from dueline.model.schedule_rows import Change
from dueline.ports import Reading
from tests.wire import Call, done_in_part, losing_the_answer, refusing, straight

# What writes to the table of what is only added.
ADDING = ("table.write", "table.add", "table.claim", "table.mark_done", "table.mark_exact", "table.move")
ADDING += ("table.change",)


class Crash(BaseException):
    """The end of a process between two of its calls."""


class Fault(Enum):
    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOST_ANSWER = "took effect, but its answer was lost"
    THROTTLED = "throttled"
    FIRST_LEFT = "the first row unwritten, the first key unread, the first message refused"
    LAST_LEFT = "the last row unwritten, the last key unread, the last message refused"
    STUCK = "one message refused, and again whenever this process sends it"


@dataclass(frozen=True)
class Pause:
    """The process stands still for so long before its call."""

    seconds: float


@dataclass(frozen=True)
class SlowAnswer:
    """The call takes effect at once, its answer takes so long."""

    seconds: float


@dataclass(frozen=True)
class Hot:
    """The table throttles the partitions of one queue, or of all queues if none is named: all of it, or writes."""

    queue: str = ""
    writes: bool = False


@dataclass(frozen=True)
class Meanwhile:
    """Other processes run before the call, one after another; the plan is for the last of them."""

    acts: Sequence[Any]
    plan: Mapping[int | str, "Fault | Pause"] = field(default_factory=dict)


Mishap = Fault | Pause | SlowAnswer | Hot | Meanwhile
Plan = Mapping[int | str, Mishap]
Sleep = Callable[[float], None]


class Fate:
    """Carries out calls of one process, with what befalls them."""

    def __init__(self, sleep: Sleep) -> None:
        self._sleep = sleep
        self._stuck: set[str] = set()

    def carry_out(self, call: Call, mishap: Mishap | None) -> Any:
        if call.name.endswith(".send"):
            self._stuck |= {call.args[0][0].attributes[ID]} if mishap is Fault.STUCK else set()
            if self._stuck:
                return refusing(lambda message: message.attributes[ID] in self._stuck)(call)
        return self._befallen(call, mishap)

    def _befallen(self, call: Call, mishap: Mishap | None) -> Any:
        if mishap is None:
            return straight(call)
        match mishap:
            case Fault.CRASH_BEFORE:
                raise Crash
            case Fault.CRASH_AFTER:
                straight(call)
                raise Crash
            case Fault.LOST_ANSWER:
                return losing_the_answer(call)
            case Fault.THROTTLED:
                return _without("", call)
            case Fault.FIRST_LEFT | Fault.LAST_LEFT:
                return done_in_part(call, last=mishap is Fault.LAST_LEFT)
            case Hot(queue, writes):
                return straight(call) if writes and call.name not in ADDING else _without(queue, call)
            case Pause(seconds):
                self._sleep(seconds)
            case SlowAnswer(seconds):
                answer = straight(call)
                self._sleep(seconds)
                return answer
        return straight(call)


def _without(queue: str, call: Call) -> Any:
    """Leave out of a call what concerns a queue's partitions, or throttle the call if that is all of it."""
    hot, rest = [], []
    for item in call.args[0] if call.name in ("table.write", "table.read") else ():
        (hot if _is_of(queue, item) else rest).append(item)
    if not rest and (hot or not call.args or _is_of(queue, call.args[0])):
        raise Throttled(f"{call.name}: slow down")
    if call.name == "table.write":
        return [*hot, *call.do(rest)]
    if call.name == "table.read":
        reading = call.do(rest)
        return Reading(rows=reading.rows, unread=reading.unread | frozenset(hot))
    return straight(call)


def _is_of(queue: str, item: Any) -> bool:
    """Tell whether a row, a key or a partition is of a queue."""
    item = item.head if isinstance(item, Change) else item
    name = item["pk"] if isinstance(item, Mapping) else item[0] if isinstance(item, tuple) else str(item)
    return name.startswith(queue)
