"""The part of a history about names: what callers do with one key, and with the ids that its job had."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from dueline.core.request import IfExists
from tests.simulation import actions
from tests.simulation.actions import DUE, MOVED_TO
from tests.simulation.choices import Choices, Stream
from tests.simulation.faults import CallFault, Gone, Interleaved, Pause, Plan, SlowAnswer
from tests.simulation.name_calls import CALL_IS_OVER
from tests.simulation.world import LOOKAHEAD, MINUTE, RETAINED

if TYPE_CHECKING:
    from tests.simulation.history import History

# What may cut off an attempt of a call under a key. Its caller makes it again once it must have ended.
CUT_OFF = (
    CallFault.CRASH_BEFORE,
    CallFault.CRASH_AFTER,
    CallFault.LOST_ANSWER,
    CallFault.THROTTLED,
    Pause(0.3),
    Interleaved([actions.Tick(0)]),
    Interleaved([actions.Ingest(), actions.Tick(0)]),
)
UNDISTURBED: Plan = {}
EXISTS = (IfExists.KEEP, IfExists.REPLACE, IfExists.REPLACE, IfExists.FAIL)
HANDLES = (None, 0, -1, None, 1)
# Later than the retention of a job that is due soon.
FAR = (1250, 1300)
NO_TICKS_AFTER = 90


class NameHistory:
    """Writes the part of a history about names of one queue. While ticks stand still, none of the queue's begins."""

    def __init__(self, history: "History", queue: str, choices: Choices) -> None:
        self._history, self._queue = history, queue
        self._together, self._moved = choices.stream(f"{queue}, names"), choices.stream(f"{queue}, moved names")
        self._kind: Callable[[], None] | None = None
        # No two calls that differ have a name in common: a caller would be refused.
        self._others = 0
        if self._moved.once_in(3) and not history.world.is_guarded:
            kinds = [self._move_far, self._meet_at_fence, self._refuse, self._expire, self._overtake]
            self._kind = self._moved.pick(kinds)
        self._expiring = self._moved.pick([100, 310]) if self._kind == self._expire else 0

    def stands_still(self, at: float) -> bool:
        return bool(self._expiring) and at < self._expiring + RETAINED + NO_TICKS_AFTER

    def write(self) -> None:
        self._meet()
        if self._kind is not None:
            self._kind()

    def _meet(self) -> None:
        """Let callers make calls under one key, each perhaps again once its attempt must have ended."""
        stream = self._together
        if not stream.once_in(3):
            return
        for number in range(stream.pick([1, 1, 2])):
            around = stream.pick(DUE)
            self._history.due.append(around)
            fence = max(0.0, around - LOOKAHEAD)
            meet = stream.pick([0, 30, max(0.0, fence - 1), fence, fence + 1, around + RETAINED + 1])
            calls = stream.pick([2, 3, 4, 6])
            for call in range(calls):
                action = self._any(stream, key=f"name {number}", call=f"call {call}", around=around)
                at = stream.pick([0, meet, meet, meet, meet + CALL_IS_OVER, self._history.when(stream, [around])])
                self._call(stream, action, at=at)

    def _call(self, stream: Stream, action: actions.Named, *, at: float) -> None:
        for attempt in range(stream.pick([1, 2, 2, 3])):
            after = at + attempt * stream.pick([CALL_IS_OVER, 2 * MINUTE, 5 * MINUTE])
            self._start(stream, action, after=after, plan=self._cut_off(stream, action))

    def _start(self, stream: Stream, action: actions.Action, *, after: float, plan: Plan = UNDISTURBED) -> None:
        self._history.start(action, after=after, stream=stream, plan=plan)

    def _any(self, stream: Stream, *, key: str, call: str, around: float) -> actions.Named:
        what = stream.pick(["schedule", "schedule", "schedule", "cancel", "reschedule"])
        name = stream.pick([call, call, ""])
        return actions.Named(
            key=key,
            call=name,
            what=what,
            if_exists=stream.pick(EXISTS),
            due=stream.pick([around, around, around + 1, *MOVED_TO]),
            is_delay=bool(name) and stream.once_in(4),
            content=stream.pick([1, 1, 2]),
            queue=self._queue,
            buffered=stream.once_in(4),
        )

    def _cut_off(self, stream: Stream, action: actions.Named) -> Plan:
        """Return what happens to an attempt, if anything: it ends halfway, or another call comes in between."""
        if not stream.once_in(2):
            return {}
        self._others += 1
        other = self._any(stream, key=action.key, call=f"other {self._others} of {action.call}", around=action.due)
        between = Interleaved([replace(other, is_delay=False), *stream.some([actions.Tick(0), actions.Ingest()])])
        return {stream.below(8): stream.pick([*CUT_OFF, between, between, between])}

    # By the ids that a job had, or at moments when little else is left of it.

    def _named(self, key: str, call: str, what: str = "schedule", *, due: float, **rest: object) -> actions.Named:
        return actions.Named(key=key, call=call, what=what, due=due, queue=self._queue, **rest)  # type: ignore[arg-type]

    def _move(self, key: str, call: str, *, due: float) -> actions.Named:
        """Return a call that moves a job: by its key or an id, or with other content."""
        stream = self._moved
        if stream.once_in(3):
            content = stream.pick([1, 2])
            return self._named(key, call, due=due, if_exists=IfExists.REPLACE, content=content)
        call = stream.pick([call, call, ""])
        is_delay = bool(call) and stream.once_in(4)
        return self._named(key, call, "reschedule", due=due, handle=stream.pick(HANDLES), is_delay=is_delay)

    def _either(self, key: str, call: str, *, due: float) -> actions.Named:
        """Return any call, by the key or an id."""
        stream = self._moved
        action = replace(self._any(stream, key=key, call=call, around=due), is_delay=False)
        return action if action.what == "schedule" else replace(action, handle=stream.pick(HANDLES))

    def _collect(self, at: float) -> None:
        if self._moved.once_in(2):
            self._history.world.happen(actions.Collect(), after=at)

    def _move_far(self) -> None:
        """Move a job to when the name of the old one is over, and call it then by all that it was called."""
        stream, key, far = self._moved, "far name", self._moved.pick(FAR)
        due = stream.pick([310, 400])
        over = due + RETAINED
        self._history.due.append(due)
        self._start(stream, self._named(key, "first", due=due), after=0)
        for number in range(stream.pick([1, 2, 3])):
            move = self._move(key, f"move {number}", due=stream.pick([far, far, due + MINUTE]))
            self._call(stream, move, at=stream.pick([30, 60, 61, due - LOOKAHEAD - 1]))
        for number in range(stream.pick([1, 2, 3])):
            action = self._either(key, f"late {number}", due=stream.pick([far, far + 1]))
            self._call(stream, action, at=over + stream.pick([1, 5, 15, 40]))
        for later in (0.5, 3, 12, 35):
            self._collect(over + later)

    def _meet_at_fence(self) -> None:
        """Let a call look at a job that is being moved, when its fence has just come to it."""
        stream, key = self._moved, "fenced name"
        due = stream.pick([400, 520])
        fence = due - LOOKAHEAD
        self._history.due.append(due)
        self._start(stream, self._named(key, "first", due=due), after=0)
        exists, content = stream.pick(EXISTS), stream.pick([1, 2])
        looks = self._named(key, stream.pick(["looks", ""]), due=due, if_exists=exists, content=content)
        self._start(stream, looks, after=fence - 1, plan={stream.pick([1, 1, 2]): Pause(4)})
        move = self._move(key, "moves", due=stream.pick([due + MINUTE, due, due + 1]))
        answered = stream.pick([SlowAnswer(8), CallFault.CRASH_AFTER, CallFault.LOST_ANSWER])
        self._start(stream, move, after=fence - 0.5, plan={"table.move": answered})
        for tick in actions.ticks_of(self._queue):
            self._start(stream, tick, after=fence + 0.5, plan={1: Pause(stream.pick([0.1, 6]))})

    def _overtake(self) -> None:
        """Let others take the key of a job that has left, before its call notes that; make each call again."""
        stream, key = self._moved, "overtaken name"
        due = stream.pick([60, 120])
        self._history.due.append(due)
        for tick in actions.ticks_of(self._queue):
            self._start(stream, tick, after=0)
        first = self._named(key, "first", due=due)
        others = [
            self._named(key, call, due=due + stream.pick([1, 300]), if_exists=IfExists.REPLACE, content=2 + number)
            for number, call in enumerate(["second", "third"])
        ]
        if stream.once_in(2):
            cut_off = stream.pick([{}, {"table.add": CallFault.CRASH_BEFORE}])
            self._start(stream, first, after=5, plan={"table.mark_done": Interleaved([others[0]], cut_off)})
        else:
            # One that died before its note is made again while another call, which has read the row, changes it.
            again: Plan = dict.fromkeys(["table.take_over", "table.move"], Interleaved([first]))
            self._start(stream, first, after=5, plan={"table.mark_done": CallFault.CRASH_BEFORE})
            slow = stream.pick(others)
            for number, other in enumerate(others):
                self._start(stream, other, after=6 + number, plan=again if other is slow else UNDISTURBED)
        for attempt in range(2):
            for action in (first, others[0]):
                self._start(stream, action, after=(attempt + 1) * CALL_IS_OVER + 5)

    def _refuse(self) -> None:
        """Refuse a job after it was named, while others call its name."""
        stream, key = self._moved, "refused name"
        due = stream.pick([400, 310, 460])
        self._history.due.append(due)
        for number in range(stream.pick([1, 2])):
            exists = stream.pick(EXISTS)
            action = self._named(key, f"call {number}", due=due, if_exists=exists, uploaded=True)
            for attempt in range(stream.pick([1, 2, 3])):
                other = self._either(key, f"other of {number}", due=due)
                halfway: Plan = {stream.below(8): stream.pick(CUT_OFF)}
                refused: Plan = {2: Gone()}
                between = Interleaved([other], {"table.mark_done": CallFault.CRASH_BEFORE})
                overtaken: Plan = {2: Gone(), 3: between}
                gone: Plan = {"payloads.find": Gone()}
                plan = stream.pick([refused, gone, halfway, overtaken])
                self._start(stream, action, after=30 * number + attempt * CALL_IS_OVER, plan=plan)
        for number in range(stream.pick([1, 2, 3])):
            action = self._either(key, f"later {number}", due=stream.pick([due, due, due + 1]))
            self._call(stream, action, at=stream.pick([1, 32, 63, 94]))

    def _expire(self) -> None:
        """Let a job that no tick has seen be moved as its retention ends, and its name be used again."""
        stream, key = self._moved, "old name"
        due, far = self._expiring, stream.pick(FAR)
        over = due + RETAINED
        self._history.due.append(due)
        self._start(stream, self._named(key, "first", due=due), after=0)
        for number in range(stream.pick([1, 2])):
            move = replace(self._move(key, f"move {number}", due=far), is_delay=False)
            self._start(
                stream, move, after=over - stream.pick([1, 2]), plan={stream.below(7): Pause(stream.pick([2, 3, 5]))}
            )
        for number in range(stream.pick([1, 2])):
            action = self._either(key, f"late {number}", due=far + number)
            self._start(stream, action, after=over + stream.pick([0.5, 1, 2, 12]))
        for later in (0.2, 1.5):
            self._collect(over + later)
