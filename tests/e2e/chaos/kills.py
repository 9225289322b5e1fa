"""Kill -9 for the processes of the functions while a request of theirs is in flight."""

import random
import threading
import time
import zlib
from collections import Counter
from collections.abc import Sequence

from tests.e2e.chaos.network_faults import throttled
from tests.e2e.chaos.proxy import Answer, Around, Exchange

TICK, API, INGEST, PLANNER = "tick", "api", "ingest", "planner"
# Requests that change something; most ticks find nothing to send, and these are not killed.
_WRITES = {"PutItem", "BatchWriteItem", "TransactWriteItems"}
_CHANGES = _WRITES | {"UpdateItem", "SendMessageBatch"}
_OF_A_TICK = {"SendMessageBatch"}
# So that kills are spread over all kinds of requests.
_SPARED_SHARE = 0.5
# Of the API's invocations, one in so many cannot write jobs to the table: these are work for ingest.
_THROTTLED_ONE_IN = 3


def ingest_has_work(exchange: Exchange) -> Answer | None:
    """Throttle what some of the API's invocations write: they send it to the inbound queue instead."""
    is_write = exchange.sender.function == API and exchange.operation in _WRITES
    is_throttled = is_write and not zlib.crc32(exchange.sender.invocation.encode()) % _THROTTLED_ONE_IN
    return throttled(exchange) if is_throttled else exchange.pass_on()


class Killer:
    """Kills processes of functions, each function's as often, evenly over so many seconds.

    A process has no effect but by its requests. So to die before one takes effect, or after it did and before its
    answer is read, are all the ways there are to die; other requests of the same process may be on their way meanwhile.
    `done` has how many died, by what they were doing. All other requests go on to `otherwise`.
    """

    def __init__(
        self,
        functions: Sequence[str],
        *,
        kills: int,
        seconds: float,
        seed: int,
        otherwise: Around = ingest_has_work,
    ) -> None:
        self.done: Counter[str] = Counter()
        self._otherwise = otherwise
        self._left = Counter(functions[number % len(functions)] for number in range(kills))
        self._due, self._pause = dict.fromkeys(functions, time.monotonic()), len(functions) * seconds / max(1, kills)
        self._random = random.Random(seed)
        self._doomed: set[int] = set()
        self._lock = threading.Lock()

    @property
    def is_done(self) -> bool:
        return not self._left.total()

    def __call__(self, exchange: Exchange) -> Answer | None:
        if not self._is_chosen(exchange):
            return self._otherwise(exchange)
        has_effect = self._random.random() < 0.5
        if has_effect:
            exchange.pass_on()
        exchange.fault = f"killed {'after' if has_effect else 'before'} its effect"
        exchange.sender.kill()
        self.done[f"{exchange.sender.function}: {exchange.operation}, {exchange.fault}"] += 1
        return None

    def _is_chosen(self, exchange: Exchange) -> bool:
        function, pid = exchange.sender.function, exchange.sender.pid
        if exchange.operation not in (_OF_A_TICK if function == TICK else _CHANGES):
            return False
        with self._lock:
            now = time.monotonic()
            is_due = self._left[function] and now >= self._due[function] and pid not in self._doomed
            if not is_due or self._random.random() < _SPARED_SHARE:
                return False
            self._doomed.add(pid)
            self._left[function] -= 1
            self._due[function] = max(self._due[function] + self._pause, now)
        return True
