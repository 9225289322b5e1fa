"""Process a job whose turn has come: run its handler, then acknowledge its message."""

from dueline.errors import RETRYABLE
from dueline.worker.dead_letter import DeadLetter
from dueline.worker.handler_runner import HandlerRunner
from dueline.worker.in_flight import InFlight
from dueline.worker.prefetch import RETRY_SECONDS, Item, Prefetched
from dueline.worker.prepare import prepare
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.received import ReceivedMessage
from dueline.worker.verdict import Again, Dead, Held, Verdict
from dueline.worker.watch.event import Kind, Report, trouble

# The cancellation of a job that has waited longer is read again before its handler begins.
_CANCELLATION_FRESH_SECONDS = 1.0


class Processor:
    """Runs the handler of each job, in a thread of the pool, and does with its message what the verdict says.

    A message goes into the dead-letter queue before it is deleted. When that fails it is tried again; the handler does
    not run again for that.
    """

    def __init__(
        self,
        connection: QueueConnection,
        runner: HandlerRunner,
        *,
        prefetched: Prefetched,
        in_flight: InFlight,
        report: Report,
    ) -> None:
        self._connection, self._runner, self._report = connection, runner, report
        self._prefetched, self._in_flight = prefetched, in_flight

    def process(self, item: Item) -> None:
        """Run a job's handler and settle its message, or send a dead letter. Raises nothing."""
        if isinstance(item, DeadLetter):
            self._send(item)
        else:
            self._run(item)

    def _run(self, received: ReceivedMessage) -> None:
        claim = received.claim
        try:
            if not self._may_run(received):
                return
            claim.begun = self._connection.clock.monotonic()
            verdict = self._runner.run(received)
            claim.begun = None
            self._settle(received, verdict)
        except Exception as fault:
            self._trouble(fault)
            self._in_flight.hide(claim, RETRY_SECONDS)

    def _may_run(self, received: ReceivedMessage) -> bool:
        """Tell whether a job may begin: its message is still this process's, and it is not cancelled.

        One that is cancelled is deleted. One whose cancellation AWS does not tell is prepared again.
        """
        claim = received.claim
        if not self._in_flight.has(claim):
            return False
        if self._connection.clock.monotonic() - received.cancellation_read <= _CANCELLATION_FRESH_SECONDS:
            return True
        try:
            cancelled = prepare([claim], self._connection).cancelled
        except RETRYABLE as fault:
            self._trouble(fault)
            self._prefetched.prepare_again(received)
            return False
        if cancelled:
            self._report(received.event(Kind.SKIPPED))
            self._in_flight.delete(claim)
            return False
        return self._in_flight.has(claim)

    def _settle(self, received: ReceivedMessage, verdict: Verdict) -> None:
        match verdict:
            case Again(seconds=seconds):
                self._in_flight.hide(received.claim, seconds)
            case Dead():
                self._send(DeadLetter(received=received, dead=verdict))
            case Held():
                self._prefetched.retry(received)
            case _:
                self._in_flight.delete(received.claim)

    def _send(self, letter: DeadLetter) -> None:
        """Send a dead letter, unless its message may be another worker's by now."""
        claim = letter.received.claim
        if not self._in_flight.has(claim):
            return
        try:
            letter.send(self._connection.dead_letters)
        except Exception as fault:
            self._trouble(fault)
            self._prefetched.retry(letter)
        else:
            self._in_flight.delete(claim)

    def _trouble(self, fault: Exception) -> None:
        self._report(trouble(fault, queue=self._connection.queue))
