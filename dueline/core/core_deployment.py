"""A deployment over any ports: what submits, dispatches, moves and counts the jobs of its queues.

What not all processes need is imported when it is called: the cold start of a function loads nothing else.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

from dueline.core.dispatch import Dispatcher, Parking
from dueline.core.job import new_uid
from dueline.core.ports import Clock, ParallelMap, Payloads, Queue, Table

if TYPE_CHECKING:
    from dueline.core.overview import Overview
    from dueline.core.queue_settings import QueueSettings
    from dueline.core.reschedule import Reschedule
    from dueline.core.submit import Breaker, Submit


class CoreDeployment:
    """The operations on a deployment's table, queues and payloads, which a subclass has: on AWS, or in memory.

    `jitter` returns 0 to 1.
    """

    clock: Clock
    spread: ParallelMap

    def __init__(self, *, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self.breaker = cache(self._breaker)
        self.submit = cache(self._submit)

    @property
    def table(self) -> Table:
        raise NotImplementedError

    @property
    def payloads(self) -> Payloads:
        raise NotImplementedError

    @property
    def inbound(self) -> Queue:
        raise NotImplementedError

    @property
    def parked(self) -> Queue:
        """The dead-letter queue of dispatches, in which ticks park what they cannot send."""
        raise NotImplementedError

    def team_queue(self, queue: str, priority: int = 1) -> Queue:
        """Return the SQS queue of a priority."""
        raise NotImplementedError

    def dead_letter_queue(self, queue: str) -> Queue:
        raise NotImplementedError

    def dispatcher(self, queue: str, *, precise: bool) -> Dispatcher:
        """Return the dispatcher of a queue, which sends ten batches at once."""
        parking = Parking(table=self.table, dead_letters=self.parked, clock=self.clock)
        return Dispatcher(
            level=partial(self.team_queue, queue),
            parking=parking,
            clock=self.clock,
            jitter=self._jitter,
            spread=self.spread,
            precise=precise,
        )

    def reschedule(self, queue: "QueueSettings") -> "Reschedule":
        from dueline.core.move import Mover
        from dueline.core.reschedule import Reschedule

        mover = Mover(table=self.table, inbound=self.inbound, clock=self.clock)
        return Reschedule(queue, mover=mover, payloads=self.payloads, new_uid=new_uid)

    def overview(self, queue: "QueueSettings", *, lookahead: timedelta) -> "Overview":
        from dueline.core.overview import overview

        return overview(
            queue,
            table=self.table,
            level=partial(self.team_queue, queue.name),
            dead_letters=self.dead_letter_queue(queue.name),
            lookahead=lookahead,
            now=self.clock.now(),
            spread=self.spread,
        )

    def _submit(self, queue: "QueueSettings", *, direct_horizon: timedelta, is_buffered: bool = True) -> "Submit":
        """Return what submits jobs of a queue; `is_buffered` where the inbound queue takes what the table does not."""
        from dueline.core.submit import Submit

        return Submit(
            queue,
            table=self.table,
            payloads=self.payloads,
            inbound=self.inbound,
            dispatcher=self.dispatcher(queue.name, precise=queue.precise),
            breaker=self.breaker(queue.name),
            direct_horizon=direct_horizon,
            new_uid=new_uid,
            is_buffered=is_buffered,
        )

    def _breaker(self, _: str) -> "Breaker":
        from dueline.core.submit import Breaker

        return Breaker(clock=self.clock, jitter=self._jitter)
