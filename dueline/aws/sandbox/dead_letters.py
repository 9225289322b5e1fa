"""The queues of a sandbox, to be emptied or put back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from dueline.aws.sqs import dead_letters
from dueline.config.names import Names
from dueline.model.queue_settings import PLANNER
from dueline.operate.dead_letters import Rule, to_inbound, to_its_queue
from dueline.operate.redrive import Redrive
from dueline.retry.calls import Calls, in_lanes
from dueline.verify.sandbox import LEVELS, PRIORITIES, QUEUES

if TYPE_CHECKING:
    from boto3 import Session


class DeadLetters:
    """Puts a message into every dead-letter queue, and empties them all."""

    def __init__(self, names: Names, sqs: Any, *, url: Callable[[str], str]) -> None:
        self._sqs = sqs
        own = (names.inbound_dlq, names.dispatch_dlq, names.tick_dlq)
        levels = [names.queue(each) for each in QUEUES]
        self._levels = [
            url(name) for name in (*levels, *(names.queue(LEVELS, each) for each in range(2, PRIORITIES + 1)))
        ]
        self._urls = [url(name) for name in (*own, *(names.queue_dlq(each) for each in (*QUEUES, PLANNER.name)))]

    @contextmanager
    def ringing(self) -> Iterator[None]:
        try:
            for url in self._urls:
                self._sqs.send_message(QueueUrl=url, MessageBody="dueline verify lets this alarm ring")
            yield
        finally:
            self.empty()

    def empty(self) -> None:
        """Delete whatever is in them, one receive after another: a purge is allowed once a minute, and takes one."""
        for url in self._urls:
            while messages := self._receive(url):
                for message in messages:
                    self._sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    def purge_levels(self) -> None:
        """Delete whatever is in the queues, also what is not visible yet."""
        for url in self._levels:
            with suppress(self._sqs.exceptions.PurgeQueueInProgress):
                self._sqs.purge_queue(QueueUrl=url)

    def _receive(self, url: str) -> list[Any]:
        # A long poll asks all of SQS's servers, so that none is overlooked.
        answer = self._sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        return list(answer.get("Messages", []))


def redriven(name: str, queue: str | None, *, session: "Session", calls: Calls) -> int:
    """Put back the dead letters of a queue, or what a deployment parked; return how many were."""
    if queue is None:
        ends = dead_letters.of_parked(name, session=session)
        rule: Rule = partial(to_inbound, now=datetime.now(UTC), past_retention=False)
    else:
        ends = dead_letters.of_queue(name, queue, session=session)
        rule = partial(to_its_queue, levels=len(ends.queues))
    return Redrive(ends, rule=rule, calls=calls, spread=in_lanes).apply().moved
