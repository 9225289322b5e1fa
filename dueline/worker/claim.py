"""The claim on a received message: nobody else has it before it is visible again."""

from dataclasses import dataclass

from dueline.model.message import ID
from dueline.model.retry_policy import LONGEST_HIDDEN_SECONDS
from dueline.ports import Arrival
from dueline.worker.watch.event import Event, Kind, Report

# Between the look at the clock and the moment at which SQS acts.
_MARGIN_SECONDS = 0.2


@dataclass(kw_only=True, slots=True, eq=False)
class Claim:
    """A message that this process received, from the level of its queue that `level` counts from 0.

    `received` and `visible` are on the monotonic clock, and counted from before the request: the message is visible
    again at `visible` at the earliest. While its handler runs, that began at `begun`. A claim that is `lost` is never
    acknowledged: the message may be another's. One that is `settled` is being acknowledged: it is not renewed.
    `told`: that its message was received, which is counted once.
    """

    arrival: Arrival
    level: int
    received: float
    visible: float
    begun: float | None = None
    lost: bool = False
    settled: bool = False
    told: bool = False

    def is_live(self, now: float) -> bool:
        """Tell whether the message is still this process's."""
        return not self.lost and now < self.visible - _MARGIN_SECONDS

    def until(self, longest_run: int) -> float:
        """Return up to when it may be renewed: its job may run for `longest_run` seconds.

        While that does not run, it waits for as long as SQS lets it and leaves time for that.
        """
        if self.begun is not None:
            return min(self.begun + longest_run, self.received + LONGEST_HIDDEN_SECONDS)
        return self.received + max(longest_run, LONGEST_HIDDEN_SECONDS - longest_run)

    def lose(self, *, queue: str, report: Report) -> None:
        """Note that the message may be another's by now, and tell of it once."""
        if not self.lost:
            self.lost = True
            job = self.arrival.message.attributes.get(ID, self.arrival.message_id)
            report(Event(kind=Kind.LOST, queue=queue, job=job, attempt=self.arrival.receives))
