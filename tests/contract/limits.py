"""AWS's own limits, so that no emulator lets one pass: a request beyond one is refused before it is sent.

Sources: the quotas of DynamoDB and SQS, and the references of their operations.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from botocore.awsrequest import AWSResponse

from dueline.core.rows import row_bytes

WRITE_ROWS = 25
READ_KEYS = 100
ACTIONS = 100
ITEM_BYTES = 400 * 1024
KEY_BYTES = 1024
MESSAGES = 10
BATCH_BYTES = 1024 * 1024
DELAY_SECONDS = 900

# The error's code and its message, where a request is beyond a limit.
Problem = tuple[str, str] | None
Check = Callable[[dict[str, Any]], Problem]


def state_limits_of_dynamodb(client: Any) -> Any:
    """Let a client refuse what DynamoDB would; return the client."""
    _refuse(client, "BatchWriteItem", _too_many_rows, _too_large_a_row)
    _refuse(client, "BatchGetItem", _too_many_keys)
    _refuse(client, "PutItem", lambda request: _too_large([request["Item"]]))
    _refuse(client, "TransactWriteItems", _too_many_actions, _too_large_an_action, _an_item_twice)
    _refuse(client, "Query", _bounds_the_wrong_way_round, _too_long_a_bound)
    return client


def state_limits_of_sqs(client: Any) -> Any:
    """Let a client refuse what SQS would; return the client."""
    _refuse(client, "SendMessageBatch", _too_many_messages, _too_long_a_batch, _untyped_value)
    client.meta.events.register("before-call.sqs.SendMessageBatch", _hold_back_long_delays)
    client.meta.events.register("after-call.sqs.SendMessageBatch", _fail_long_delays)
    return client


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the bytes that DynamoDB counts of an item in its own form.

    >>> item_bytes({"pk": {"S": "emails#0"}, "ttl": {"N": "1795255290"}, "packed": {"B": "AAEC"}})
    28
    """
    return row_bytes({name: _plain(*pair) for name, value in item.items() for pair in value.items()})


def _plain(type: str, value: Any) -> str | int | bool | bytes:
    if type == "B" and isinstance(value, str):
        # In a request it is base64, in an answer that boto3 has read it is bytes.
        return base64.b64decode(value)
    plain: str | int | bool | bytes = int(value) if type == "N" else value
    return plain


def _refuse(client: Any, operation: str, *checks: Check) -> None:
    def before_call(params: dict[str, Any], **_: Any) -> Any:
        request = json.loads(params["body"])
        problem = next(filter(None, (check(request) for check in checks)), None)
        return problem and _answer(params, 400, {"Error": dict(zip(("Code", "Message"), problem, strict=True))})

    service = client.meta.service_model.service_name
    client.meta.events.register(f"before-call.{service}.{operation}", before_call)


def _answer(params: dict[str, Any], status: int, parsed: dict[str, Any]) -> Any:
    return AWSResponse(params["url"], status, {}, None), parsed


def _too_many_rows(request: dict[str, Any]) -> Problem:
    (requests,) = request["RequestItems"].values()
    if len(requests) <= WRITE_ROWS:
        return None
    return "ValidationException", "Too many items requested for the BatchWriteItem call"


def _too_large_a_row(request: dict[str, Any]) -> Problem:
    (requests,) = request["RequestItems"].values()
    return _too_large(each["PutRequest"]["Item"] for each in requests if "PutRequest" in each)


def _too_large_an_action(request: dict[str, Any]) -> Problem:
    return _too_large(action["Put"]["Item"] for action in request["TransactItems"] if "Put" in action)


def _too_many_actions(request: dict[str, Any]) -> Problem:
    if len(request["TransactItems"]) <= ACTIONS:
        return None
    return "ValidationException", "Member must have length less than or equal to 100"


def _an_item_twice(request: dict[str, Any]) -> Problem:
    bodies = [body for action in request["TransactItems"] for body in action.values()]
    named = [(body["TableName"], body.get("Key") or body["Item"]) for body in bodies]
    keys = [(table, item["pk"]["S"], item["sk"]["S"]) for table, item in named]
    if len(set(keys)) == len(keys):
        return None
    return "ValidationException", "Transaction request cannot include multiple operations on one item"


def _too_large(items: Iterable[dict[str, Any]]) -> Problem:
    if all(item_bytes(item) <= ITEM_BYTES for item in items):
        return None
    return "ValidationException", "Item size has exceeded the maximum allowed size"


def _too_many_keys(request: dict[str, Any]) -> Problem:
    if sum(len(keys["Keys"]) for keys in request["RequestItems"].values()) <= READ_KEYS:
        return None
    return "ValidationException", "Too many items requested for the BatchGetItem call"


def _bounds_the_wrong_way_round(request: dict[str, Any]) -> Problem:
    low, high = (request["ExpressionAttributeValues"].get(name, {}).get("S") for name in (":low", ":high"))
    if low is None or high is None or low <= high:
        return None
    return "ValidationException", "The BETWEEN operator requires upper bound to be greater than or equal to lower bound"


def _too_long_a_bound(request: dict[str, Any]) -> Problem:
    bounds = [request["ExpressionAttributeValues"].get(name, {}).get("S", "") for name in (":low", ":high")]
    if max(len(bound.encode()) for bound in bounds) <= KEY_BYTES:
        return None
    return "ValidationException", "Size of rangekey has exceeded the maximum size limit of 1024 bytes"


def _too_many_messages(request: dict[str, Any]) -> Problem:
    if 1 <= len(request["Entries"]) <= MESSAGES:
        return None
    return "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10"


def _too_long_a_batch(request: dict[str, Any]) -> Problem:
    sent = sum(_message_bytes(entry) for entry in request["Entries"])
    if sent <= BATCH_BYTES:
        return None
    message = f"Batch requests cannot be longer than {BATCH_BYTES} bytes. You have sent {sent} bytes."
    return "AWS.SimpleQueueService.BatchRequestTooLong", message


def _untyped_value(parameters: dict[str, Any]) -> Problem:
    for entry in parameters["Entries"]:
        for name, value in entry.get("MessageAttributes", {}).items():
            field = "BinaryValue" if value["DataType"].startswith("Binary") else "StringValue"
            if field not in value:
                wrong = f"The message attribute '{name}' with type '{value['DataType']}' must use field '{field}'."
                return "InvalidParameterValue", wrong
    return None


def _message_bytes(entry: dict[str, Any]) -> int:
    """Return the bytes that SQS counts: the body's, and each attribute's name, type and value."""
    attributes = entry.get("MessageAttributes", {}).items()
    values = [value.get("BinaryValue") or value["StringValue"].encode() for _, value in attributes]
    texts = [entry["MessageBody"], *(text for name, value in attributes for text in (name, value["DataType"]))]
    return sum(len(text.encode()) for text in texts) + sum(map(len, values))


def _hold_back_long_delays(params: dict[str, Any], context: dict[str, Any], **_: Any) -> Any:
    """Take out what SQS would fail alone, for a delay that is too long, while it sends the rest of a batch."""
    request = json.loads(params["body"])
    kept = [entry for entry in request["Entries"] if 0 <= entry["DelaySeconds"] <= DELAY_SECONDS]
    context["held_back"] = [entry for entry in request["Entries"] if entry not in kept]
    params["body"] = json.dumps({**request, "Entries": kept}).encode()
    return None if kept else _answer(params, 200, {"Successful": []})


def _fail_long_delays(parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    message = f"DelaySeconds must be >= 0 and <= {DELAY_SECONDS}."
    failed = {"Code": "InvalidParameterValue", "SenderFault": True, "Message": message}
    for entry in context.pop("held_back", ()):
        parsed.setdefault("Failed", []).append({**failed, "Id": entry["Id"]})
