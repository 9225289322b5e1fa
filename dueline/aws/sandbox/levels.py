"""The levels of a sandbox's queues: one is deleted, and made again as the first level is."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dueline.config.names import Names
from dueline.verify.sandbox import LEVELS, PRIORITIES

# SQS makes no queue of a name that was deleted within a minute.
_TRIES, _WAIT_SECONDS = 20, 5.0
# What a queue is made with; the rest of its attributes are counts, and names of its own.
_KEPT = ("MessageRetentionPeriod", "RedriveAllowPolicy", "RedrivePolicy", "SqsManagedSseEnabled", "VisibilityTimeout")


class AwsLevels:
    """Deletes a level, and makes it again. `url` returns the URL of an SQS queue."""

    def __init__(self, names: Names, sqs: Any, *, url: Callable[[str], str]) -> None:
        self._names, self._sqs, self._url = names, sqs, url

    @contextmanager
    def gone(self, queue: str, priority: int) -> Iterator[None]:
        try:
            self._sqs.delete_queue(QueueUrl=self._url(self._names.queue(queue, priority)))
            yield
        finally:
            self._make(queue, priority)

    def mend(self) -> None:
        """Make the level again that a run deleted, if it is not there."""
        for priority in range(2, PRIORITIES + 1):
            self._make(LEVELS, priority)

    def _make(self, queue: str, priority: int) -> None:
        """Make a level, though it may seem to be there: SQS tells of a queue for a while after it was deleted."""
        first, name = self._names.queue(queue), self._names.queue(queue, priority)
        told = self._sqs.get_queue_attributes(QueueUrl=self._url(first), AttributeNames=["All"])["Attributes"]
        attributes = {each: told[each] for each in _KEPT if each in told}
        if "Policy" in told:
            attributes["Policy"] = json.dumps(_of_another(json.loads(told["Policy"]), first, name))
        with suppress(self._sqs.exceptions.QueueNameExists):
            self._create(name, attributes)

    def _create(self, name: str, attributes: dict[str, str]) -> None:
        for _ in range(_TRIES):
            with suppress(self._sqs.exceptions.QueueDeletedRecently):
                self._sqs.create_queue(QueueName=name, Attributes=attributes)
                return
            time.sleep(_WAIT_SECONDS)
        self._sqs.create_queue(QueueName=name, Attributes=attributes)


def _of_another(policy: Any, name: str, other: str) -> Any:
    """Return the policy of a queue as that of another one.

    >>> _of_another({"Statement": [{"Resource": "arn:aws:sqs:r:1:v_levels"}]}, "v_levels", "v_levels_p2")
    {'Statement': [{'Resource': 'arn:aws:sqs:r:1:v_levels_p2'}]}
    """
    statements = [
        {**each, "Resource": each["Resource"].removesuffix(f":{name}") + f":{other}"} for each in policy["Statement"]
    ]
    return {**policy, "Statement": statements}
