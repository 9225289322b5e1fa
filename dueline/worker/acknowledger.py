"""Acknowledge messages in batches: delete or hide them, only while the claim on them is live."""

import queue
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

from dueline.errors import Unavailable
from dueline.model.message import BATCH_MESSAGES
from dueline.ports import Refusal
from dueline.worker.claim import Claim
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.watch.event import Report, trouble

_FULL_BATCH_SECONDS = 0.02
_RETRY_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Ack:
    """What SQS is to do with a message: hide it for so many seconds from now or, without `hidden`, delete it."""

    claim: Claim
    hidden: int | None = None

    @property
    def request(self) -> tuple[int, bool]:
        """What acknowledgements that go to SQS in one request have in common."""
        return self.claim.level, self.hidden is None


class Acknowledger:
    """Sends acknowledgements to SQS, in a thread of its own.

    `on_send` is called with the claims of a batch before it is sent, `on_end` with each that is acknowledged or lost.
    """

    def __init__(
        self,
        connection: QueueConnection,
        *,
        on_end: Callable[[Claim], None],
        report: Report,
        on_send: Callable[[Collection[Claim]], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._on_end = on_end
        self._on_send = on_send
        self._report = report
        self._waiting: queue.SimpleQueue[Ack | None] = queue.SimpleQueue()
        self._unsent: set[Claim] = set()
        self._stopped, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"acknowledger {connection.queue}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, ack: Ack) -> None:
        self._unsent.add(ack.claim)
        self._waiting.put(ack)

    @property
    def is_idle(self) -> bool:
        """Whether SQS has answered all that was put."""
        return not self._unsent

    def has(self, claim: Claim) -> bool:
        """Tell whether the acknowledgement of a message is still to be sent."""
        return claim in self._unsent

    def stop(self, *, within: float) -> None:
        """Wait until all that was put is sent, at most `within` seconds: then the rest is lost."""
        self._stopped.set()
        self._waiting.put(None)
        if self._thread.is_alive():
            self._thread.join(max(0.0, within))
        self._ended.set()
        for claim in list(self._unsent):
            self._end(claim, lost=True)

    def _run(self) -> None:
        while not self._ended.is_set():
            batch = self._next_batch()
            for ack in self.send(batch):
                self._waiting.put(ack)
            if self._stopped.is_set() and self._waiting.empty():
                return

    def _next_batch(self) -> list[Ack]:
        """Wait for the first acknowledgement, and a moment for more."""
        first = self._waiting.get()
        batch = [] if first is None else [first]
        try:
            while batch and len(batch) < BATCH_MESSAGES:
                more = self._waiting.get(timeout=_FULL_BATCH_SECONDS)
                if more is None:
                    break
                batch.append(more)
        except queue.Empty:
            pass
        return batch

    def send(self, batch: Sequence[Ack]) -> list[Ack]:
        """Send up to 10 acknowledgements; return those that are to be sent again."""
        self._on_send([ack.claim for ack in batch])
        now = self._connection.clock.monotonic()
        live = []
        for ack in batch:
            if ack.claim.is_live(now):
                live.append(ack)
            else:
                self._end(ack.claim, lost=True)
        again: list[Ack] = []
        for _, alike in groupby(sorted(live, key=lambda ack: ack.request), key=lambda ack: ack.request):
            again += self._send_alike(list(alike))
        for ack in again:
            # Until it is, its claim is renewed.
            ack.claim.settled = False
        if again:
            self._ended.wait(_RETRY_SECONDS)
        return again

    def _send_alike(self, acks: list[Ack]) -> list[Ack]:
        try:
            refusals = {refusal.index: refusal for refusal in self._request(acks)}
        except Exception as fault:
            self._report(trouble(fault, queue=self._connection.queue))
            return acks
        for index, ack in enumerate(acks):
            if index not in refusals or refusals[index].final:
                self._end(ack.claim, lost=index in refusals)
        again = {index: refusal.reason for index, refusal in refusals.items() if not refusal.final}
        for reason in set(again.values()):
            refused = Unavailable(reason)
            self._report(
                trouble(refused, queue=self._connection.queue, what="a message was not acknowledged, and will be")
            )
        return [acks[index] for index in again]

    def _request(self, acks: Sequence[Ack]) -> list[Refusal]:
        inbox = self._connection.levels[acks[0].claim.level]
        receipts = [ack.claim.arrival.receipt for ack in acks]
        if acks[0].hidden is None:
            return inbox.delete(receipts)
        return inbox.hide(receipts, [ack.hidden or 0 for ack in acks])

    def _end(self, claim: Claim, *, lost: bool) -> None:
        if lost:
            claim.lose(queue=self._connection.queue, report=self._report)
        self._on_end(claim)
        self._unsent.discard(claim)
