"""Kill -9 for the processes of the functions, and of direct producers, while a request of theirs is in flight."""

import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from types import MappingProxyType

from dueline.aws.dynamodb import updates
from dueline.model.queue_settings import PLANNER as OWN_QUEUE
from tests.e2e.faults.exchange import Answer, Around, Exchange
from tests.e2e.faults.mishaps import throttled
from tests.e2e.faults.processes import DIRECT, Process

TICK, API, INGEST, PLANNER = "tick", "api", "ingest", "planner"
Steps = Mapping[str, Sequence[tuple[str, bool]]]
# In turn: which step to be killed in, and whether the request takes effect first. To die after a submission's write,
# or before its read, is to die between the put and the fence.
STEPS: Steps = MappingProxyType(
    {
        TICK: (
            ("send", False),
            ("checkpoint", True),
            ("send", True),
            ("read", False),
            ("checkpoint", False),
            ("take the lease", True),
        ),
        API: (
            ("write", True),
            ("move", True),
            ("send", True),
            ("note what was sent", False),
            ("send to the buffer", True),
            ("read", False),
            ("cancel", True),
            ("write", False),
            ("move", False),
        ),
        DIRECT: (("write", True), ("send", True), ("note what was sent", False), ("read", False), ("write", False)),
        INGEST: (("write", True), ("read", False), ("send", True), ("note what was sent", False), ("write", False)),
    }
)
# The same for those who plan and change schedules: to die before the change, or after it, is to die in its middle.
STEPS_OF_SCHEDULES: Steps = MappingProxyType(
    {
        TICK: (("checkpoint", True), ("read", False), ("send", True), ("checkpoint", False), ("send", False)),
        API: (
            ("change", True),
            ("submit a planning job", True),
            ("change", False),
            ("send", True),
            ("write", True),
            ("send", False),
            ("read", False),
        ),
        PLANNER: (
            ("note what is planned", False),
            ("write", True),
            ("submit a planning job", True),
            ("note what is planned", True),
            ("send", True),
            ("submit a planning job", False),
            ("write", False),
        ),
    }
)
# Of the API's invocations, how many find a table that throttles what they write: ingest has work of these.
ONE_IN = 3
# Most ticks find nothing to send.
PATIENCE_REQUESTS = {TICK: 60, API: 25, DIRECT: 15, INGEST: 6, PLANNER: 15}
# Jobs by the table are due 25 s ahead, and handed over 19 s before that: sooner ticks have nothing to send.
FIRST_AFTER_SECONDS: Mapping[str, float] = MappingProxyType({TICK: 6.0})


@dataclass(frozen=True, kw_only=True, slots=True)
class Kill:
    """A process that was killed in the middle of the invocation `turn`, before or after a request took effect."""

    at: float
    function: str
    turn: str
    pid: int
    step: str
    had_effect: bool

    def __str__(self) -> str:
        return f"{self.function}: {self.step}, {'after' if self.had_effect else 'before'} its effect"


def step_of(exchange: Exchange) -> str:
    """Return which step of its function a request is."""
    if exchange.operation == "UpdateItem":
        return _OF_UPDATES.get(exchange.asked()["UpdateExpression"], "?")
    step, marked = _STEPS.get(exchange.operation, ("?", {}))
    return next((other for mark, other in marked.items() if mark in exchange.body), step)


_OF_PLANNER = f'"{OWN_QUEUE.name}#'.encode()
# By operation; and another step for those whose body has a mark.
_STEPS: dict[str, tuple[str, dict[bytes, str]]] = {
    "PutItem": ("write", {b"#cancelled": "cancel", _OF_PLANNER: "submit a planning job"}),
    "BatchWriteItem": ("write", {b"#handled": "note what was sent", _OF_PLANNER: "submit a planning job"}),
    "TransactWriteItems": ("move", {b"#schedules": "change"}),
    "Query": ("read", {}),
    "BatchGetItem": ("read", {}),
    "SendMessageBatch": ("send", {b"-inbound": "send to the buffer"}),
}
_OF_UPDATES = {
    updates.TAKE.expression: "take the lease",
    updates.RENEW.expression: "checkpoint",
    updates.RELEASE.expression: "checkpoint",
    updates.ASK.expression: "ask what a move did",
    updates.MARK_EXACT.expression: "note a promise",
    updates.MARK_DONE.expression: "note that a key is done",
    updates.PLAN.expression: "note what is planned",
}


@dataclass(kw_only=True, slots=True)
class _Aim:
    """Which step of a function's to kill next, and from when on; after so many others any of its steps will do."""

    function: str
    steps: Iterator[tuple[str, bool]]
    step: str
    has_effect: bool
    due: float
    left: int
    others: int = 0

    def meets(self, exchange: Exchange, process: Process, now: float) -> bool:
        if not self.left or process.function != self.function or now < self.due:
            return False
        self.others += 1
        return step_of(exchange) == self.step or self.others > PATIENCE_REQUESTS[self.function]

    def take(self, *, due: float) -> None:
        """Aim at the next one."""
        self.step, self.has_effect = next(self.steps)
        self.due, self.left, self.others = due, self.left - 1, 0


def _is_throttled(exchange: Exchange) -> bool:
    """Tell whether the table takes no job of an exchange: in some of the API's invocations, as if a flood were on."""
    is_submission = exchange.process.function == API and step_of(exchange) == "write"
    return is_submission and not zlib.crc32(exchange.turn.encode()) % ONE_IN


def in_a_flood(exchange: Exchange) -> Answer | None:
    """In one in `ONE_IN` of the API's invocations, have the table take no job: ingest gets what these submit."""
    return throttled(exchange) if _is_throttled(exchange) else exchange.pass_on()


@dataclass(kw_only=True, slots=True)
class Killer:
    """Kills processes of the functions that `steps` names, each as often, evenly over so many seconds.

    `beside` is what becomes of the requests of those that live, and `first_after` when the first of a function dies.

    A process has no effect but by its requests. So to die before one takes effect, or after it did and before its
    answer is read, are all the ways there are to die; other requests of the same process may be on their way meanwhile.
    """

    kills: int
    seconds: float
    steps: Steps = field(default_factory=lambda: STEPS)
    beside: Around = in_a_flood
    first_after: Mapping[str, float] = field(default_factory=lambda: FIRST_AFTER_SECONDS)
    done: list[Kill] = field(default_factory=list)
    _aims: list[_Aim] = field(init=False)
    _doomed: set[int] = field(default_factory=set)
    _dead: set[int] = field(default_factory=set)
    _aiming: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        shares = {function: self.kills // len(self.steps) for function in self.steps}
        shares[API] += self.kills % len(self.steps)
        self._aims = [self._aim(function, left=left) for function, left in shares.items()]

    def _aim(self, function: str, *, left: int) -> _Aim:
        steps, first = cycle(self.steps[function]), time.monotonic() + self.first_after.get(function, 0.0)
        step, has_effect = next(steps)
        return _Aim(function=function, steps=steps, step=step, has_effect=has_effect, due=first, left=left)

    def is_dead(self, number: int) -> bool:
        """Tell whether a direct producer was killed."""
        return number in self._dead

    @property
    def is_done(self) -> bool:
        return not any(aim.left for aim in self._aims)

    def __call__(self, exchange: Exchange) -> Answer | None:
        process = exchange.process
        if process.pid in self._dead:
            exchange.mishap = "its producer is dead"
            return None
        has_effect = self._chosen(exchange, process)
        if has_effect is None:
            return self.beside(exchange)
        if has_effect:
            exchange.pass_on()
        exchange.mishap = f"its process was killed {'after' if has_effect else 'before'} it took effect"
        if process.function == DIRECT:
            self._dead.add(process.pid)
        else:
            process.kill()
        self.done.append(_killed(exchange, process, has_effect))
        return None

    def _chosen(self, exchange: Exchange, process: Process) -> bool | None:
        """Return whether a request whose process is to be killed takes effect first, or nothing if it is to live."""
        with self._aiming:
            now = time.monotonic()
            for aim in self._aims:
                if aim.meets(exchange, process, now) and process.pid not in self._doomed:
                    self._doomed.add(process.pid)
                    has_effect = aim.has_effect
                    aim.take(due=max(aim.due + len(self.steps) * self.seconds / self.kills, now))
                    return has_effect
        return None


def _killed(exchange: Exchange, process: Process, has_effect: bool) -> Kill:
    return Kill(
        at=time.time(),
        function=process.function,
        turn=exchange.turn,
        pid=process.pid,
        step=step_of(exchange),
        had_effect=has_effect,
    )
