"""The claims of a queue worker: messages that it received, and that no other worker gets until each is settled."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from dueline.core.message import BATCH_MESSAGES
from dueline.core.ports import BatchFailure
from dueline.core.queue_settings import LEAST_VISIBILITY_TIMEOUT
from dueline.core.text import text_of
from dueline.errors import Unavailable
from dueline.worker.delivery import Ack, EventKind, ReceivedMessage
from dueline.worker.queue_context import QueueContext

# An acknowledgement waits this long for others, to fill a batch; a receive, for permits of a full batch.
_FULL_BATCH_SECONDS = 0.02
_RETRY_SECONDS = 1.0
# Claims are checked this often within the shortest visibility timeout, which a queue may get at any time.
_CHECKS = 10
# Renewals and acknowledgements do not wait for one another.
_THREADS = 2


class Claims:
    """Holds each received message: its permit until it is settled, its visibility until SQS has acknowledged it.

    A permit is acquired before a message is received (`wait_for_permits`), and released when `delete` or `hide` settles
    it: there are `concurrency`, one for each thread that runs handlers. Threads of its own renew the visibility of
    messages at half of their time, and send acknowledgements in batches, until `close`. A message that is not settled
    in time is lost. One lock guards all of this.
    """

    def __init__(self, context: QueueContext, *, concurrency: int) -> None:
        self._context, self._concurrency = context, concurrency
        self._changed = threading.Condition()
        self._held: set[ReceivedMessage] = set()
        self._unsettled: set[ReceivedMessage] = set()
        # Settled, by level and whether they are deleted: in order of their time, as SQS is to be sent each batch.
        self._settled: dict[tuple[int, bool], list[ReceivedMessage]] = {}
        # Of a request that is on its way.
        self._busy: set[ReceivedMessage] = set()
        self._check_seconds = min(LEAST_VISIBILITY_TIMEOUT, context.settings.visibility_timeout) / _CHECKS
        # When the next batch of a kind may be sent, after one has failed.
        self._resume: dict[tuple[int, bool], float] = {}
        self._next_check = -math.inf
        self._is_closed = False

    def start(self) -> None:
        """Raises RuntimeError when the system has no more threads."""
        for _ in range(_THREADS):
            threading.Thread(target=self._run, name=f"claims {self._context.queue}", daemon=True).start()

    def wait_for_permits(self, *, within: float) -> int:
        """Wait up to `within` seconds for a permit; return how many messages may be received, or 0.

        Waits a moment more for the permits of a full batch, so that few requests receive many messages.
        """
        full = min(BATCH_MESSAGES, self._concurrency)
        with self._changed:
            if self._changed.wait_for(lambda: self._permits > 0, timeout=within):
                self._changed.wait_for(lambda: self._permits >= full, timeout=_FULL_BATCH_SECONDS)
            return self._permits

    @property
    def _permits(self) -> int:
        return self._concurrency - len(self._unsettled)

    def add(self, claims: Iterable[ReceivedMessage]) -> None:
        with self._changed:
            self._held.update(claims)
            self._unsettled.update(claims)

    def has(self, claim: ReceivedMessage) -> bool:
        """Return whether a message is still this process's; report it, and release its permit, if it is not."""
        if claim.is_live(self._now()):
            return True
        with self._changed:
            self._end(claim, lost=True)
        return False

    def delete(self, claim: ReceivedMessage) -> None:
        """Settle a message whose job is over: SQS deletes it."""
        self._settle(claim, None)

    def hide(self, claim: ReceivedMessage, seconds: int) -> None:
        """Settle a message that SQS is to deliver again, after so many seconds, to any worker."""
        self._settle(claim, seconds)

    def _settle(self, claim: ReceivedMessage, hidden: int | None, *, returns: bool = False) -> None:
        """Release the permit, and queue the acknowledgement. The first one counts."""
        with self._changed:
            self._unsettled.discard(claim)
            if claim in self._held and claim.ack is None:
                claim.ack = Ack(hidden=hidden, at=self._now() + _FULL_BATCH_SECONDS, returns=returns)
                self._settled.setdefault(claim.request, []).append(claim)
            self._changed.notify_all()

    @property
    def is_idle(self) -> bool:
        """Whether SQS has acknowledged all messages, but for those that were lost."""
        return not self._held

    def stop(self) -> bool:
        """Renew no more, and let messages whose handlers still run become visible; return whether there were none."""
        with self._changed:
            unsettled, self._next_check = list(self._unsettled), math.inf
            for claim in unsettled:
                self._settle(claim, 0, returns=True)
            self._changed.notify_all()
        return not unsettled

    def close(self, *, within: float) -> None:
        """Wait up to so many seconds until the last acknowledgements are sent: then the rest is lost."""
        with self._changed:
            self._changed.wait_for(lambda: not any(each.ack for each in self._held), timeout=max(0.0, within))
            self._is_closed = True
            for claim in [each for each in self._held if each.ack]:
                self._end(claim, lost=True)
            self._changed.notify_all()

    def _run(self) -> None:
        while not self._is_closed:
            try:
                if self.send_next():
                    continue
            except Exception as fault:
                # Whatever it is: a thread that ended would leave the messages to other workers.
                self._context.report_error(fault)
                time.sleep(self._check_seconds)
            with self._changed:
                if not self._is_closed:
                    self._changed.wait(self._seconds_until_next())

    def send_next(self) -> bool:
        """Send the next request that is due, renewals first; return whether there was one."""
        with self._changed:
            batch = self._due_renewals()
            send: Callable[[list[ReceivedMessage]], None] = self._renew if batch else self._acknowledge
            batch = batch or self._due_acks()
            self._busy.update(batch)
        if not batch:
            # No notification: the threads would wake each other for ever.
            return False
        try:
            send(batch)
        finally:
            with self._changed:
                self._busy.difference_update(batch)
                self._changed.notify_all()
        return True

    def _seconds_until_next(self) -> float:
        """Return in how many seconds to look again. A message that is in a request has to wait for its answer."""
        times = [
            max(claim.ack.at, self._resume.get(claim.request, claim.ack.at))
            for settled in self._settled.values()
            for claim in settled
            if claim.ack and claim not in self._busy
        ]
        return max(0.0, min([self._check_seconds, *(at - self._now() for at in times)]))

    def _due_renewals(self) -> list[ReceivedMessage]:
        """Return claims to renew in one request: the next to end of the most urgent level. Report those that are lost.

        None is renewed while it is in another request: a renewal that came after an acknowledgement would undo it.
        """
        now = self._now()
        if now < self._next_check:
            return []
        for claim in self._held - self._busy:
            if not claim.is_live(now):
                self._drop(claim)
        due = [each for each in self._held - self._busy if self._is_due(each, now)]
        due.sort(key=lambda claim: (claim.level, claim.visible))
        claims = [each for each in due if each.level == due[0].level][:BATCH_MESSAGES]
        if not claims:
            self._next_check = now + self._check_seconds
        for claim in claims:
            claim.tried = now
        return claims

    def _is_due(self, claim: ReceivedMessage, now: float) -> bool:
        half = self._context.settings.visibility_timeout / 2
        is_half_over = claim.is_live(now) and claim.visible - now <= half
        return is_half_over and now - claim.tried >= self._check_seconds and self._seconds_for(claim, now) > half

    def _seconds_for(self, claim: ReceivedMessage, now: float) -> int:
        """Return for how many seconds a claim may be renewed."""
        settings = self._context.settings
        return min(settings.visibility_timeout, int(claim.renewable_until(settings.longest_run) - now))

    def _renew(self, claims: list[ReceivedMessage]) -> None:
        seconds = [self._seconds_for(claim, claim.tried) for claim in claims]
        try:
            failures = self._hide(claims, seconds)
        except Exception as fault:
            self._context.report_error(fault, "a claim was not renewed")
            return
        now = self._now()
        for index, claim in enumerate(claims):
            failure = failures.get(index)
            if failure and failure.final:
                with self._changed:
                    self._drop(claim)
            # A claim that ended before the answer may have been lost before SQS acted.
            elif not failure and claim.is_live(now):
                claim.visible = claim.tried + seconds[index]

    def _due_acks(self) -> list[ReceivedMessage]:
        """Return settled messages to acknowledge in one request: once it is full, or one has waited a moment."""
        now = self._now()
        for request, settled in self._settled.items():
            if now < self._resume.get(request, now):
                continue
            batch = [claim for claim in settled if claim not in self._busy][:BATCH_MESSAGES]
            if len(batch) == BATCH_MESSAGES or any(claim.ack and claim.ack.at <= now for claim in batch):
                self._settled[request] = [claim for claim in settled if claim not in batch]
                return batch
        return []

    def _acknowledge(self, claims: list[ReceivedMessage]) -> None:
        now = self._now()
        live = [claim for claim in claims if claim.is_live(now)]
        failures = self._request(live) if live else {}
        for reason in {each.reason for each in failures.values() if not each.final}:
            what = "a message was not acknowledged, and will be"
            self._context.report_error(Unavailable(reason), what)
        done = [claim for index, claim in enumerate(live) if index not in failures]
        again = [claim for index, claim in enumerate(live) if index in failures and not failures[index].final]
        with self._changed:
            for claim in claims:
                if claim not in again:
                    self._end(claim, lost=claim not in done)
            if again:
                # Until then, they are renewed.
                self._settled[again[0].request] = again + self._settled[again[0].request]
                self._resume[again[0].request] = self._now() + _RETRY_SECONDS

    def _request(self, claims: Sequence[ReceivedMessage]) -> dict[int, BatchFailure]:
        """Send acknowledgements of one kind; return those that failed, by index."""
        level, is_deleted = claims[0].request
        try:
            if is_deleted:
                receipts = [claim.arrival.receipt for claim in claims]
                return {each.index: each for each in self._context.levels[level].delete(receipts)}
            return self._hide(claims, [claim.ack.hidden or 0 for claim in claims if claim.ack])
        except Exception as fault:
            reason = text_of(fault)
            return {index: BatchFailure(index=index, reason=reason, final=False) for index in range(len(claims))}

    def _hide(self, claims: Sequence[ReceivedMessage], seconds: Sequence[int]) -> dict[int, BatchFailure]:
        inbox = self._context.levels[claims[0].level]
        return {each.index: each for each in inbox.hide([claim.arrival.receipt for claim in claims], seconds)}

    def _end(self, claim: ReceivedMessage, *, lost: bool) -> None:
        """Hold a message no longer. One that went back is not acknowledged here, whatever its handler still does."""
        if lost:
            self._lose(claim)
        claim.lost |= claim.ack is not None and claim.ack.returns
        self._held.discard(claim)
        self._unsettled.discard(claim)
        self._changed.notify_all()

    def _drop(self, claim: ReceivedMessage) -> None:
        """Lose a claim. Its job, if that waits to begin, does not keep its permit until then: it never begins."""
        if claim.started is None and claim.ack is None:
            self._end(claim, lost=True)
        else:
            self._lose(claim)

    def _lose(self, claim: ReceivedMessage) -> None:
        """Note that another worker may have received the message; report that once."""
        if not claim.lost:
            claim.lost = True
            self._context.report(claim.event(EventKind.LOST))

    def _now(self) -> float:
        return self._context.clock.monotonic()
