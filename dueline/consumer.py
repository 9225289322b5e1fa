"""Work jobs off in a Lambda function whose event source is a queue of Dueline."""

import random
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, overload

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from dueline import otel
from dueline.message import Message
from dueline.ports import Arrival
from dueline.working.bury import bury
from dueline.working.claim import Claim
from dueline.working.event import Event, Kind, Report
from dueline.working.handling import Handler, Handling
from dueline.working.place import Place
from dueline.working.prepare import Prepared, prepare, seconds_until_due
from dueline.working.received import ReceivedJob, Taken
from dueline.working.verdict import Again, Dead

_ARN = re.compile(r"arn:[^:]+:sqs:[^:]+:\d+:(?P<deployment>[^_:]+)_(?P<queue>[^_:]+?)(_p(?P<priority>\d))?")
_FOR_EVER = float("inf")

Function = Callable[[ReceivedJob], Any]


class NotDone(Exception):
    """A record that SQS is to bring again."""


class Consumer:
    """A Lambda handler: it has the queue's jobs worked off, each for itself.

    What the queue is, the first event tells. A job that goes back into its queue waits as its retry policy says.
    """

    def __init__(self, call: Function, *, once: bool) -> None:
        self._call = call
        self._once = once
        self._connect = cache(connect)

    def __call__(self, event: dict[str, Any], context: Any) -> Any:
        """Answer SQS: which records are to come again. Raises what AWS's failures raise: then all come again."""
        records = [SQSRecord(record) for record in event["Records"]]
        deployment, queue, level = address_of(records[0].event_source_arn)
        place, report = self._connect(deployment, queue)
        handler = Handler(queue=queue, call=self._call, once=self._once)
        handling = Handling(handler, place, report=report, trace=otel.handling, jitter=random.random)
        now = place.clock.monotonic()
        prepared = prepare([_claim(record, level, now) for record in records], place)
        for each in prepared.cancelled:
            report(Event(kind=Kind.SKIPPED, queue=queue, job=each.id, attempt=each.attempt))
        processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        batch = _Batch(prepared, place, handling)
        return process_partial_response(event, batch.work, processor, context)


def connect(deployment: str, queue: str) -> tuple[Place, Report]:
    """Return a queue to work at, and what hears of its jobs."""
    from dueline.aws.workplace import Workplace
    from dueline.watch.log import log

    return Workplace(deployment).place(queue), log


class _Batch:
    def __init__(self, prepared: Prepared, place: Place, handling: Handling) -> None:
        self._place = place
        self._handling = handling
        self._ready = {each.claim.arrival.message_id: each for each in prepared.ready}
        self._dead = {each.claim.arrival.message_id: (each, dead) for each, dead in prepared.dead}

    def work(self, record: SQSRecord) -> None:
        """Work one job off. Raises NotDone when it is to come again."""
        id = record.message_id
        if id in self._dead:
            taken, dead = self._dead[id]
            bury(taken, dead, dead_letters=self._place.dead_letters)
        elif id in self._ready:
            self._run(self._ready[id])

    def _run(self, taken: Taken) -> None:
        time.sleep(seconds_until_due(taken, self._place))
        match self._handling.run(taken):
            case Again(seconds=seconds, error=error):
                inbox = self._place.levels[taken.claim.level]
                inbox.hide([taken.claim.arrival.receipt], [seconds])
                raise NotDone(error)
            case Dead() as dead:
                bury(taken, dead, dead_letters=self._place.dead_letters)


@overload
def lambda_handler(call: Function) -> Consumer: ...


@overload
def lambda_handler(*, once: bool = False) -> Callable[[Function], Consumer]: ...


def lambda_handler(call: Function | None = None, *, once: bool = False) -> Consumer | Callable[[Function], Consumer]:
    """Make a function that works one job off the handler of a Lambda function, with or without arguments.

    It may return, or raise, what the function of a Worker may, to the same effect, and `once` means the same. Its event
    source mapping wants `ReportBatchItemFailures`, its role the queue's consumer policy. Pause and rate are not heeded:
    Lambda receives by itself.
    """
    if call is None:
        return lambda decorated: Consumer(decorated, once=once)
    return Consumer(call, once=once)


def address_of(arn: str) -> tuple[str, str, int]:
    """Return a queue's deployment, its name and the level, from 0, of an SQS queue. Raises ValueError."""
    match = _ARN.fullmatch(arn)
    if match is None:
        raise ValueError(f"the event is of {arn!r}: it must be of a queue of Dueline, named {{deployment}}_{{queue}}")
    return match["deployment"], match["queue"], int(match["priority"] or 1) - 1


def _claim(record: SQSRecord, level: int, now: float) -> Claim:
    # Lambda itself sees to it that a record is its own while the function runs.
    return Claim(arrival=_arrival(record), level=level, received=now, visible=_FOR_EVER)


def _arrival(record: SQSRecord) -> Arrival:
    attributes: Mapping[str, Any] = record.raw_event.get("messageAttributes", {})
    told = {name: value.get("stringValue") or "" for name, value in attributes.items()}
    system = record.raw_event["attributes"]
    return Arrival(
        message=Message(body=record.body, attributes=told),
        message_id=record.message_id,
        receipt=record.receipt_handle,
        receives=int(system["ApproximateReceiveCount"]),
        sent=datetime.fromtimestamp(int(system["SentTimestamp"]) / 1000, UTC),
    )
