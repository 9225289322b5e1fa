"""The planner function: plans a step of a schedule for each planning job, or watches over all schedules."""

import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws.aws_deployment import AwsDeployment
from dueline.aws.watch_notes import WatchNotes
from dueline.config import metrics
from dueline.config.environment import LONGEST_HIDDEN_SECONDS, PeriodSettings
from dueline.core import rows
from dueline.core.dispatch import Dispatcher
from dueline.core.queue_settings import PLANNER as OWN_QUEUE
from dueline.core.table_writer import TableWriter
from dueline.errors import RETRYABLE, DuelineError
from dueline.functions.declared_queues import DECLARED
from dueline.functions.telemetry import DispatchMetrics, log, report
from dueline.schedules.planner import Planned, Planner, PlanningMessage, Watchdog

SETTINGS = PeriodSettings.from_env(os.environ)
# A batch's rounds of requests end within the function's time-out of 30 s.
LONGEST_REQUEST = timedelta(seconds=5)
# The request started just before, its retry, and the hiding of what is put back.
AFTER_THE_LAST_REQUEST = 3 * LONGEST_REQUEST
DEPLOYMENT = AwsDeployment(SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, longest=LONGEST_REQUEST)
DEPLOYMENT.make_clients()

# The planner itself sends what is due before the next tick.
DISPATCHED = DispatchMetrics(DEPLOYMENT.clock)

logger = log()


def _dispatcher(queue: str) -> Dispatcher:
    dispatcher = DEPLOYMENT.dispatcher(queue, precise=DECLARED.is_precise(queue))
    return replace(dispatcher, on_dispatched=DISPATCHED.record)


ROUTE = TableWriter(table=DEPLOYMENT.table, dispatcher=_dispatcher, clock=DEPLOYMENT.clock, spread=DEPLOYMENT.spread)
WATCHDOG = Watchdog(ROUTE, tick_period=timedelta(seconds=SETTINGS.tick_period))
NOTES = WatchNotes(DEPLOYMENT.clients.of("dynamodb"), table=DEPLOYMENT.names.state)
INBOX = DEPLOYMENT.team_queue(OWN_QUEUE.name)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[dict[str, str]]]:
    """Plan the steps that a batch of planning jobs requests, or watch over all schedules: `{"watch": true}`.

    Returns the messages that SQS must deliver again.
    """
    left = context.get_remaining_time_in_millis() / 1000 - AFTER_THE_LAST_REQUEST.total_seconds()
    until = time.monotonic() + left
    if event.get("watch"):
        _watch(until=until)
        return {"batchItemFailures": []}
    records = event["Records"]
    done = Planner(ROUTE, until=until).run([_message_of(record) for record in records])
    _hide([record for record in records if record["messageId"] in done.again])
    _record(done)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in sorted(done.again)]}


def _watch(*, until: float) -> None:
    """Restart stalled schedules, name their queues in the log, and note how many there were for the watch, which mails.

    Raises Throttled or Unavailable, after the last queue, where one could not be read.
    """
    revived, faults = Counter[str](), list[DuelineError]()
    for queue in DECLARED.queues:
        try:
            revived[queue] = WATCHDOG.revive(queue, until=until)
        except RETRYABLE as fault:
            faults.append(fault)
    if stalled := revived.total():
        logger.error("schedules stood still", extra={"queues": dict(+revived)})
    if faults:
        raise faults[0]
    NOTES.put(rows.SCHEDULES, now=DEPLOYMENT.clock.now(), count=stalled)


def _message_of(record: Mapping[str, Any]) -> PlanningMessage:
    return PlanningMessage(
        message_id=record["messageId"],
        body=record["body"],
        first_received=datetime.fromtimestamp(_attribute(record, "ApproximateFirstReceiveTimestamp") / 1000, UTC),
    )


def _hide(records: list[dict[str, Any]]) -> None:
    """Have a step that must wait delivered again in seconds, not after the whole visibility timeout."""
    if not records:
        return
    hidden = [_seconds(record) for record in records]
    # The others come when the timeout is over.
    with suppress(*RETRYABLE):
        INBOX.hide([record["receiptHandle"] for record in records], hidden)


def _seconds(record: Mapping[str, Any]) -> int:
    """Return how long a message is hidden: longer each time, so that steps survive an outage."""
    receives = min(_attribute(record, "ApproximateReceiveCount"), 10)
    return min(1 << receives, LONGEST_HIDDEN_SECONDS)


def _attribute(record: Mapping[str, Any], attribute: str) -> int:
    return int(record["attributes"][attribute])


def _record(done: Planned) -> None:
    if done.faults:
        logger.warning("left", extra={"steps": len(done.again), "reasons": sorted(done.faults)})
    if done.dropped:
        logger.error("steps were given up", extra={"steps": done.dropped})
    if done.missed:
        logger.warning("runs were missed", extra={"queues": dict(done.missed)})
    logger.debug("planned", extra={"queues": dict(done.submitted)})
    dispatched = DISPATCHED.flush()
    of_queues = {
        queue: {
            metrics.PLANNED: done.submitted[queue],
            metrics.MISSED: done.missed[queue],
            **dispatched.get(queue, {}),
        }
        for queue in done.submitted.keys() | done.missed.keys() | dispatched.keys()
    }
    dropped = {metrics.PLANS_DROPPED: done.dropped}
    report(dropped, deployment=SETTINGS.deployment, of_queues=of_queues, measured=DECLARED.measured)
