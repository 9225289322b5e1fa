"""The tick function: one pass over the partition that its schedule names."""

import os
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws.aws_deployment import AwsDeployment
from dueline.config import metrics
from dueline.config.environment import TickSettings, longest_send
from dueline.core.job import Partition, new_uid
from dueline.core.partitions import Lease, Periods
from dueline.core.tick import Tick, TickResult
from dueline.functions.declared_queues import DECLARED
from dueline.functions.telemetry import DispatchMetrics, log, report

SETTINGS = TickSettings.from_env(os.environ)
PERIODS = Periods(
    period=timedelta(seconds=SETTINGS.tick_period),
    lookahead=timedelta(seconds=SETTINGS.lookahead),
    lease=timedelta(seconds=SETTINGS.lease),
    longest_send=longest_send(SETTINGS.lease),
)
# A send, the parking of what it refused (two requests), and the release of the lease.
AFTER_THE_LAST_SEND = 4 * PERIODS.longest_send
DEPLOYMENT = AwsDeployment(SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, longest=PERIODS.longest_send)
DEPLOYMENT.make_clients()

logger = log()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Tick the partition that `{"queue": …, "partition": …}` names."""
    partition = Partition(queue=str(event["queue"]), number=int(event["partition"]))
    logger.append_keys(queue=partition.queue, partition=partition.number)
    started = time.monotonic()
    until = started + context.get_remaining_time_in_millis() / 1000 - AFTER_THE_LAST_SEND.total_seconds()
    dispatched = DispatchMetrics(DEPLOYMENT.clock)
    done = _tick(partition, dispatched, until=until).run()
    _record(partition, done, dispatched, seconds=time.monotonic() - started)


def _tick(partition: Partition, dispatched: DispatchMetrics, *, until: float) -> Tick:
    clock, table, owner = DEPLOYMENT.clock, DEPLOYMENT.table, new_uid()
    lease = Lease(partition, table=table, clock=clock, periods=PERIODS, owner=owner, until=until)
    dispatcher = DEPLOYMENT.dispatcher(partition.queue, precise=DECLARED.is_precise(partition.queue))
    dispatcher = replace(dispatcher, on_dispatched=dispatched.record)
    return Tick(lease, dispatcher=dispatcher)


def _record(partition: Partition, done: TickResult, dispatched: DispatchMetrics, *, seconds: float) -> None:
    for parked in done.parked:
        logger.warning("parked", extra={"job": str(parked.job.id), "reason": parked.reason})
    for unreadable in done.unreadable:
        logger.warning("parked", extra={"job": unreadable.row["sk"], "reason": unreadable.reason})
    if done.fault:
        logger.warning("stopped", extra={"reason": done.fault})
    logger.debug("ticked", extra={"dispatched": done.dispatched})
    figures_of_queue = {
        metrics.LATENESS: done.lateness(DEPLOYMENT.clock.now()),
        **dispatched.flush().get(partition.queue, {}),
        metrics.PARKED: len(done.parked) + len(done.unreadable),
    }
    # Of an idle tick there is nothing to say, and each line is paid for.
    if any(figures_of_queue.values()):
        of_queues = {partition.queue: {**figures_of_queue, metrics.TICK_DURATION: round(seconds, 3)}}
        report({}, deployment=SETTINGS.deployment, of_queues=of_queues, measured=DECLARED.measured)
