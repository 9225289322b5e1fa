"""What is simulated: a load, and what goes wrong."""

from dataclasses import dataclass

DAY = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """Jobs a second, each with a row of `row_bytes`, due so many seconds ahead; `together`: at the next full minute."""

    rate: float
    ahead: float = 900
    row_bytes: int = 1024
    together: bool = False

    def due(self, submitted: float) -> float:
        due = submitted + self.ahead
        return -(-due // 60) * 60.0 if self.together else due


@dataclass(frozen=True, kw_only=True, slots=True)
class Outage:
    """A time in which each request to a service fails: dynamodb, sqs or scheduler. Seconds from the beginning."""

    service: str
    start: float
    end: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """A load for so many seconds. The firing of the tick in minute `missed` is missed; a negative one is none.

    Jobs come in over the HTTP API, or, if all are `buffered`, straight into the inbound queue.
    """

    load: Load
    seconds: float
    outage: Outage | None = None
    missed: int = -1
    comes_in: bool = True
    buffered: bool = False
    seed: int = 1
