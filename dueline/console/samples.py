"""Samples: some of the dead letters of each error, kept as they are received."""

from collections.abc import Sequence
from typing import Any

from dueline.model import instant
from dueline.model.folding import unfolded
from dueline.model.message import ATTEMPTS, DUE, ID, REASON, TENANT
from dueline.model.trace import TraceContext
from dueline.operate.dead_letters import kind_of
from dueline.operate.redrive import DeadLetters
from dueline.ports import Arrival, Depth, Refusal

_MOST_SAMPLES = 3
_MOST_CHARACTERS = 2000


class Sampling:
    """A dead-letter queue that keeps samples of what is received from it. `there` is how many messages it had."""

    def __init__(self, dead_letters: DeadLetters) -> None:
        self._inner = dead_letters
        self._samples: dict[str, dict[str, dict[str, Any]]] = {}
        self.there = 0

    def of(self, error: str) -> list[dict[str, Any]]:
        """Return the samples of an error."""
        return list(self._samples.get(error, {}).values())

    def depth(self) -> Depth:
        depth = self._inner.depth()
        self.there = depth.waiting
        return depth

    def receive(self, *, most: int, wait: int, hidden: int | None = None) -> list[Arrival]:
        arrivals = self._inner.receive(most=most, wait=wait, hidden=hidden)
        for arrival in arrivals:
            samples = self._samples.setdefault(kind_of(arrival.message), {})
            if len(samples) < _MOST_SAMPLES:
                samples[arrival.message_id] = _sample(arrival)
        return arrivals

    def delete(self, receipts: Sequence[str]) -> list[Refusal]:
        return self._inner.delete(receipts)

    def hide(self, receipts: Sequence[str], seconds: Sequence[int]) -> list[Refusal]:
        return self._inner.hide(receipts, seconds)


def _sample(arrival: Arrival) -> dict[str, Any]:
    told, body = unfolded(arrival.message.attributes), arrival.message.body
    trace, attempts = TraceContext.from_headers(told), told.get(ATTEMPTS, "")
    return {
        "id": told.get(ID),
        "payload": body[:_MOST_CHARACTERS],
        "cut": len(body) > _MOST_CHARACTERS,
        "reason": told.get(REASON),
        "attempts": int(attempts) if attempts.isascii() and attempts.isdecimal() and len(attempts) < 10 else None,
        "sent": instant.text(arrival.sent),
        "due": told.get(DUE),
        "tenant": told.get(TENANT),
        "trace": trace.parent.split("-")[1] if trace else None,
    }
