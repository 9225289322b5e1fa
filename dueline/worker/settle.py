"""Tell SQS what is to become of received messages, after their handlers ran."""

from collections.abc import Callable

from dueline.worker.acknowledger import Ack, Acks
from dueline.worker.bury import Burial, bury
from dueline.worker.connection import Place
from dueline.worker.received import Taken
from dueline.worker.verdict import Again, Dead, Held, Verdict
from dueline.worker.visibility import Claims
from dueline.worker.watch.event import Report, trouble


class Settling:
    """Acknowledges messages as verdicts say; what is dead is buried before its message is deleted.

    A burial that fails goes to `later`, to be given to `bury` again: its handler does not run again for that. So does a
    job that could not begin, to be run again.
    """

    def __init__(
        self, place: Place, *, acks: Acks, claims: Claims, later: Callable[[Taken | Burial], None], report: Report
    ) -> None:
        self._place, self._acks, self._claims = place, acks, claims
        self._later, self._report = later, report

    def settle(self, taken: Taken, verdict: Verdict) -> None:
        """Tell SQS what is to become of a message."""
        match verdict:
            case Again(seconds=seconds):
                self._acks.put(Ack(claim=taken.claim, hidden=seconds))
            case Dead():
                self.bury(Burial(taken=taken, dead=verdict))
            case Held():
                self._later(taken)
            case _:
                self._acks.put(Ack(claim=taken.claim))

    def bury(self, burial: Burial) -> None:
        """Bury a job, unless its message may be another's by now."""
        if not self._claims.has(burial.taken.claim):
            return
        try:
            bury(burial.taken, burial.dead, dead_letters=self._place.dead_letters)
        except Exception as fault:
            self._report(trouble(fault, queue=self._place.queue))
            self._later(burial)
        else:
            self._acks.put(Ack(claim=burial.taken.claim))
