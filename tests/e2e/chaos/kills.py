"""Kill -9 for the processes of the functions while a request of theirs is in flight."""

import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from types import MappingProxyType

from dueline.aws import dynamodb
from dueline.core.queue_settings import PLANNER as OWN_QUEUE
from tests.e2e.chaos.network_faults import throttled
from tests.e2e.chaos.proxy import Answer, Exchange

TICK, API, INGEST, PLANNER = "tick", "api", "ingest", "planner"
Step = tuple[str, bool]
Steps = Mapping[str, Sequence[Step]]


def _steps(text: str) -> tuple[Step, ...]:
    """Return in which steps to be killed, in turn, and whether the request takes effect first."""
    parts = (each.partition(" ") for each in text.split(", "))
    return tuple((step, when == "after") for when, _, step in parts)


# To die after a submission's write, or before its read, is to die between the put and the fence.
STEPS: Steps = MappingProxyType(
    {
        TICK: _steps(
            "before send, after checkpoint, after send, before read, before checkpoint, after acquire the lease"
        ),
        API: _steps(
            "after write, after move, after send, before note what was sent, after send to the inbound queue, "
            "before read, after cancel, before write, before move"
        ),
        INGEST: _steps("after write, before read, after send, before note what was sent, before write"),
    }
)
# To die before a schedule's change, or after it, is to die in the middle of changing it.
STEPS_OF_SCHEDULES: Steps = MappingProxyType(
    {
        TICK: _steps("after checkpoint, before read, after send, before checkpoint, before send"),
        API: _steps(
            "after change, after submit a planning job, before change, after send, after write, before send, "
            "before read"
        ),
        PLANNER: _steps(
            "before note what is planned, after write, after submit a planning job, after note what is planned, "
            "after send, before submit a planning job, before write"
        ),
    }
)
# After so many other requests of a function, any step will do. Most ticks find nothing to send.
_PATIENCE = {TICK: 60, API: 25, INGEST: 6, PLANNER: 15}
# Jobs by the table are due 27 s ahead, and sent to their queue up to 21 s before that: sooner, ticks send nothing.
_FIRST_SECONDS: Mapping[str, float] = MappingProxyType({TICK: 6.0})
# Of the API's invocations, one in so many cannot write jobs to the table: these are work for ingest.
_THROTTLED_ONE_IN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Kill:
    """A process that was killed in the middle of an invocation, before or after a request took effect."""

    function: str
    invocation: str
    step: str
    had_effect: bool

    def __str__(self) -> str:
        return f"{self.function}: {self.step}, {'after' if self.had_effect else 'before'} its effect"


_OF_PLANNER = f'"{OWN_QUEUE.name}#'.encode()
# By operation; and another step for those whose body has a mark.
_STEPS: dict[str, tuple[str, dict[bytes, str]]] = {
    "PutItem": ("write", {b"#cancelled": "cancel", _OF_PLANNER: "submit a planning job"}),
    "BatchWriteItem": ("write", {b"#handled": "note what was sent", _OF_PLANNER: "submit a planning job"}),
    "TransactWriteItems": ("move", {b"#schedules": "change"}),
    "Query": ("read", {}),
    "BatchGetItem": ("read", {}),
    "SendMessageBatch": ("send", {b"-inbound": "send to the inbound queue"}),
}
_UPDATES = {
    dynamodb.TAKE.expression: "acquire the lease",
    dynamodb.RENEW.expression: "checkpoint",
    dynamodb.RELEASE.expression: "checkpoint",
    dynamodb.TOUCH.expression: "read what a move did",
    dynamodb.MARK_EXACT.expression: "note a promise",
    dynamodb.MARK_DONE.expression: "note that a key is done",
    dynamodb.PLAN.expression: "note what is planned",
}


def step_of(exchange: Exchange) -> str:
    """Return which step of its function a request is."""
    if exchange.operation == "UpdateItem":
        return _UPDATES.get(exchange.json()["UpdateExpression"], "?")
    step, marked = _STEPS.get(exchange.operation, ("?", {}))
    return next((other for mark, other in marked.items() if mark in exchange.body), step)


def ingest_has_work(exchange: Exchange) -> Answer | None:
    """Throttle what some of the API's invocations write: they send it to the inbound queue instead."""
    is_submission = exchange.sender.function == API and step_of(exchange) == "write"
    is_throttled = is_submission and not zlib.crc32(exchange.sender.invocation.encode()) % _THROTTLED_ONE_IN
    return throttled(exchange) if is_throttled else exchange.pass_on()


@dataclass(kw_only=True, slots=True)
class _Target:
    """The step of a function at which to kill it next, from `due` on; `left` kills are to do."""

    function: str
    steps: Iterator[Step]
    due: float
    left: int
    others: int = 0
    step: str = ""
    has_effect: bool = False

    def __post_init__(self) -> None:
        self.step, self.has_effect = next(self.steps)

    def matches(self, exchange: Exchange, now: float) -> bool:
        if not self.left or exchange.sender.function != self.function or now < self.due:
            return False
        self.others += 1
        return step_of(exchange) == self.step or self.others > _PATIENCE[self.function]

    def advance(self, *, due: float) -> None:
        self.step, self.has_effect = next(self.steps)
        self.due, self.left, self.others = due, self.left - 1, 0


@dataclass(kw_only=True, slots=True)
class Killer:
    """Kills processes of the functions that `steps` names, each as often, evenly over so many seconds.

    A process has no effect but by its requests. So to die before one takes effect, or after it did and before its
    answer is read, are all the ways there are to die; other requests of the same process may be on their way meanwhile.
    """

    kills: int
    seconds: float
    steps: Steps
    done: list[Kill] = field(default_factory=list)
    _targets: list[_Target] = field(init=False)
    _doomed: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        shares = {function: self.kills // len(self.steps) for function in self.steps}
        shares[API] += self.kills % len(self.steps)
        first = _FIRST_SECONDS if self.steps is STEPS else {}
        self._targets = [
            _Target(
                function=function,
                steps=cycle(self.steps[function]),
                due=time.monotonic() + first.get(function, 0),
                left=left,
            )
            for function, left in shares.items()
        ]

    @property
    def is_done(self) -> bool:
        return not any(target.left for target in self._targets)

    def __call__(self, exchange: Exchange) -> Answer | None:
        has_effect = self._chosen(exchange)
        if has_effect is None:
            return ingest_has_work(exchange)
        if has_effect:
            exchange.pass_on()
        exchange.fault = f"its process was killed {'after' if has_effect else 'before'} it took effect"
        sender = exchange.sender
        sender.kill()
        step = step_of(exchange)
        self.done.append(Kill(function=sender.function, invocation=sender.invocation, step=step, had_effect=has_effect))
        return None

    def _chosen(self, exchange: Exchange) -> bool | None:
        """Return whether a request whose process is to be killed takes effect first; None if it is to live."""
        with self._lock:
            now = time.monotonic()
            for target in self._targets:
                if exchange.sender.pid not in self._doomed and target.matches(exchange, now):
                    self._doomed.add(exchange.sender.pid)
                    has_effect = target.has_effect
                    target.advance(due=max(target.due + len(self.steps) * self.seconds / self.kills, now))
                    return has_effect
        return None
