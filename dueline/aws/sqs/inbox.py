"""A queue on SQS, to receive from."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dueline.aws.faults import is_lost_claim, translated
from dueline.model.message import Message
from dueline.ports import Arrival, Refusal

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

_TOLD: Any = ["ApproximateReceiveCount", "SentTimestamp"]


class SqsInbox:
    """The SQS queue of that URL. `patient` is the client that waits for messages, up to 20 s a request."""

    def __init__(self, client: "SQSClient", url: str, *, patient: "SQSClient") -> None:
        self._client = client
        self._patient = patient
        self._url = url
        self._name = url.rpartition("/")[2]

    def receive(self, *, most: int, wait: int, hidden: int | None = None) -> list[Arrival]:
        given: Any = {} if hidden is None else {"VisibilityTimeout": hidden}
        with translated(f"receiving from queue {self._name}"):
            answer = self._patient.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=most,
                WaitTimeSeconds=wait,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=_TOLD,
                **given,
            )
        return [_arrival(message) for message in answer.get("Messages", [])]

    def delete(self, receipts: Sequence[str]) -> list[Refusal]:
        entries: Any = [{"Id": str(index), "ReceiptHandle": receipt} for index, receipt in enumerate(receipts)]
        with translated(f"deleting messages of queue {self._name}"):
            answer = self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
        return _refusals(answer)

    def hide(self, receipts: Sequence[str], seconds: Sequence[int]) -> list[Refusal]:
        entries: Any = [
            {"Id": str(index), "ReceiptHandle": receipt, "VisibilityTimeout": long}
            for index, (receipt, long) in enumerate(zip(receipts, seconds, strict=True))
        ]
        with translated(f"hiding messages of queue {self._name}"):
            answer = self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
        return _refusals(answer)


def _arrival(message: "MessageTypeDef") -> Arrival:
    by_sqs = message.get("Attributes", {})
    # An attribute of bytes has no text: whoever looks for one finds none.
    attributes = {name: value.get("StringValue", "") for name, value in message.get("MessageAttributes", {}).items()}
    return Arrival(
        message=Message(body=message["Body"], attributes=attributes),
        message_id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        receives=int(by_sqs.get("ApproximateReceiveCount", 1)),
        sent=datetime.fromtimestamp(int(by_sqs.get("SentTimestamp", 0)) / 1000, UTC),
    )


def _refusals(answer: Mapping[str, Any]) -> list[Refusal]:
    return [
        Refusal(
            index=int(failed["Id"]),
            reason=f"{failed['Code']}: {failed.get('Message', '')}",
            final=is_lost_claim(failed["Code"]),
        )
        for failed in answer.get("Failed", [])
    ]
