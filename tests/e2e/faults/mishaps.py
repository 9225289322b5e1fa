"""What can befall a request on its way to AWS, and a storm in which all of it does, at random."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tests.e2e.faults.exchange import Answer, Around, Exchange, straight

# Longer than the functions wait for an answer: `dueline/aws/clients.py`, in an attempt of the longest request of 5 s.
TOO_LATE_SECONDS = 1.6
LONGEST_DELAY_SECONDS = 0.4


def delayed(exchange: Exchange) -> Answer | None:
    time.sleep(random.uniform(0.05, LONGEST_DELAY_SECONDS))
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
    """Refuse, as the service does when it asks to slow down."""
    if _is_of_the_table(exchange):
        return _refusal("com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "slow down")
    return _refusal(
        "com.amazonaws.sqs#RequestThrottled", "slow down", {"x-amzn-query-error": "RequestThrottled;Sender"}
    )


def failed(_: Exchange) -> Answer | None:
    return _refusal("InternalServerError", "it broke", status=500)


def item_left_out(exchange: Exchange) -> Answer | None:
    """Leave one item of a BatchWriteItem unwritten."""
    asked = exchange.asked()
    ((table, writes),) = asked["RequestItems"].items()
    left = [writes.pop(random.randrange(len(writes)))]
    told = exchange.pass_on(asked).told() if writes else {"UnprocessedItems": {}}
    left += told.get("UnprocessedItems", {}).get(table, [])
    return Answer.of({**told, "UnprocessedItems": {table: left}})


def key_left_out(exchange: Exchange) -> Answer | None:
    """Leave one key of a BatchGetItem unread."""
    asked = exchange.asked()
    ((table, read),) = asked["RequestItems"].items()
    left = [read["Keys"].pop(random.randrange(len(read["Keys"])))]
    told = exchange.pass_on(asked).told() if read["Keys"] else {"Responses": {table: []}}
    return Answer.of({**told, "UnprocessedKeys": {table: {**read, "Keys": left}}})


def message_left_out(exchange: Exchange) -> Answer | None:
    """Leave one message of a SendMessageBatch unsent."""
    asked = exchange.asked()
    left = asked["Entries"].pop(random.randrange(len(asked["Entries"])))
    told = exchange.pass_on(asked).told() if asked["Entries"] else {"Successful": []}
    refused = {"Id": left["Id"], "Code": "InternalError", "Message": "try again", "SenderFault": False}
    return Answer.of({**told, "Failed": [*told.get("Failed", []), refused]})


def _is_of_the_table(exchange: Exchange) -> bool:
    return not exchange.operation.startswith(("SendMessage", "ChangeMessageVisibility"))


def _refusal(code: str, message: str, headers: dict[str, str] | None = None, *, status: int = 400) -> Answer:
    return Answer.of({"__type": code, "message": message}, status=status, headers=headers)


RATES: Mapping[Callable[[Exchange], Answer | None], float] = MappingProxyType(
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
IN_PART: Mapping[str, Callable[[Exchange], Answer | None]] = MappingProxyType(
    {"BatchWriteItem": item_left_out, "BatchGetItem": key_left_out, "SendMessageBatch": message_left_out}
)
IN_PART_RATE = 0.25
KINDS = {kind.__name__ for kind in (*RATES, *IN_PART.values())}


class Storm:
    """Lets requests meet with every kind of mishap, at the rates above. `befell` counts them.

    The seed makes the same choices in the same order; which request meets which is up to the threads.
    """

    def __init__(self, *, seed: int) -> None:
        self.befell: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._choosing = threading.Lock()

    def __call__(self, exchange: Exchange) -> Answer | None:
        with self._choosing:
            kind = self._choose(exchange.operation)
            self.befell[kind.__name__] += 1
        exchange.mishap = "" if kind is straight else kind.__name__
        return kind(exchange)

    def _choose(self, operation: str) -> Around:
        if operation in IN_PART and self._random.random() < IN_PART_RATE:
            return IN_PART[operation]
        rest = 1 - sum(RATES.values())
        (kind,) = self._random.choices([*RATES, straight], [*RATES.values(), rest])
        return kind


def the_table_throttled(exchange: Exchange) -> Answer | None:
    """Throttle every request to the table."""
    if not _is_of_the_table(exchange):
        return exchange.pass_on()
    exchange.mishap = throttled.__name__
    return throttled(exchange)


_WRITES = {"PutItem", "BatchWriteItem", "TransactWriteItems"}
_JOBS_TABLE = b'-jobs"'


def writes_of_jobs_throttled(exchange: Exchange) -> Answer | None:
    """Throttle whatever writes to the table of jobs, as a flood does: the states have a table of their own."""
    if exchange.operation not in _WRITES or _JOBS_TABLE not in exchange.body:
        return exchange.pass_on()
    exchange.mishap = throttled.__name__
    return throttled(exchange)
