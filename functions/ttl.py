"""The TTL guard's function: keeps DynamoDB's TTL from collecting jobs that wait for a tick."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws.aws_deployment import AwsDeployment
from dueline.config import metrics
from dueline.config.environment import PeriodSettings
from dueline.core import instant
from dueline.core.job import Partition
from dueline.core.queue_settings import PLANNER
from dueline.errors import RETRYABLE, DuelineError
from dueline.operations.ttl_guard import GuardResult, LatePartition, TtlGuard
from functions.declared_queues import DECLARED
from functions.telemetry import log, report

SETTINGS = PeriodSettings.from_env(os.environ)
LONGEST_REQUEST = timedelta(seconds=10)
DEPLOYMENT = AwsDeployment(SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, longest=LONGEST_REQUEST)
TIME_TO_LIVE = DEPLOYMENT.time_to_live()
# Two firings of a tick may be almost two periods apart.
SETTLE = 3 * timedelta(seconds=SETTINGS.tick_period)
_MOST_NAMED = 100

logger = log()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Look at all partitions, switch TTL off or on as they need it, and report.

    Raises Throttled or Unavailable, once what is declared was looked at, where it is not known what else there is.
    """
    declared = [*DECLARED.partitions(), *PLANNER.all_partitions()]
    ticked, fault = _ticked()
    table, clock, spread = DEPLOYMENT.table, DEPLOYMENT.clock, DEPLOYMENT.spread
    guard = TtlGuard(table=table, time_to_live=TIME_TO_LIVE, clock=clock, settle=SETTLE, spread=spread)
    _record(guard.run(list(dict.fromkeys([*declared, *ticked])), are_all=fault is None))
    if fault:
        raise fault


def _ticked() -> tuple[Sequence[Partition], DuelineError | None]:
    """Return the partitions that have schedules, or why they are not known: what is declared is guarded anyway."""
    try:
        return DEPLOYMENT.ticked_partitions(), None
    except RETRYABLE as fault:
        return (), fault


def _record(done: GuardResult) -> None:
    behind = {"partitions": [_describe(each) for each in done.behind[:_MOST_NAMED]]}
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


def _describe(behind: LatePartition) -> dict[str, Any]:
    last = instant.text(behind.fence) if behind.fence else None
    first_due = instant.text(behind.due)
    return {"partition": str(behind.partition), "fence": last, "first_due": first_due, "expired": behind.expired}
