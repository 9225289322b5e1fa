"""A queue on SQS."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dueline.aws.faults import is_unsendable, translated
from dueline.errors import RETRYABLE, InvalidJob
from dueline.model.message import Message, type_of
from dueline.ports import Depth, Refusal

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_WAITING: Final = "ApproximateNumberOfMessages"
_IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"
_DELAYED: Final = "ApproximateNumberOfMessagesDelayed"


class SqsQueue:
    """The SQS queue of that URL.

    URLs are made from names, never looked up: GetQueueUrl returns the same error for a queue that was deleted, whose
    jobs are parked, and for one that this process may not see, whose jobs must wait.
    """

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url
        self._name = url.rpartition("/")[2]

    def send(self, messages: Sequence[Message]) -> list[Refusal]:
        try:
            with translated(f"sending to queue {self._name}"):
                answer = self._client.send_message_batch(QueueUrl=self._url, Entries=_entries(messages))
        except InvalidJob as error:
            return self._one_by_one(messages, str(error))
        return [
            Refusal(
                index=int(failed["Id"]),
                reason=f"{failed['Code']}: {failed.get('Message', '')}",
                final=is_unsendable(failed["Code"]),
            )
            for failed in answer.get("Failed", [])
        ]

    def depth(self) -> Depth:
        with translated(f"asking how full queue {self._name} is"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._url, AttributeNames=[_WAITING, _IN_FLIGHT, _DELAYED]
            )
        counts = answer["Attributes"]
        return Depth(waiting=int(counts[_WAITING]), in_flight=int(counts[_IN_FLIGHT]), delayed=int(counts[_DELAYED]))

    def _one_by_one(self, messages: Sequence[Message], reason: str) -> list[Refusal]:
        """Find the messages for which SQS refused a whole batch."""
        if len(messages) == 1:
            return [Refusal(index=0, reason=reason, final=True)]
        answers = [self._send_alone(message) for message in messages]
        return [
            Refusal(index=index, reason=refusal.reason, final=refusal.final)
            for index, refusals in enumerate(answers)
            for refusal in refusals
        ]

    def _send_alone(self, message: Message) -> list[Refusal]:
        """Send one of several messages; its error must not hide that others were sent."""
        try:
            return self.send([message])
        except RETRYABLE as fault:
            return [Refusal(index=0, reason=str(fault), final=False)]


def _entries(messages: Sequence[Message]) -> Any:
    return [
        {
            "Id": str(index),
            "MessageBody": message.body,
            "DelaySeconds": message.delay,
            "MessageAttributes": {
                name: {"DataType": type_of(name, value), "StringValue": value}
                for name, value in message.attributes.items()
            },
        }
        | ({"MessageGroupId": message.group} if message.group else {})
        for index, message in enumerate(messages)
    ]
