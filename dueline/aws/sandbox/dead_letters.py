"""The queues of a sandbox, to be emptied, and the alarms on its dead-letter queues."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from dueline.config.names import Names
from dueline.model.queue_settings import PLANNER
from dueline.verify.sandbox import QUEUES

# Each alarm on a dead-letter queue counts these, and no other alarm does.
_METRIC = "ApproximateNumberOfMessagesVisible"


class DeadLetters:
    """Puts a message into every dead-letter queue, empties them all, and tells how their alarms are."""

    def __init__(self, names: Names, sqs: Any, cloudwatch: Any, *, url: Callable[[str], str]) -> None:
        self._names, self._sqs, self._cloudwatch = names, sqs, cloudwatch
        own = (names.inbound_dlq, names.dispatch_dlq, names.tick_dlq)
        self._levels = [url(names.queue(each)) for each in QUEUES]
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

    def alarms(self) -> Mapping[str, str]:
        pages = self._cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=f"{self._names.deployment}-", AlarmTypes=["MetricAlarm"]
        )
        alarms = (alarm for page in pages for alarm in page["MetricAlarms"])
        return {each["AlarmName"]: each["StateValue"] for each in alarms if each.get("MetricName") == _METRIC}

    def _receive(self, url: str) -> list[Any]:
        # A long poll asks all of SQS's servers, so that none is overlooked.
        answer = self._sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        return list(answer.get("Messages", []))
