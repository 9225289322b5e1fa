"""What can happen to a request on its way to AWS: alone, or all of it at random."""

import random
import threading
import time
from collections import Counter

from tests.e2e.chaos.proxy import Answer, Around, Exchange, straight

# Longer than the functions wait for an answer: `dueline/aws/clients.py`, in an attempt of the longest request of 5 s.
TOO_LATE_SECONDS = 1.6
_LONGEST_DELAY_SECONDS = 0.4


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
    if _is_of_a_table(exchange.operation):
        return _refusal("com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "slow down")
    return _refusal(
        "com.amazonaws.sqs#RequestThrottled", "slow down", {"x-amzn-query-error": "RequestThrottled;Sender"}
    )


def failed(_: Exchange) -> Answer | None:
    return _refusal("InternalServerError", "it broke", status=500)


def item_left_out(exchange: Exchange) -> Answer | None:
    """Leave one item of a BatchWriteItem unwritten."""
    request = exchange.json()
    table, writes = random.choice(list(request["RequestItems"].items()))
    left = writes.pop(random.randrange(len(writes)))
    kept = {name: items for name, items in request["RequestItems"].items() if items}
    if kept:
        exchange.pass_on(request | {"RequestItems": kept})
    return Answer.of({"UnprocessedItems": {table: [left]}})


def key_left_out(exchange: Exchange) -> Answer | None:
    """Leave one key of a BatchGetItem unread."""
    request = exchange.json()
    table, read = random.choice(list(request["RequestItems"].items()))
    left = read["Keys"].pop(random.randrange(len(read["Keys"])))
    kept = {name: items for name, items in request["RequestItems"].items() if items["Keys"]}
    rows = exchange.pass_on(request | {"RequestItems": kept}).json()["Responses"] if kept else {}
    return Answer.of({"Responses": {table: []} | rows, "UnprocessedKeys": {table: {**read, "Keys": [left]}}})


def message_left_out(exchange: Exchange) -> Answer | None:
    """Leave one message of a SendMessageBatch unsent."""
    request = exchange.json()
    left = request["Entries"].pop(random.randrange(len(request["Entries"])))
    answer = exchange.pass_on(request).json() if request["Entries"] else {"Successful": []}
    refused = {"Id": left["Id"], "Code": "InternalError", "Message": "try again", "SenderFault": False}
    return Answer.of({**answer, "Failed": [*answer.get("Failed", []), refused]})


def _is_of_a_table(operation: str) -> bool:
    return not operation.startswith(("SendMessage", "ChangeMessageVisibility"))


def _refusal(code: str, message: str, headers: dict[str, str] | None = None, *, status: int = 400) -> Answer:
    return Answer.of({"__type": code, "message": message}, status=status, headers=headers)


_RATES = {
    delayed: 0.08,
    lost_request: 0.06,
    lost_answer: 0.06,
    late_answer: 0.04,
    repeated: 0.06,
    throttled: 0.06,
    failed: 0.03,
}
_IN_PART = {"BatchWriteItem": item_left_out, "BatchGetItem": key_left_out, "SendMessageBatch": message_left_out}
_IN_PART_RATE = 0.25
_KINDS = {kind.__name__ for kind in (*_RATES, *_IN_PART.values())}
# Everything is throttled for so long, of the table and then of SQS; then, twice as long, only what is chosen at random.
_SPELL_SECONDS, _TURNS = 6.0, 4
_SPELLS = ("table throttled for a while", "SQS throttled for a while")


class RandomFaults:
    """Does all of the above to requests, at the rates above, between spells of throttling. `counts` are by kind.

    The seed makes the same choices in the same order; which request gets which is up to the threads. It is done when
    there were so many `of_each` kind.
    """

    def __init__(self, *, seed: int, of_each: int) -> None:
        self.counts: Counter[str] = Counter()
        self._of_each = of_each
        self._random, self._began = random.Random(seed), time.monotonic()
        self._lock = threading.Lock()

    @property
    def is_done(self) -> bool:
        """Whether there was enough of each kind."""
        return all(self.counts[kind] >= self._of_each for kind in (*_KINDS, *_SPELLS))

    def __call__(self, exchange: Exchange) -> Answer | None:
        with self._lock:
            kind, exchange.fault = self._choose(exchange.operation)
            self.counts[exchange.fault] += 1
        return kind(exchange)

    def _choose(self, operation: str) -> tuple[Around, str]:
        turn = int((time.monotonic() - self._began) / _SPELL_SECONDS) % _TURNS
        if turn < len(_SPELLS):
            is_throttled = _is_of_a_table(operation) == (turn == 0)
            return (throttled, _SPELLS[turn]) if is_throttled else (straight, "")
        if operation in _IN_PART and self._random.random() < _IN_PART_RATE:
            kind = _IN_PART[operation]
        else:
            (kind,) = self._random.choices([*_RATES, straight], [*_RATES.values(), 1 - sum(_RATES.values())])
        return kind, "" if kind is straight else kind.__name__
