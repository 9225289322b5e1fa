"""The planner function: a step of a schedule for each planning job, or a watch over all schedules."""

import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws.deployed import Deployed
from dueline.aws.sqs.inbox import SqsInbox
from dueline.config import metrics
from dueline.config.settings import LONGEST_HIDDEN_SECONDS, PlannerSettings
from dueline.errors import RETRYABLE, DuelineError
from dueline.model.message import Message
from dueline.model.queue_settings import PLANNER as OWN_QUEUE
from dueline.protocol.dispatch import Dispatcher
from dueline.protocol.table_route import TableRoute
from dueline.schedules.plan_step import Received
from dueline.schedules.planner import Planned, Planner
from dueline.schedules.watchdog import Watchdog
from functions.declared_queues import DECLARED
from functions.log import log
from functions.metrics import report
from functions.on_time import HandedOver, NotingDispatcher

SETTINGS = PlannerSettings.from_env(os.environ)
# So short that a batch's rounds of requests end within the function's time-out of 30 s.
LONGEST_REQUEST = timedelta(seconds=4)
# What was begun just before, with its retry, and the hiding of what is to come again.
AFTER_THE_LAST_REQUEST = 3 * LONGEST_REQUEST
DEPLOYED = Deployed(SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, longest=LONGEST_REQUEST)
DEPLOYED.make_clients()

# What is due before the next tick is sent by the planner itself.
HANDED_OVER = HandedOver()

logger = log()


def _dispatcher(queue: str) -> Dispatcher:
    dispatcher = DEPLOYED.dispatcher(queue, precise=DECLARED.is_precise(queue))
    return NotingDispatcher.of(dispatcher, handed_over=HANDED_OVER)


ROUTE = TableRoute(table=DEPLOYED.table, dispatcher=_dispatcher, clock=DEPLOYED.clock, spread=DEPLOYED.spread)
PLANNER = Planner(table=DEPLOYED.table, route=ROUTE, clock=DEPLOYED.clock, spread=DEPLOYED.spread)
WATCHDOG = Watchdog(
    table=DEPLOYED.table, route=ROUTE, clock=DEPLOYED.clock, tick_period=timedelta(seconds=SETTINGS.tick_period)
)
INBOX = SqsInbox(DEPLOYED.sqs, DEPLOYED.url(DEPLOYED.names.queue(OWN_QUEUE.name)), patient=DEPLOYED.sqs)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[dict[str, str]]]:
    """Plan what a batch of planning jobs says, or watch over all schedules: `{"watch": true}`.

    Answers with the messages that SQS must bring again.
    """
    left = context.get_remaining_time_in_millis() / 1000 - AFTER_THE_LAST_REQUEST.total_seconds()
    until = time.monotonic() + left
    if event.get("watch"):
        _watch(until=until)
        return {"batchItemFailures": []}
    records = event["Records"]
    done = PLANNER.run([_received(record) for record in records], until=until)
    _hide([record for record in records if record["messageId"] in done.again])
    _record(done)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in sorted(done.again)]}


def _watch(*, until: float) -> None:
    """Set schedules going again that stand still, count them for an alarm, and name their queues in the log.

    Raises Throttled or Unavailable, once all queues were looked at, where one could not be.
    """
    revived, faults = Counter[str](), list[DuelineError]()
    for queue in DECLARED.queues:
        try:
            revived[queue] = WATCHDOG.revive(queue, until=until)
        except RETRYABLE as fault:
            faults.append(fault)
    if standing := revived.total():
        logger.error("schedules stood still", extra={"queues": dict(+revived)})
    report({metrics.STANDING_STILL: standing}, deployment=SETTINGS.deployment)
    if faults:
        raise faults[0]


def _received(record: Mapping[str, Any]) -> Received:
    attributes = {name: attribute.get("stringValue") or "" for name, attribute in record["messageAttributes"].items()}
    return Received(
        message_id=record["messageId"],
        message=Message(body=record["body"], attributes=attributes),
        first_received=datetime.fromtimestamp(_told(record, "ApproximateFirstReceiveTimestamp") / 1000, UTC),
    )


def _hide(records: list[dict[str, Any]]) -> None:
    """Let a step that must wait come again in seconds, and not after the whole visibility timeout."""
    if not records:
        return
    hidden = [_seconds(record) for record in records]
    # Those that are not hidden anew come when the timeout is over.
    with suppress(*RETRYABLE):
        INBOX.hide([record["receiptHandle"] for record in records], hidden)


def _seconds(record: Mapping[str, Any]) -> int:
    """Return how long a message is hidden: longer each time, so that an outage makes no dead letters of steps."""
    receives = min(_told(record, "ApproximateReceiveCount"), 10)
    return min(1 << receives, LONGEST_HIDDEN_SECONDS)


def _told(record: Mapping[str, Any], attribute: str) -> int:
    return int(record["attributes"][attribute])


def _record(done: Planned) -> None:
    if done.faults:
        logger.warning("left", extra={"steps": len(done.again), "reasons": sorted(done.faults)})
    if done.dropped:
        logger.error("steps were given up", extra={"steps": done.dropped})
    if done.missed:
        logger.warning("runs were missed", extra={"queues": dict(done.missed)})
    logger.debug("planned", extra={"queues": dict(done.submitted), "again": len(done.again)})
    report({metrics.PLANS_DROPPED: done.dropped}, deployment=SETTINGS.deployment, of_queues=_of_queues(done))


def _of_queues(done: Planned) -> dict[str, dict[str, int]]:
    handed_over = HANDED_OVER.taken()
    return {
        queue: {
            metrics.PLANNED: done.submitted[queue],
            metrics.MISSED: done.missed[queue],
            **handed_over.get(queue, {}),
        }
        for queue in done.submitted.keys() | done.missed.keys() | handed_over.keys()
    }
