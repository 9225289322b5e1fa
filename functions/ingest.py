"""The ingest function: write batches of inbound messages into the table."""

import os
import random
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws.deployed import Deployed
from dueline.config import metrics
from dueline.config.settings import IngestSettings
from dueline.model.job import JobId
from dueline.model.message import Message
from dueline.protocol.dispatch import Dispatcher
from dueline.protocol.ingest import Ingest, Ingested, Received
from functions.log import log
from functions.metrics import report
from functions.on_time import HandedOver
from functions.queue_registry import REGISTRY

SETTINGS = IngestSettings.from_env(os.environ)
# So short that a batch's rounds of requests end within the function's time-out of 30 s.
LONGEST_REQUEST = timedelta(seconds=4)
# A send, the parking of what it refused (two requests), and the note of what was handled.
AFTER_THE_LAST_SEND = 4 * LONGEST_REQUEST
DEPLOYED = Deployed(SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, longest=LONGEST_REQUEST)

logger = log()


def _dispatcher(queue: str) -> Dispatcher:
    return DEPLOYED.dispatcher(queue, precise=REGISTRY.is_precise(queue))


INGEST = Ingest(
    table=DEPLOYED.table,
    dispatcher=_dispatcher,
    rejects=DEPLOYED.rejects,
    # What is declared may not be deployed: a partition's state tells, and of those that have none SSM does.
    is_declared=lambda _: False,
    stands=REGISTRY.takes,
    clock=DEPLOYED.clock,
    jitter=random.random,
    spread=DEPLOYED.spread,
)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[dict[str, str]]]:
    """Ingest a batch of the inbound queue; answer with the messages that SQS must bring again."""
    until = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - AFTER_THE_LAST_SEND.total_seconds()
    done = INGEST.run([_received(record) for record in event["Records"]], until=until)
    _record(done)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in sorted(done.failed)]}


def _received(record: Mapping[str, Any]) -> Received:
    # An attribute of bytes has no string: no reason to fail the whole batch.
    attributes = {name: attribute.get("stringValue") or "" for name, attribute in record["messageAttributes"].items()}
    message = Message(body=record["body"], attributes=attributes)
    receives = int(record["attributes"]["ApproximateReceiveCount"])
    return Received(message_id=record["messageId"], message=message, receives=receives)


def _record(done: Ingested) -> None:
    for job in done.late:
        logger.debug("late path", extra=_keys(job.id))
    for parked in done.parked:
        logger.warning("parked", extra={**_keys(parked.job.id), "reason": parked.reason})
    for rejected in done.rejected:
        logger.warning("rejected", extra={"message_id": rejected.received.message_id, "reason": rejected.reason})
    if done.failed and done.faults:
        logger.warning("left", extra={"jobs": [str(job.id) for job in done.again], "reasons": sorted(done.faults)})
    counted = {"moved": done.moved, "dropped": done.dropped, "late": done.late, "failed": done.failed}
    logger.debug("ingested", extra={"written": done.written, **{name: len(each) for name, each in counted.items()}})
    counts = {
        metrics.INGESTED: done.written,
        metrics.LATE_PATH: len(done.late),
        metrics.PARKED: len(done.parked) + len(done.rejected),
    }
    handed_over = HandedOver()
    handed_over.note(done.late, now=DEPLOYED.clock.now())
    report(counts, deployment=SETTINGS.deployment, of_queues=handed_over.taken())


def _keys(id: JobId) -> dict[str, str | int]:
    return {"queue": id.queue, "partition": id.partition.number, "job": str(id)}
