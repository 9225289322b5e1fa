"""SQS as a model: a queue as who sends to it has it, and the inbound queue."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from bench.scale.parameters import Aws
from bench.scale.turns import Environment
from dueline.errors import Unavailable
from dueline.model.message import Message
from dueline.ports import Depth, Refusal

Arrive = Callable[[Message, float], None]


class QueuePort:
    """A queue as one process has it. `arrive` is told of what was sent, and when it can be seen, in seconds.

    `cpu` is what a sent job takes, in seconds of a vCPU, `most` the longest that a request may take.
    """

    def __init__(
        self,
        aws: Aws,
        arrive: Arrive,
        *,
        at: Environment,
        random: Random,
        is_down: Callable[[], bool],
        cpu: float,
        most: float,
    ) -> None:
        self._model, self._times = aws.sqs, aws.times
        self._arrive, self._at, self._random = arrive, at, random
        self._is_down, self._cpu, self._most = is_down, cpu, most

    def send(self, messages: Sequence[Message]) -> list[Refusal]:
        begun = self._at.monotonic()
        self._at.compute(self._cpu * len(messages))
        self._at.sleep(min(self._model.send.draw(self._random), self._most))
        if self._is_down():
            raise Unavailable("SQS is down")
        # Where all is slowed, a job is late by what its own send takes as it is.
        sent = begun + (self._at.monotonic() - begun) / self._times
        for message in messages:
            self._arrive(message, sent + message.delay)
        return []

    def depth(self) -> Depth:
        raise NotImplementedError("nobody asks a model how full it is")


@dataclass(kw_only=True, slots=True, eq=False)
class Inbound:
    """A message of the inbound queue, and how often it was received."""

    message: Message
    receives: int = 0


@dataclass(kw_only=True, slots=True)
class InboundQueue:
    """The inbound queue: what waits, and what is hidden until its visibility timeout is over."""

    waiting: deque[Inbound] = field(default_factory=deque)
    _hidden: list[tuple[float, int, Inbound]] = field(default_factory=list)
    _hides: int = 0
    in_flight: int = 0

    @property
    def held(self) -> int:
        return len(self.waiting) + len(self._hidden) + self.in_flight

    def put(self, message: Message, _: float) -> None:
        self.waiting.append(Inbound(message=message))

    def receive(self, most: int, *, now: float) -> list[Inbound]:
        while self._hidden and self._hidden[0][0] <= now:
            self.waiting.append(heappop(self._hidden)[2])
        received = [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]
        for each in received:
            each.receives += 1
        self.in_flight += len(received)
        return received

    def settle(self, received: Sequence[Inbound], *, again: Sequence[Inbound], visible: float) -> list[Inbound]:
        """Delete what was received, but for what is to come again; return what was deleted."""
        self.in_flight -= len(received)
        kept = set(map(id, again))
        for each in again:
            self._hides += 1
            heappush(self._hidden, (visible, self._hides, each))
        return [each for each in received if id(each) not in kept]
