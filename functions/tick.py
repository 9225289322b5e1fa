"""The tick function: one pass over the partition that its schedule names, or a watch over all of them."""

import os
import time
import uuid
from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws.deployed import Deployed
from dueline.config import metrics
from dueline.config.settings import TickSettings, longest_send
from dueline.model.job import Partition
from dueline.model.queue_settings import PLANNER
from dueline.protocol.lease import Lease, Periods
from dueline.protocol.partitions import without_tick
from dueline.protocol.tick import Tick, Ticked
from functions.declared_queues import DECLARED
from functions.log import log
from functions.metrics import report
from functions.on_time import HandedOver, NotingDispatcher

SETTINGS = TickSettings.from_env(os.environ)
PERIODS = Periods(
    period=timedelta(seconds=SETTINGS.tick_period),
    lookahead=timedelta(seconds=SETTINGS.lookahead),
    lease=timedelta(seconds=SETTINGS.lease),
    longest_send=longest_send(SETTINGS.lease),
)
# A send, the parking of what it refused (two requests), and the release of the lease.
AFTER_THE_LAST_SEND = 4 * PERIODS.longest_send
DEPLOYED = Deployed(SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, longest=PERIODS.longest_send)
DEPLOYED.make_clients()
_MOST_NAMED = 100

logger = log()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Tick the partition that `{"queue": …, "partition": …}` names, or watch over all of them: `{"watch": true}`."""
    if event.get("watch"):
        _watch()
        return
    partition = Partition(queue=str(event["queue"]), number=int(event["partition"]))
    logger.append_keys(queue=partition.queue, partition=partition.number)
    started = time.monotonic()
    until = started + context.get_remaining_time_in_millis() / 1000 - AFTER_THE_LAST_SEND.total_seconds()
    handed_over = HandedOver()
    done = _tick(partition, handed_over, until=until).run()
    _record(partition, done, handed_over, seconds=time.monotonic() - started)


def _watch() -> None:
    """Count the partitions that have no tick, the planner's among them, for two alarms, and name them in the log."""
    clock, table = DEPLOYED.clock, DEPLOYED.table
    partitions = [*DECLARED.partitions(), *PLANNER.all_partitions()]
    found = without_tick(partitions, table=table, now=clock.now(), spread=DEPLOYED.spread)
    for message, which in (("no tick", found.stopped), ("never a tick", found.never)):
        if which:
            logger.error(message, extra={"partitions": [str(partition) for partition in which[:_MOST_NAMED]]})
    counts = {metrics.WITHOUT_TICK: len(found.stopped), metrics.NEVER_TICKED: len(found.never)}
    report(counts, deployment=SETTINGS.deployment)


def _tick(partition: Partition, handed_over: HandedOver, *, until: float) -> Tick:
    clock, table = DEPLOYED.clock, DEPLOYED.table
    lease = Lease(partition, table=table, clock=clock, periods=PERIODS, owner=str(uuid.uuid4()), until=until)
    dispatcher = DEPLOYED.dispatcher(partition.queue, precise=DECLARED.is_precise(partition.queue))
    noting = NotingDispatcher.of(dispatcher, handed_over=handed_over)
    return Tick(partition, lease=lease, table=table, dispatcher=noting, clock=clock)


def _record(partition: Partition, done: Ticked, handed_over: HandedOver, *, seconds: float) -> None:
    for parked in done.parked:
        logger.warning("parked", extra={"job": str(parked.job.id), "reason": parked.reason})
    for unreadable in done.unreadable:
        logger.warning("parked", extra={"job": unreadable.row["sk"], "reason": unreadable.reason})
    if done.fault:
        logger.warning("stopped", extra={"reason": done.fault})
    logger.debug("ticked", extra={"held": done.held, "finished": done.finished, "dispatched": done.dispatched})
    of_queue = {metrics.LATENESS: _lateness(partition, done), **handed_over.taken().get(partition.queue, {})}
    parked_count = len(done.parked) + len(done.unreadable)
    values = {metrics.PARKED: parked_count, metrics.TICK_DURATION: seconds}
    report(values, deployment=SETTINGS.deployment, of_queues={partition.queue: of_queue})


def _lateness(partition: Partition, done: Ticked) -> float | None:
    """Return the tick's sample of lateness; of a partition that has left queues.yaml only if it is late.

    The number of samples is held against the number of partitions in queues.yaml.
    """
    lateness = done.lateness(DEPLOYED.clock.now())
    return lateness if lateness or DECLARED.has(partition) else None
