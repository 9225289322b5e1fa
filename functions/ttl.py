"""The TTL guard's function: keeps DynamoDB's TTL from collecting jobs that wait for a tick."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws import clients
from dueline.aws.deployed import Deployed
from dueline.aws.dynamodb.time_to_live import DynamoTimeToLive
from dueline.aws.tick_schedules import TickSchedules
from dueline.config import metrics
from dueline.config.settings import TtlSettings
from dueline.errors import RETRYABLE, DuelineError
from dueline.model import instant
from dueline.model.job import Partition
from dueline.model.queue_settings import PLANNER
from dueline.protocol.ttl_guard import Behind, Guarded, TtlGuard
from functions.declared_queues import DECLARED
from functions.log import log
from functions.metrics import report

SETTINGS = TtlSettings.from_env(os.environ)
LONGEST_REQUEST = timedelta(seconds=10)
DEPLOYED = Deployed(SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, longest=LONGEST_REQUEST)
SCHEDULES = TickSchedules(clients.scheduler(longest=LONGEST_REQUEST), DEPLOYED.names.schedule_group)
TIME_TO_LIVE = DynamoTimeToLive(clients.dynamodb(longest=LONGEST_REQUEST), DEPLOYED.names.table)
# Two firings of a tick may be almost two periods apart.
SETTLE = 3 * timedelta(seconds=SETTINGS.tick_period)
_MOST_NAMED = 100

logger = log()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Look at all partitions, switch TTL off or on as they need it, and tell.

    Raises Throttled or Unavailable, once what is declared was looked at, where it is not known what else there is.
    """
    declared = [*DECLARED.partitions(), *PLANNER.all_partitions()]
    ticked, fault = _ticked()
    guard = TtlGuard(
        table=DEPLOYED.table,
        time_to_live=TIME_TO_LIVE,
        clock=DEPLOYED.clock,
        settle=SETTLE,
        spread=DEPLOYED.spread,
    )
    _record(guard.run(list(dict.fromkeys([*declared, *ticked])), are_all=fault is None))
    if fault:
        raise fault


def _ticked() -> tuple[Sequence[Partition], DuelineError | None]:
    """Return the partitions that have schedules, or why they are not known: what is declared is guarded anyway."""
    try:
        return SCHEDULES.partitions(), None
    except RETRYABLE as fault:
        return (), fault


def _record(done: Guarded) -> None:
    behind = {"partitions": [_told(each) for each in done.behind[:_MOST_NAMED]]}
    if done.switched is False:
        logger.error("ttl switched off", extra=behind)
    elif done.switched:
        logger.warning("ttl switched on")
    elif done.fault:
        logger.error("ttl not switched", extra={"reason": done.fault, **behind})
    elif not done.is_on:
        logger.warning("ttl is off", extra={"unknown": done.unknown, **behind})
    # Jobs are as late where it should be off and cannot be switched.
    report({metrics.TTL_OFF: int(not done.is_on or bool(done.fault))}, deployment=SETTINGS.deployment)


def _told(behind: Behind) -> dict[str, Any]:
    last = instant.text(behind.fence) if behind.fence else None
    first_due = instant.text(behind.due)
    return {"partition": str(behind.partition), "fence": last, "first_due": first_due, "expired": behind.expired}
