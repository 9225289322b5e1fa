"""Renew the claims on messages whose jobs are not over."""

import threading
from collections.abc import Iterable, Sequence
from itertools import groupby

from dueline.message import BATCH_MESSAGES, batches
from dueline.working.claim import Claim
from dueline.working.event import Report, trouble
from dueline.working.place import Place

# A claim is renewed at half of its time, and looked at this many times in it.
_LOOKS = 10


class Claims:
    """The claims of one queue that are not over, renewed in a thread of its own until `stop`.

    None is renewed beyond `longest_run` seconds after its receipt: then it is lost, and its handler can see that.
    """

    def __init__(self, place: Place, *, report: Report) -> None:
        self._place = place
        self._report = report
        self._held: set[Claim] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        name = f"claims {place.queue}"
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

    @property
    def held(self) -> list[Claim]:
        with self._lock:
            return list(self._held)

    def _run(self) -> None:
        while not self._stopped.wait(self._place.settings.visibility_timeout / _LOOKS):
            self.renew()

    def renew(self) -> None:
        """Renew the claims that are half over, and note those that are lost."""
        now = self._place.clock.monotonic()
        for claim in self.held:
            if not claim.is_live(now):
                self._lose(claim)
        due = sorted((claim for claim in self.held if self._is_due(claim, now)), key=lambda claim: claim.level)
        for _, alike in groupby(due, key=lambda claim: claim.level):
            for batch in batches(alike, size=lambda _: 0, most=BATCH_MESSAGES):
                self._renew(batch)

    def _is_due(self, claim: Claim, now: float) -> bool:
        half = self._place.settings.visibility_timeout / 2
        return claim.is_live(now) and claim.visible - now <= half and self._seconds_for(claim, now) > half

    def _seconds_for(self, claim: Claim, now: float) -> int:
        """Return for how many seconds a claim may be renewed."""
        left = claim.received + self._place.settings.longest_run - now
        return min(self._place.settings.visibility_timeout, int(left))

    def _renew(self, claims: Sequence[Claim]) -> None:
        asked = self._place.clock.monotonic()
        seconds = [self._seconds_for(claim, asked) for claim in claims]
        receipts = [claim.arrival.receipt for claim in claims]
        try:
            refusals = self._place.levels[claims[0].level].hide(receipts, seconds)
        except Exception as fault:
            self._report(trouble(fault, queue=self._place.queue, what="a claim was not renewed"))
            return
        refused = {refusal.index for refusal in refusals}
        for refusal in refusals:
            if refusal.final:
                self._lose(claims[refusal.index])
        for index, claim in enumerate(claims):
            if index not in refused:
                claim.visible = asked + seconds[index]

    def _lose(self, claim: Claim) -> None:
        claim.lose(queue=self._place.queue, report=self._report)
