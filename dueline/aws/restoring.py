"""What lets a deployment take over the tables of a backup, with a caller's credentials."""

import random
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from dueline.aws import clients
from dueline.aws.deployed import Deployed
from dueline.aws.dynamodb.backup import DynamoBackup
from dueline.aws.faults import of_callers
from dueline.aws.published import Published
from dueline.aws.tick_schedules import TickSchedules
from dueline.clock import SystemClock
from dueline.config.names import Names
from dueline.model.job import Partition
from dueline.operate.restore import Restore
from dueline.operate.restore_part import Parts, periods_of_a_restore
from dueline.protocol.lease import Periods
from dueline.retry.calls import Calls, in_lanes
from dueline.retry.patience import Patience

if TYPE_CHECKING:
    from boto3 import Session

_LONGEST_REQUEST = timedelta(seconds=15)
A = TypeVar("A")


def restore(
    name: str,
    *,
    jobs: str,
    state: str,
    hand_over_from: datetime | None,
    session: "Session",
    on_progress: Callable[[int, int], None],
) -> Restore:
    """Return what lets a deployment take over two tables. Raises DeploymentNotFound, Forbidden or Unavailable."""
    with of_callers(f"finding the deployment {name!r}"):
        settings = Published(
            clients.ssm(session, longest=_LONGEST_REQUEST), Names(name), clock=SystemClock()
        ).settings()
        deployed = Deployed(name, queue_urls=settings.queue_urls, longest=_LONGEST_REQUEST, session=session)
        backup = DynamoBackup(clients.dynamodb(session, longest=_LONGEST_REQUEST), jobs=jobs, state=state)
        has_tick = _ticked(deployed.names, session).__contains__
    periods = periods_of_a_restore(timedelta(seconds=settings.lookahead))
    return Restore(
        backup,
        parts=_parts(backup, deployed, periods=periods, has_tick=has_tick, hand_over_from=hand_over_from),
        table=deployed.table,
        clock=deployed.clock,
        owner=str(uuid.uuid4()),
        ask=_Asking(deployed),
        spread=in_lanes,
        on_progress=on_progress,
    )


def _ticked(names: Names, session: "Session") -> frozenset[Partition]:
    """Return the partitions that a tick reads, those that queues.yaml does not declare any more among them."""
    scheduler = clients.scheduler(session, longest=_LONGEST_REQUEST)
    return frozenset(TickSchedules(scheduler, names.schedule_group).partitions())


def _parts(
    backup: DynamoBackup,
    deployed: Deployed,
    *,
    periods: Periods,
    has_tick: Callable[[Partition], bool],
    hand_over_from: datetime | None,
) -> Parts:
    return Parts(
        backup,
        table=deployed.table,
        inbound=deployed.inbound,
        clock=deployed.clock,
        periods=periods,
        new_owner=lambda: str(uuid.uuid4()),
        has_tick=has_tick,
        hand_over_from=hand_over_from,
        spread=deployed.spread,
    )


class _Asking:
    """Makes a call with a caller's credentials, and repeats it while AWS or the network fails."""

    def __init__(self, deployed: Deployed) -> None:
        self._calls = Calls(patience=Patience(), clock=deployed.clock, jitter=random.random)

    def __call__(self, call: Callable[[], A], /) -> A:
        def as_a_caller() -> A:
            with of_callers("restoring"):
                return call()

        return self._calls.ask(as_a_caller)
