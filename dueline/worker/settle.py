"""Tell SQS what is to become of received messages, after their handlers ran."""

from collections.abc import Callable

from dueline.worker.acknowledger import Ack, Acknowledger
from dueline.worker.bury import Burial, bury
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.received import Taken
from dueline.worker.verdict import Again, Dead, Held, Verdict
from dueline.worker.visibility import VisibilityRenewer
from dueline.worker.watch.event import Report, trouble


class Settle:
    """Acknowledges messages as verdicts say; what is dead is buried before its message is deleted.

    A burial that fails goes to `later`, to be given to `bury` again: its handler does not run again for that. So does a
    job that could not begin, to be run again.
    """

    def __init__(
        self,
        connection: QueueConnection,
        *,
        acknowledger: Acknowledger,
        renewer: VisibilityRenewer,
        later: Callable[[Taken | Burial], None],
        report: Report,
    ) -> None:
        self._connection, self._acknowledger, self._renewer = connection, acknowledger, renewer
        self._later, self._report = later, report

    def settle(self, taken: Taken, verdict: Verdict) -> None:
        """Tell SQS what is to become of a message."""
        match verdict:
            case Again(seconds=seconds):
                self._acknowledger.put(Ack(claim=taken.claim, hidden=seconds))
            case Dead():
                self.bury(Burial(taken=taken, dead=verdict))
            case Held():
                self._later(taken)
            case _:
                self._acknowledger.put(Ack(claim=taken.claim))

    def bury(self, burial: Burial) -> None:
        """Bury a job, unless its message may be another's by now."""
        if not self._renewer.has(burial.taken.claim):
            return
        try:
            bury(burial.taken, burial.dead, dead_letters=self._connection.dead_letters)
        except Exception as fault:
            self._report(trouble(fault, queue=self._connection.queue))
            self._later(burial)
        else:
            self._acknowledger.put(Ack(claim=burial.taken.claim))
