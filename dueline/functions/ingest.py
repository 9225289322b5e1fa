"""The ingest function: write batches of inbound messages into the table."""

import os
import random
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws.aws_deployment import AwsDeployment
from dueline.config import metrics
from dueline.config.environment import Settings
from dueline.core.dispatch import Dispatcher
from dueline.core.ingest import InboundMessage, Ingest, IngestResult
from dueline.core.job import JobId
from dueline.core.message import Message, from_lambda_event
from dueline.core.table_writer import TableWriter
from dueline.functions.queue_registry import REGISTRY
from dueline.functions.telemetry import DispatchMetrics, log, report

SETTINGS = Settings.from_env(os.environ)
# So short that a batch's rounds of requests end within the function's time-out of 30 s.
LONGEST_REQUEST = timedelta(seconds=5)
# A send, the parking of what it refused (two requests), and the note of what was handled.
AFTER_THE_LAST_SEND = 4 * LONGEST_REQUEST
DEPLOYMENT = AwsDeployment(SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, longest=LONGEST_REQUEST)

logger = log()


def _dispatcher(queue: str) -> Dispatcher:
    return DEPLOYMENT.dispatcher(queue, precise=REGISTRY.is_precise(queue))


ROUTE = TableWriter(table=DEPLOYMENT.table, dispatcher=_dispatcher, clock=DEPLOYMENT.clock, spread=DEPLOYMENT.spread)
INGEST = Ingest(
    ROUTE,
    rejects=DEPLOYMENT.rejects,
    # A declared partition may not be deployed yet: its state says, and SSM of those without one.
    is_declared=lambda _: False,
    stands=REGISTRY.takes,
    jitter=random.random,
)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[dict[str, str]]]:
    """Ingest a batch of the inbound queue; answer with the messages that SQS must bring again."""
    until = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - AFTER_THE_LAST_SEND.total_seconds()
    done = INGEST.run([_received(record) for record in event["Records"]], until=until)
    _record(done)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in sorted(done.failed)]}


def _received(record: Mapping[str, Any]) -> InboundMessage:
    message = Message(body=record["body"], attributes=from_lambda_event(record["messageAttributes"]))
    receives = int(record["attributes"]["ApproximateReceiveCount"])
    return InboundMessage(message_id=record["messageId"], message=message, receives=receives)


def _record(done: IngestResult) -> None:
    for job in done.reused:
        logger.warning("id of another job", extra=_keys(job.id))
    for parked in done.parked:
        logger.warning("parked", extra={**_keys(parked.job.id), "reason": parked.reason})
    for rejected in done.rejected:
        logger.warning("rejected", extra={"message_id": rejected.received.message_id, "reason": rejected.reason})
    if done.failed and done.faults:
        logger.warning("left", extra={"jobs": [str(job.id) for job in done.again], "reasons": sorted(done.faults)})
    logger.debug("ingested", extra={"written": done.written})
    counts = {
        metrics.INGESTED: done.written,
        metrics.LATE_PATH: len(done.late),
        metrics.PARKED: len(done.parked) + len(done.rejected),
    }
    dispatched = DispatchMetrics(DEPLOYMENT.clock)
    dispatched.record(done.late)
    of_queues = dispatched.flush()
    report(counts, deployment=SETTINGS.deployment, of_queues=of_queues, measured=REGISTRY.measured)


def _keys(id: JobId) -> dict[str, str | int]:
    return {"queue": id.queue, "partition": id.partition.number, "job": str(id)}
