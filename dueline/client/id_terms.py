"""Id terms: what an id needs of a deployment before its job is sent."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.client.dated import Moment
from dueline.model import instant
from dueline.model.job import Route
from dueline.model.routing import route_of


@dataclass(frozen=True, kw_only=True, slots=True)
class IdTerms:
    """What the ids of a queue's jobs need: partitions that take jobs, what is due so soon that it goes direct, and now.

    `moment` is what AWS's clock shows.
    """

    partitions: int
    direct_horizon: timedelta
    moment: Moment

    def due(self, *, at: datetime | None, delay: float | None) -> datetime:
        """Return when a job is due, as the API would: in whole milliseconds, and never in the past.

        A delay begins now, and never early.
        """
        if delay:
            return instant.round_up(self.moment.latest + timedelta(seconds=delay))
        present = instant.from_epoch_ms(instant.epoch_ms(self.moment.earliest))
        return present if at is None else max(present, instant.round_up(at))

    def route(self, due: datetime) -> Route:
        """Return the route of what is due then."""
        # By the earliest time: SQS must be able to hold what goes the direct route.
        return route_of(due, now=self.moment.earliest, direct_horizon=self.direct_horizon)
