"""What befalls those who are not killed while schedules are changed: a drought, ticks that fail, messages lost."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.faults.exchange import Answer, Around, Exchange, straight
from tests.e2e.faults.killing import TICK
from tests.e2e.faults.mishaps import the_table_throttled

DROUGHT, NO_TICKS = "of all", "of ticks"
# From which share of a season to which, or until there were enough.
_SHARES = {DROUGHT: (0.3, 0.4), NO_TICKS: (0.6, 0.75)}
FEWEST = 8


@dataclass(kw_only=True, slots=True)
class Weather:
    """Throttles the tables for a tenth of a season, and for a while ticks alone: it is as if they were missed."""

    seconds: float
    throttled: Counter[str] = field(default_factory=Counter)
    _begun: float = field(default_factory=time.monotonic)

    def __call__(self, exchange: Exchange) -> Answer | None:
        share = (time.monotonic() - self._begun) / self.seconds
        for kind, (begin, end) in _SHARES.items():
            is_on = begin <= share and (share < end or self.throttled[kind] < FEWEST)
            if is_on and (kind == DROUGHT or exchange.process.function == TICK):
                self.throttled[kind] += 1
                return the_table_throttled(exchange)
        return exchange.pass_on()

    @property
    def is_over(self) -> bool:
        return all(self.throttled[kind] >= FEWEST for kind in _SHARES)


@dataclass(kw_only=True, slots=True)
class Losing:
    """Loses the planning jobs of a schedule, as SQS never does: whoever sends one is told that it is sent."""

    schedule: str
    around: Around = straight
    lost: int = 0

    def __call__(self, exchange: Exchange) -> Answer | None:
        if exchange.operation != "SendMessageBatch" or not self._lost_of(exchange):
            return self.around(exchange)
        lost, asked = self._lost_of(exchange), exchange.asked()
        self.lost += len(lost)
        exchange.mishap = "messages are lost"
        kept = [each for each in asked["Entries"] if each not in lost]
        told = exchange.pass_on({**asked, "Entries": kept}).told() if kept else {"Failed": []}
        sent = [{"Id": each["Id"], "MessageId": each["Id"], "MD5OfMessageBody": ""} for each in lost]
        return Answer.of({**told, "Successful": [*told.get("Successful", []), *sent]})

    def _lost_of(self, exchange: Exchange) -> list[dict[str, Any]]:
        said = f'"schedule":"{self.schedule}","generation"'
        return [each for each in exchange.asked()["Entries"] if said in each["MessageBody"]]
