"""An SQS queue in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count

from dueline.core.message import (
    BATCH_BYTES,
    BATCH_MESSAGES,
    MAX_ATTRIBUTES,
    REFUSED_CHARACTERS,
    Message,
    folded,
    unfolded,
)
from dueline.core.ports import BatchFailure, Clock, Depth, QueueMessage
from dueline.core.request import MAX_DELAY_SECONDS
from dueline.errors import QueueNotFound


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """A message in a queue, when it becomes visible, when it was sent, and how often it was received."""

    message: Message
    visible: datetime
    sent: datetime
    number: int
    receives: int = 0

    @property
    def receipt(self) -> str:
        """The receipt of its last receive."""
        return f"{self.number}.{self.receives}"


@dataclass(kw_only=True, slots=True)
class MemoryQueue:
    """An SQS queue as a list of what was sent to it. Set `gone` to delete it."""

    name: str
    clock: Clock
    gone: bool = False
    deliveries: list[Delivery] = field(default_factory=list)
    visibility_timeout: int = 30
    numbers: Iterator[int] = field(default_factory=count, repr=False)

    def send(self, messages: Sequence[Message]) -> list[BatchFailure]:
        self._check()
        at_most(BATCH_MESSAGES, messages, "messages in one batch")
        refusals = {index: why for index, message in enumerate(messages) if (why := _why_unsendable(message))}
        now = self.clock.now()
        self.deliveries += [
            Delivery(
                message=_folded(message),
                visible=now + timedelta(seconds=message.delay),
                sent=now,
                number=next(self.numbers),
            )
            for index, message in enumerate(messages)
            if index not in refusals
        ]
        return [BatchFailure(index=index, reason=why, final=True) for index, why in refusals.items()]

    def depth(self) -> Depth:
        """Return how many messages there are, to the message."""
        self._check()
        hidden = [delivery for delivery in self.deliveries if delivery.visible > self.clock.now()]
        in_flight = sum(delivery.receives > 0 for delivery in hidden)
        waiting = len(self.deliveries) - len(hidden)
        return Depth(waiting=waiting, in_flight=in_flight, delayed=len(hidden) - in_flight)

    def receive(self, *, most: int, wait: int, hidden: int | None = None) -> list[QueueMessage]:
        """Receive what is visible, the oldest first. It waits by its clock, and only if nothing is."""
        self._check()
        if not self._visible():
            self.clock.sleep(wait)
        until = self.clock.now() + timedelta(seconds=self.visibility_timeout if hidden is None else hidden)
        received = [replace(each, visible=until, receives=each.receives + 1) for each in self._visible()[:most]]
        self._put(received)
        return [_arrival(delivery) for delivery in received]

    def delete(self, receipts: Sequence[str]) -> list[BatchFailure]:
        refusals, claimed = self._claimed(receipts)
        gone = {delivery.number for delivery in claimed}
        self.deliveries = [delivery for delivery in self.deliveries if delivery.number not in gone]
        return refusals

    def hide(self, receipts: Sequence[str], seconds: Sequence[int]) -> list[BatchFailure]:
        now, long = self.clock.now(), dict(zip(receipts, seconds, strict=True))
        refusals, claimed = self._claimed(receipts)
        self._put([replace(each, visible=now + timedelta(seconds=long[each.receipt])) for each in claimed])
        return refusals

    def _check(self) -> None:
        if self.gone:
            raise QueueNotFound(f"queue {self.name} does not exist")

    def _visible(self) -> list[Delivery]:
        now = self.clock.now()
        return [delivery for delivery in self.deliveries if delivery.visible <= now]

    def _claimed(self, receipts: Sequence[str]) -> tuple[list[BatchFailure], list[Delivery]]:
        """Return the refusals of receipts whose claim is lost, and the messages of the others."""
        self._check()
        at_most(BATCH_MESSAGES, receipts, "receipts in one batch")
        now = self.clock.now()
        claimed = {each.receipt: each for each in self.deliveries if each.receives and each.visible > now}
        lost = "MessageNotInflight: the claim is lost"
        refusals = [
            BatchFailure(index=index, reason=lost, final=True)
            for index, receipt in enumerate(receipts)
            if receipt not in claimed
        ]
        return refusals, [claimed[receipt] for receipt in receipts if receipt in claimed]

    def _put(self, changed: Sequence[Delivery]) -> None:
        by_number = {delivery.number: delivery for delivery in changed}
        self.deliveries = [by_number.get(delivery.number, delivery) for delivery in self.deliveries]


def _arrival(delivery: Delivery) -> QueueMessage:
    return QueueMessage(
        message=Message(body=delivery.message.body, attributes=unfolded(delivery.message.attributes)),
        message_id=str(delivery.number),
        receipt=delivery.receipt,
        receives=delivery.receives,
        sent=delivery.sent,
    )


def _folded(message: Message) -> Message:
    return replace(message, attributes=folded(message.attributes, most=MAX_ATTRIBUTES))


def _why_unsendable(message: Message) -> str | None:
    """Return SQS's reason to refuse a message, or nothing."""
    if not 0 <= message.delay <= MAX_DELAY_SECONDS:
        return f"InvalidParameterValue: DelaySeconds is {message.delay}: it must be from 0 to {MAX_DELAY_SECONDS}"
    if any(REFUSED_CHARACTERS.search(text) for text in (message.body, *message.attributes.values())):
        return "InvalidMessageContents: the message has characters that SQS does not take"
    if not all(message.attributes.values()):
        return "InvalidParameterValue: an attribute of the message is empty"
    if message.sent_bytes > BATCH_BYTES:
        return f"InvalidParameterValue: the message has {message.sent_bytes} bytes: at most {BATCH_BYTES} are allowed"
    return None


# AWS's limits, which the ports in memory keep, too.
def at_most(limit: int, items: Sequence[object], what: str) -> None:
    if len(items) > limit:
        raise ValueError(f"{len(items)} {what}: AWS takes {limit}")
