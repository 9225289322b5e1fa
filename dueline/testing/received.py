"""Jobs and events to call handlers with: what a worker, or AWS Lambda, would call them with."""

import json
import math
import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from dueline.client.models import NewJob
from dueline.core.job import JobId, Partition, Route, StoredJob, queue_name
from dueline.core.message import Message
from dueline.core.ports import QueueMessage
from dueline.core.queue_settings import RetryPolicy
from dueline.worker.delivery import ReceivedJob, ReceivedMessage

_ACCOUNT = "123456789012"
_KEPT = timedelta(days=7)


def received_job(
    payload: object = None, *, queue: str = "jobs", attempt: int = 1, due: datetime | None = None, **of: Any
) -> ReceivedJob:
    """Return a job as a handler gets it, in the attempt of that number of ten; by default it is due now.

    The payload becomes JSON and back, as on its way through a queue: a tuple is a list then. `of` are the `key`, the
    `kind`, the `tenant` and the `priority`, as in NewJob; `dataclasses.replace` sets what else there is. Raises
    InvalidJob for what could not be scheduled.
    """
    message = _message(NewJob(payload=payload, at=due, **of), queue=queue)
    arrival = _arrival(message, 1, attempt)
    received = ReceivedMessage(queue=queue, arrival=arrival, level=0, received=0.0, visible=math.inf).read()
    job = received.for_handler(lateness=0.0, max_attempts=RetryPolicy().attempts)
    return replace(job, payload=json.loads(message.body))


def sqs_event(payloads: Iterable[object], *, queue: str = "jobs", attempt: int = 1) -> dict[str, Any]:
    """Return the event with which an SQS queue of Dueline invokes a Lambda function: a record for each payload.

    A NewJob in place of a payload has a kind, a key, a tenant or a priority, too. The records' `messageId` are "1", "2"
    and so on; `attempt` is how often each was received. Raises InvalidJob for what could not be scheduled.
    """
    jobs = [each if isinstance(each, NewJob) else NewJob(payload=each) for each in payloads]
    arrivals = [_arrival(_message(job, queue=queue), number, attempt) for number, job in enumerate(jobs, 1)]
    return event_of(arrivals, name=f"dueline_{queue_name(queue)}")


def event_of(arrivals: Iterable[QueueMessage], *, name: str) -> dict[str, Any]:
    """Return the event of messages from the SQS queue of that name.

    Source: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
    """
    return {"Records": [_record(each, f"arn:aws:sqs:us-east-1:{_ACCOUNT}:{name}") for each in arrivals]}


def _record(arrival: QueueMessage, arn: str) -> dict[str, Any]:
    sent = str(int(arrival.sent.timestamp() * 1000))
    return {
        "messageId": arrival.message_id,
        "receiptHandle": arrival.receipt,
        "body": arrival.message.body,
        "attributes": {
            "ApproximateReceiveCount": str(arrival.receives),
            "ApproximateFirstReceiveTimestamp": sent,
            "SentTimestamp": sent,
            "SenderId": _ACCOUNT,
        },
        "messageAttributes": {
            name: {"dataType": "String", "stringValue": text} for name, text in arrival.message.attributes.items()
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": "us-east-1",
    }


def _message(job: NewJob, *, queue: str) -> Message:
    now = datetime.now(UTC)
    request = job.checked(now=None)
    due = request.at or now + timedelta(seconds=request.delay or 0.0)
    partition = Partition(queue=queue_name(queue), number=0)
    id = (
        JobId.parse(request.id)
        if request.id
        else JobId(partition=partition, route=Route.DIRECT, due=due, uid=str(uuid.uuid4()))
    )
    of: dict[str, Any] = {"key": job.key, "kind": job.kind, "tenant": job.tenant, "priority": job.priority}
    return Message.of(StoredJob(id=id, payload=request.text or "", expires=due + _KEPT, **of))


def _arrival(message: Message, number: int, attempt: int) -> QueueMessage:
    if isinstance(attempt, bool) or not isinstance(attempt, int) or attempt < 1:
        raise ValueError(f"attempt is {attempt!r}: it must be 1 or more, a whole number")
    sent = datetime.now(UTC)
    return QueueMessage(message=message, message_id=str(number), receipt=str(number), receives=attempt, sent=sent)
