"""What a function finds as Lambda invokes it: the context, a batch of the inbound queue, and what is declared."""

import sys
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from dueline.config.registry import Registry
from dueline.model.job import Job
from dueline.model.message import Message, type_of
from local.emulator import ACCOUNT, REGION

MEMORY_MB = 512
_REQUEST_ID = "8476a536-e9f4-11e8-9739-2dfe598c3fcd"
_LEFT_MILLISECONDS = 300_000


def declare(registry: Registry) -> None:
    """Have functions that are imported from now on know these queues."""
    sys.modules["functions.queue_registry"] = SimpleNamespace(REGISTRY=registry)  # type: ignore[assignment]
    sys.modules["functions.declared_queues"] = SimpleNamespace(DECLARED=registry)  # type: ignore[assignment]


def context(function: str) -> Any:
    """Return the context of an invocation of a function."""
    return SimpleNamespace(
        function_name=function,
        memory_limit_in_mb=MEMORY_MB,
        invoked_function_arn=f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function}",
        aws_request_id=_REQUEST_ID,
        get_remaining_time_in_millis=lambda: _LEFT_MILLISECONDS,
    )


def inbound_event(jobs: Iterable[Job]) -> dict[str, Any]:
    """Return the event by which Lambda brings a batch of the inbound queue."""
    return {"Records": [_record(number, Message.of(job)) for number, job in enumerate(jobs)]}


def _record(number: int, message: Message) -> dict[str, Any]:
    received = {"ApproximateReceiveCount": "1", "SentTimestamp": "1795255290123", "SenderId": "AIDAEXAMPLE"}
    return {
        "messageId": f"{number:08d}-0000-4000-8000-000000000000",
        "receiptHandle": f"{number:0400d}",
        "body": message.body,
        "attributes": received | {"ApproximateFirstReceiveTimestamp": "1795255290124"},
        "messageAttributes": {name: _attribute(name, value) for name, value in message.attributes.items()},
        "md5OfBody": "9a0364b9e99bb480dd25e1f0284c8555",
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:dueline-inbound",
        "awsRegion": REGION,
    }


def _attribute(name: str, value: str) -> dict[str, Any]:
    return {"dataType": type_of(name, value), "stringValue": value, "stringListValues": [], "binaryListValues": []}
