"""The messages that this process received and has not acknowledged: SQS calls them in flight."""

from collections.abc import Iterable

from dueline.worker.acknowledger import Ack, Acknowledger
from dueline.worker.claim import Claim
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.visibility import VisibilityRenewer
from dueline.worker.watch.event import Report

_FINAL_ACKS_SECONDS = 5.0


class InFlight:
    """Keeps messages invisible to others until each is deleted, or hidden until it is to be received again."""

    def __init__(self, connection: QueueConnection, *, report: Report) -> None:
        self._renewer = VisibilityRenewer(connection, report=report)
        self._acknowledger = Acknowledger(connection, on_send=self._renewer.settle, on_end=self._end, report=report)
        self._put_back: set[Claim] = set()

    def start(self) -> None:
        self._renewer.start()
        self._acknowledger.start()

    def add(self, claims: Iterable[Claim]) -> None:
        self._renewer.add(claims)

    def has(self, claim: Claim) -> bool:
        """Tell whether a message is still this process's; report it if it is not."""
        return self._renewer.has(claim)

    def delete(self, claim: Claim) -> None:
        """Let SQS delete a message: its job is over."""
        self._acknowledger.put(Ack(claim=claim))

    def hide(self, claim: Claim, seconds: int) -> None:
        """Let SQS deliver a message again after so many seconds, to whichever worker asks."""
        self._acknowledger.put(Ack(claim=claim, hidden=seconds))

    @property
    def is_idle(self) -> bool:
        """Whether SQS has been told of all that was deleted or hidden."""
        return self._acknowledger.is_idle

    def stop(self, *, put_back: bool) -> None:
        """Renew no more, and send the last acknowledgements. With `put_back`, all other messages become visible."""
        self._renewer.stop()
        if put_back:
            self._put_back.update(claim for claim in self._renewer.held if not self._acknowledger.has(claim))
        for claim in self._put_back:
            self.hide(claim, 0)
        self._acknowledger.stop(within=_FINAL_ACKS_SECONDS)

    def _end(self, claim: Claim) -> None:
        if claim in self._put_back:
            # Another worker's by now: whatever its handler still does, the message is not acknowledged here.
            claim.lost = True
        self._renewer.end(claim)
