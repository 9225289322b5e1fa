"""The claim on a received message: until it is visible again, no other worker receives it."""

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

    Times are on the monotonic clock, counted from before the request. The message is visible again at `visible` at the
    earliest. `begun` is when its handler began, while that runs. `lost`: another worker may have received the message,
    so it is never acknowledged here. `settled`: it is being acknowledged, and not renewed. `is_reported`: the event
    that it was received is out, of which there is one.
    """

    arrival: Arrival
    level: int
    received: float
    visible: float
    begun: float | None = None
    lost: bool = False
    settled: bool = False
    is_reported: bool = False

    def is_live(self, now: float) -> bool:
        """Tell whether the message is still this process's."""
        return not self.lost and now < self.visible - _MARGIN_SECONDS

    def renewable_until(self, longest_run: int) -> float:
        """Return up to when it may be renewed: its handler may run for `longest_run` seconds.

        Before the handler begins, that is as long as SQS allows, less the time to run.
        """
        if self.begun is not None:
            return min(self.begun + longest_run, self.received + LONGEST_HIDDEN_SECONDS)
        return self.received + max(longest_run, LONGEST_HIDDEN_SECONDS - longest_run)

    def lose(self, *, queue: str, report: Report) -> None:
        """Note that another worker may have received the message; report that once."""
        if not self.lost:
            self.lost = True
            job = self.arrival.message.attributes.get(ID, self.arrival.message_id)
            report(Event(kind=Kind.LOST, queue=queue, job=job, attempt=self.arrival.receives))
