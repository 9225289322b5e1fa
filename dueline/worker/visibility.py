"""Renew the claims on messages that are in flight, by a longer visibility timeout."""

import threading
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from dueline.model.message import BATCH_MESSAGES, batches
from dueline.model.work_settings import LEAST_VISIBILITY_TIMEOUT
from dueline.ports import Spread
from dueline.worker.claim import Claim
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.watch.event import Report, trouble

# A claim is renewed when half of its time is over. That is checked so many times in the shortest visibility timeout,
# which a queue may get at any moment.
_CHECKS = 10
# So many requests at once: one after another, they could take longer than a claim lasts.
_CONCURRENT_REQUESTS = 4


class VisibilityRenewer:
    """Renews the claims of one queue in threads of its own, until `stop`.

    None is renewed beyond `longest_run` seconds after its handler began: then it is lost, and its handler can see that.
    A claim whose handler has not begun is renewed for hours.
    """

    def __init__(self, connection: QueueConnection, *, report: Report) -> None:
        self._connection = connection
        self._report = report
        self._held: set[Claim] = set()
        self._renewing: set[Claim] = set()
        self._lock = threading.Condition()
        self._stopped = threading.Event()
        name = f"renewer {connection.queue}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def add(self, claims: Iterable[Claim]) -> None:
        with self._lock:
            self._held.update(claims)

    def end(self, claim: Claim) -> None:
        with self._lock:
            self._held.discard(claim)

    def has(self, claim: Claim) -> bool:
        """Tell whether a message is still this process's; report it if it is not."""
        if claim.is_live(self._connection.clock.monotonic()):
            return True
        self._lose(claim)
        self.end(claim)
        return False

    @property
    def held(self) -> list[Claim]:
        with self._lock:
            return list(self._held)

    def settle(self, claims: Collection[Claim]) -> None:
        """Renew these no more: they are about to be acknowledged. Returns when no renewal of them is on its way.

        A renewal that reached SQS after the acknowledgement would undo it.
        """
        with self._lock:
            for claim in claims:
                claim.settled = True
            self._lock.wait_for(lambda: self._renewing.isdisjoint(claims))

    def _run(self) -> None:
        every = min(LEAST_VISIBILITY_TIMEOUT, self._connection.settings.visibility_timeout) / _CHECKS
        with ThreadPoolExecutor(_CONCURRENT_REQUESTS, thread_name_prefix=self._thread.name) as threads:
            while not self._stopped.wait(every):
                self.renew(spread=threads.map)

    def renew(self, *, spread: Spread = map) -> None:
        """Renew the claims that are half over, the next to end first; report those that are lost."""
        now, held = self._connection.clock.monotonic(), self.held
        for claim in held:
            if not claim.is_live(now) and not claim.settled:
                self._lose(claim)
        due = sorted((each for each in held if self._is_due(each, now)), key=lambda each: (each.level, each.visible))
        requests: list[Sequence[Claim]] = []
        for _, alike in groupby(due, key=lambda claim: claim.level):
            requests += batches(alike, size=lambda _: 0, most=BATCH_MESSAGES)
        for _ in spread(self._renew, requests):
            """Until all are renewed."""

    def _is_due(self, claim: Claim, now: float) -> bool:
        half = self._connection.settings.visibility_timeout / 2
        is_half_over = claim.is_live(now) and claim.visible - now <= half
        return is_half_over and not claim.settled and self._seconds_for(claim, now) > half

    def _seconds_for(self, claim: Claim, now: float) -> int:
        """Return for how many seconds a claim may be renewed."""
        settings = self._connection.settings
        return min(settings.visibility_timeout, int(claim.renewable_until(settings.longest_run) - now))

    def _renew(self, claims: Sequence[Claim]) -> None:
        with self._lock:
            asked = self._connection.clock.monotonic()
            claims = [each for each in claims if each in self._held and self._is_due(each, asked)]
            self._renewing.update(claims)
        try:
            if claims:
                self._request(claims, asked)
        except Exception as fault:
            self._report(trouble(fault, queue=self._connection.queue, what="a claim was not renewed"))
        finally:
            with self._lock:
                self._renewing.difference_update(claims)
                self._lock.notify_all()

    def _request(self, claims: Sequence[Claim], asked: float) -> None:
        seconds = [self._seconds_for(claim, asked) for claim in claims]
        receipts = [claim.arrival.receipt for claim in claims]
        refusals = self._connection.levels[claims[0].level].hide(receipts, seconds)
        refused = {refusal.index for refusal in refusals}
        for refusal in refusals:
            if refusal.final:
                self._lose(claims[refusal.index])
        now = self._connection.clock.monotonic()
        for index, claim in enumerate(claims):
            # A claim that ended before the answer may have been lost before SQS acted.
            if index not in refused and claim.is_live(now):
                claim.visible = asked + seconds[index]

    def _lose(self, claim: Claim) -> None:
        claim.lose(queue=self._connection.queue, report=self._report)
