"""Kill -9 for the processes of the tick and of ingest, while a request of theirs is in flight."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle

from tests.e2e.faults.exchange import Answer, Exchange
from tests.e2e.faults.processes import Process

TICK, INGEST = "tick", "ingest"
# In turn: which step to be killed in, and whether the request takes effect first.
STEPS = {
    TICK: (
        ("send", False),
        ("checkpoint", True),
        ("send", True),
        ("read", False),
        ("checkpoint", False),
        ("take the lease", True),
    ),
    INGEST: (("write", True), ("read", False), ("send", True), ("note what was sent", False), ("write", False)),
}
# Most ticks find nothing to send.
PATIENCE_REQUESTS = {TICK: 60, INGEST: 3}
# Jobs by the table are due 25 s ahead, and handed over 19 s before that: sooner ticks have nothing to send.
FIRST_AFTER_SECONDS = {TICK: 6.0, INGEST: 0.0}


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
        return "checkpoint" if b":cursor" in exchange.body else "take the lease"
    if exchange.operation == "BatchWriteItem":
        return "note what was sent" if b"#handled" in exchange.body else "write"
    return {"Query": "read", "BatchGetItem": "read", "SendMessageBatch": "send"}.get(exchange.operation, "?")


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


@dataclass(kw_only=True, slots=True)
class Killer:
    """Kills ticks and ingests, half and half, evenly over so many seconds.

    A process has no effect but by its requests. So to die before one takes effect, or after it did and before its
    answer is read, are all the ways there are to die; other requests of the same process may be on their way meanwhile.
    """

    kills: int
    seconds: float
    done: list[Kill] = field(default_factory=list)
    _aims: list[_Aim] = field(init=False)
    _doomed: set[int] = field(default_factory=set)
    _aiming: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        shares = {TICK: self.kills // 2, INGEST: self.kills - self.kills // 2}
        self._aims = [self._aim(function, left=left) for function, left in shares.items()]

    @staticmethod
    def _aim(function: str, *, left: int) -> _Aim:
        steps, first = cycle(STEPS[function]), time.monotonic() + FIRST_AFTER_SECONDS[function]
        step, has_effect = next(steps)
        return _Aim(function=function, steps=steps, step=step, has_effect=has_effect, due=first, left=left)

    @property
    def is_done(self) -> bool:
        return not any(aim.left for aim in self._aims)

    def __call__(self, exchange: Exchange) -> Answer | None:
        process = exchange.process
        has_effect = self._chosen(exchange, process)
        if has_effect is None:
            return exchange.pass_on()
        if has_effect:
            exchange.pass_on()
        exchange.mishap = f"its process was killed {'after' if has_effect else 'before'} it took effect"
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
                    aim.take(due=max(aim.due + 2 * self.seconds / self.kills, now))
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
