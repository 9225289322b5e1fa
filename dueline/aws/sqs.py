"""An SQS queue: sending, receiving and acknowledging."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from dueline.aws.botocore_errors import LOST_CLAIM, UNSENDABLE, map_botocore_errors
from dueline.core.message import MAX_ATTRIBUTES, Message, binary_value, folded, from_sqs, type_of
from dueline.core.ports import BatchFailure, Depth, QueueMessage
from dueline.errors import RETRYABLE, InvalidJob

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef


_WAITING: Final = "ApproximateNumberOfMessages"
_IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"
_DELAYED: Final = "ApproximateNumberOfMessagesDelayed"
_RECEIVED_WITH: Any = ["ApproximateReceiveCount", "SentTimestamp"]
# A proxy's page may answer with 200 too.
_NO_ANSWER: Final = {"Code": "NoAnswer", "Message": "the answer does not say that it was done"}


class SqsQueue:
    """The SQS queue of a URL.

    URLs are made from names, never looked up: GetQueueUrl returns the same error for a queue that was deleted, whose
    jobs are parked, and for one that this process may not see, whose jobs must wait. `long_polls` is the client that
    waits for messages, up to 20 s a request, by default `client`. `map_errors` is `map_caller_errors` where the
    credentials are a caller's.
    """

    def __init__(
        self,
        client: "SQSClient",
        url: str,
        *,
        long_polls: "SQSClient | None" = None,
        map_errors: Callable[[str], AbstractContextManager[None]] = map_botocore_errors,
    ) -> None:
        self._client, self._long_polls = client, long_polls or client
        self._url = url
        self._name = url.rpartition("/")[2]
        self._map_errors = map_errors

    def send(self, messages: Sequence[Message]) -> list[BatchFailure]:
        try:
            with self._map_errors(f"sending to queue {self._name}"):
                answer = self._client.send_message_batch(QueueUrl=self._url, Entries=_entries(messages))
                return _failures(answer, len(messages), final=UNSENDABLE)
        except InvalidJob as error:
            return self._one_by_one(messages, str(error))

    def depth(self) -> Depth:
        with self._map_errors(f"reading how full queue {self._name} is"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._url, AttributeNames=[_WAITING, _IN_FLIGHT, _DELAYED]
            )
            waiting, in_flight, delayed = (int(answer["Attributes"][name]) for name in (_WAITING, _IN_FLIGHT, _DELAYED))
        return Depth(waiting=waiting, in_flight=in_flight, delayed=delayed)

    def receive(self, *, most: int, wait: int, hidden: int | None = None) -> list[QueueMessage]:
        timeout: Any = {} if hidden is None else {"VisibilityTimeout": hidden}
        with self._map_errors(f"receiving from queue {self._name}"):
            answer = self._long_polls.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=most,
                WaitTimeSeconds=wait,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=_RECEIVED_WITH,
                **timeout,
            )
            return [_arrival(message) for message in answer.get("Messages", [])]

    def delete(self, receipts: Sequence[str]) -> list[BatchFailure]:
        entries: Any = [{"Id": str(index), "ReceiptHandle": receipt} for index, receipt in enumerate(receipts)]
        with self._map_errors(f"deleting messages of queue {self._name}"):
            answer = self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
            return _failures(answer, len(entries), final=LOST_CLAIM)

    def hide(self, receipts: Sequence[str], seconds: Sequence[int]) -> list[BatchFailure]:
        entries: Any = [
            {"Id": str(index), "ReceiptHandle": receipt, "VisibilityTimeout": long}
            for index, (receipt, long) in enumerate(zip(receipts, seconds, strict=True))
        ]
        with self._map_errors(f"hiding messages of queue {self._name}"):
            answer = self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
            return _failures(answer, len(entries), final=LOST_CLAIM)

    def _one_by_one(self, messages: Sequence[Message], reason: str) -> list[BatchFailure]:
        """Find the messages for which SQS refused a whole batch."""
        if len(messages) == 1:
            return [BatchFailure(index=0, reason=reason, final=True)]
        return [
            replace(failure, index=index)
            for index, message in enumerate(messages)
            for failure in self._send_alone(message)
        ]

    def _send_alone(self, message: Message) -> list[BatchFailure]:
        """Send one of several messages; its error must not hide that others were sent."""
        try:
            return self.send([message])
        except RETRYABLE as fault:
            return [BatchFailure(index=0, reason=str(fault), final=False)]


def _failures(answer: Mapping[str, Any], count: int, *, final: Collection[str]) -> list[BatchFailure]:
    """Return what failed of so many entries, those among them that the answer does not name."""
    done = {each.get("Id") for each in answer.get("Successful", [])}
    failed: dict[str, Any] = {each["Id"]: each for each in answer.get("Failed", [])}
    failures = []
    for index in range(count):
        if str(index) in failed or str(index) not in done:
            error = failed.get(str(index), _NO_ANSWER)
            reason = f"{error['Code']}: {error.get('Message', '')}"
            failures.append(BatchFailure(index=index, reason=reason, final=error["Code"] in final))
    return failures


def _entries(messages: Sequence[Message]) -> Any:
    return [
        {
            "Id": str(index),
            "MessageBody": message.body,
            "DelaySeconds": message.delay,
            "MessageAttributes": {
                name: {"DataType": type_of(name, value), **_value(value)}
                for name, value in folded(message.attributes, most=MAX_ATTRIBUTES).items()
            },
        }
        | ({"MessageGroupId": message.group} if message.group else {})
        for index, message in enumerate(messages)
    ]


def _value(text: str) -> dict[str, str | bytes]:
    binary = binary_value(text)
    return {"StringValue": text} if binary is None else {"BinaryValue": binary}


def _arrival(message: "MessageTypeDef") -> QueueMessage:
    by_sqs = message.get("Attributes", {})
    return QueueMessage(
        message=Message(body=message["Body"], attributes=from_sqs(message.get("MessageAttributes", {}))),
        message_id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        receives=int(by_sqs.get("ApproximateReceiveCount", 1)),
        sent=datetime.fromtimestamp(int(by_sqs.get("SentTimestamp", 0)) / 1000, UTC),
    )
