"""What can happen to a request on its way to AWS: alone, all of it at random, or for a while."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tests.e2e.chaos.proxy import Answer, Around, Exchange, straight

# Longer than the functions wait for an answer: `dueline/aws/clients.py`, in an attempt of the longest request of 5 s.
TOO_LATE_SECONDS = 1.6
_LONGEST_DELAY_SECONDS = 0.4
_PUTS = {"PutItem", "BatchWriteItem", "TransactWriteItems"}


def delayed(exchange: Exchange) -> Answer | None:
    time.sleep(random.uniform(0.05, _LONGEST_DELAY_SECONDS))
    return exchange.pass_on()


def lost_request(_: Exchange) -> Answer | None:
    return None


def lost_answer(exchange: Exchange) -> Answer | None:
    exchange.pass_on()
    return None


def late_answer(exchange: Exchange) -> Answer | None:
    answer = exchange.pass_on()
    time.sleep(TOO_LATE_SECONDS)
    return answer


def repeated(exchange: Exchange) -> Answer | None:
    exchange.pass_on()
    return exchange.pass_on()


def throttled(exchange: Exchange) -> Answer | None:
    if is_of_a_table(exchange):
        return _refusal("com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "slow down")
    return _refusal(
        "com.amazonaws.sqs#RequestThrottled", "slow down", {"x-amzn-query-error": "RequestThrottled;Sender"}
    )


def failed(_: Exchange) -> Answer | None:
    return _refusal("InternalServerError", "it broke", status=500)


def item_left_out(exchange: Exchange) -> Answer | None:
    """Leave one item of a BatchWriteItem unwritten."""
    request = exchange.json()
    ((table, writes),) = request["RequestItems"].items()
    left = [writes.pop(random.randrange(len(writes)))]
    answer = exchange.pass_on(request).json() if writes else {"UnprocessedItems": {}}
    left += answer.get("UnprocessedItems", {}).get(table, [])
    return Answer.of({**answer, "UnprocessedItems": {table: left}})


def key_left_out(exchange: Exchange) -> Answer | None:
    """Leave one key of a BatchGetItem unread."""
    request = exchange.json()
    ((table, read),) = request["RequestItems"].items()
    left = [read["Keys"].pop(random.randrange(len(read["Keys"])))]
    answer = exchange.pass_on(request).json() if read["Keys"] else {"Responses": {table: []}}
    return Answer.of({**answer, "UnprocessedKeys": {table: {**read, "Keys": left}}})


def message_left_out(exchange: Exchange) -> Answer | None:
    """Leave one message of a SendMessageBatch unsent."""
    request = exchange.json()
    left = request["Entries"].pop(random.randrange(len(request["Entries"])))
    answer = exchange.pass_on(request).json() if request["Entries"] else {"Successful": []}
    refused = {"Id": left["Id"], "Code": "InternalError", "Message": "try again", "SenderFault": False}
    return Answer.of({**answer, "Failed": [*answer.get("Failed", []), refused]})


def is_of_a_table(exchange: Exchange) -> bool:
    return not exchange.operation.startswith(("SendMessage", "ChangeMessageVisibility"))


def _refusal(code: str, message: str, headers: dict[str, str] | None = None, *, status: int = 400) -> Answer:
    return Answer.of({"__type": code, "message": message}, status=status, headers=headers)


def tables_throttled(exchange: Exchange) -> Answer | None:
    """Throttle every request to a table."""
    if not is_of_a_table(exchange):
        return exchange.pass_on()
    exchange.fault = throttled.__name__
    return throttled(exchange)


def writes_of_jobs_throttled(exchange: Exchange) -> Answer | None:
    """Throttle whatever writes to the table of jobs; states have a table of their own."""
    is_write = exchange.operation in _PUTS and b'-jobs"' in exchange.body
    return tables_throttled(exchange) if is_write else exchange.pass_on()


_RATES: Mapping[Around, float] = MappingProxyType(
    {
        delayed: 0.08,
        lost_request: 0.06,
        lost_answer: 0.06,
        late_answer: 0.04,
        repeated: 0.06,
        throttled: 0.06,
        failed: 0.03,
    }
)
_IN_PART: Mapping[str, Around] = MappingProxyType(
    {"BatchWriteItem": item_left_out, "BatchGetItem": key_left_out, "SendMessageBatch": message_left_out}
)
_IN_PART_RATE = 0.25
KINDS = {kind.__name__ for kind in (*_RATES, *_IN_PART.values())}


class RandomFaults:
    """Does all of the above to requests, at the rates above. `counts` has how often, by kind.

    The seed makes the same choices in the same order; which request gets which is up to the threads.
    """

    def __init__(self, *, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def __call__(self, exchange: Exchange) -> Answer | None:
        with self._lock:
            kind = self._choose(exchange.operation)
            self.counts[kind.__name__] += 1
        exchange.fault = "" if kind is straight else kind.__name__
        return kind(exchange)

    def _choose(self, operation: str) -> Callable[[Exchange], Answer | None]:
        if operation in _IN_PART and self._random.random() < _IN_PART_RATE:
            return _IN_PART[operation]
        (kind,) = self._random.choices([*_RATES, straight], [*_RATES.values(), 1 - sum(_RATES.values())])
        return kind


# Whose requests to throttle, from which share of the time to which.
_SHARES = MappingProxyType({"all": (0.3, 0.4), "tick": (0.6, 0.75)})


@dataclass(kw_only=True, slots=True)
class ThrottledForAWhile:
    """Throttles the tables for a tenth of some seconds, and later ticks alone: it is as if none came.

    Each lasts until at least `fewest` requests were throttled. `counts` has how many, by `senders`.
    """

    seconds: float
    fewest: int = 8
    counts: Counter[str] = field(default_factory=Counter)
    _began: float = field(default_factory=time.monotonic)

    def __call__(self, exchange: Exchange) -> Answer | None:
        share = (time.monotonic() - self._began) / self.seconds
        for senders, (begin, end) in _SHARES.items():
            is_on = begin <= share and (share < end or self.counts[senders] < self.fewest)
            if is_on and senders in ("all", exchange.sender.function):
                self.counts[senders] += 1
                return tables_throttled(exchange)
        return exchange.pass_on()

    @property
    def is_over(self) -> bool:
        return all(self.counts[senders] >= self.fewest for senders in _SHARES)


@dataclass(kw_only=True, slots=True)
class LostMessages:
    """Loses messages with a text in their bodies, as SQS never does: the sender's answer is that they are sent."""

    text: str
    around: Around = straight
    lost: int = 0

    def __call__(self, exchange: Exchange) -> Answer | None:
        lost = self._lost(exchange)
        if not lost:
            return self.around(exchange)
        self.lost += len(lost)
        exchange.fault = "messages are lost"
        request = exchange.json()
        kept = [each for each in request["Entries"] if each not in lost]
        answer = exchange.pass_on({**request, "Entries": kept}).json() if kept else {"Failed": []}
        sent = [{"Id": each["Id"], "MessageId": each["Id"], "MD5OfMessageBody": ""} for each in lost]
        return Answer.of({**answer, "Successful": [*answer.get("Successful", []), *sent]})

    def _lost(self, exchange: Exchange) -> list[dict[str, Any]]:
        entries = exchange.json()["Entries"] if exchange.operation == "SendMessageBatch" else []
        return [each for each in entries if self.text in each["MessageBody"]]
