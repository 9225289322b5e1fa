"""AWS's own limits, for emulators that let them pass: a request beyond one is refused before it is sent."""

import json
from collections.abc import Callable
from typing import Any

from botocore.awsrequest import AWSResponse

Check = Callable[[dict[str, Any]], str | None]


def state_limits(dynamodb: Any, sqs: Any) -> None:
    for client, operation, check in (
        (dynamodb, "BatchWriteItem", _too_many_rows),
        (dynamodb, "BatchGetItem", _too_many_keys),
        (dynamodb, "Query", _bounds_the_wrong_way_round),
        (sqs, "SendMessageBatch", _too_many_messages),
    ):
        service = client.meta.service_model.service_name
        client.meta.events.register(f"before-call.{service}.{operation}", _refusing(check))


def _refusing(check: Check) -> Callable[..., Any]:
    def before_call(params: dict[str, Any], **_: Any) -> Any:
        problem = check(json.loads(params["body"]))
        if problem is None:
            return None
        return AWSResponse(params["url"], 400, {}, None), {"Error": {"Code": "ValidationException", "Message": problem}}

    return before_call


def _too_many_rows(asked: dict[str, Any]) -> str | None:
    (requests,) = asked["RequestItems"].values()
    return "Too many items requested for the BatchWriteItem call" if not 1 <= len(requests) <= 25 else None


def _too_many_keys(asked: dict[str, Any]) -> str | None:
    (wanted,) = asked["RequestItems"].values()
    return "Too many items requested for the BatchGetItem call" if not 1 <= len(wanted["Keys"]) <= 100 else None


def _bounds_the_wrong_way_round(asked: dict[str, Any]) -> str | None:
    low, high = (asked["ExpressionAttributeValues"][name]["S"] for name in (":low", ":high"))
    return (
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound" if low > high else None
    )


def _too_many_messages(asked: dict[str, Any]) -> str | None:
    return "TooManyEntriesInBatchRequest" if not 1 <= len(asked["Entries"]) <= 10 else None
