"""Work jobs off in a Lambda function whose event source is a queue of Dueline."""

import random
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, overload

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from dueline import otel
from dueline.errors import RETRYABLE, DuelineError, Unavailable
from dueline.model.job import JobId
from dueline.model.message import Message, batches
from dueline.model.text import text_of
from dueline.ports import READ_KEYS, Arrival, Table
from dueline.skip import cancellations_of
from dueline.worker.bury import bury
from dueline.worker.claim import Claim
from dueline.worker.handler_runner import Handler, HandlerRunner
from dueline.worker.prepare import prepare, seconds_until_due
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.received import ReceivedJob, Taken
from dueline.worker.verdict import Again, Dead, Held
from dueline.worker.watch.event import Event, Kind, Report, trouble

_ARN = re.compile(r"arn:[^:]+:sqs:[^:]+:\d+:(?P<deployment>[^_:]+)_(?P<queue>[^_:]+?)(_p(?P<priority>\d))?")
_FOR_EVER = float("inf")
_HIDE_ATTEMPTS = 3
_AGAIN_SECONDS = 0.2

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
        """Answer SQS: which records are to come again. An event has as many as its mapping says, up to 10,000."""
        records = [SQSRecord(record) for record in event["Records"]]
        deployment, queue, level = address_of(records[0].event_source_arn)
        connection, report = self._connect(deployment, queue)
        handler = Handler(queue=queue, call=self._call, once=self._once)
        runner = HandlerRunner(handler, connection, report=report, trace=otel.handling, jitter=random.random)
        batch = _Batch(records, level=level, connection=connection, runner=runner, report=report)
        processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        return process_partial_response(event, batch.work, processor, context)


def connect(deployment: str, queue: str) -> tuple[QueueConnection, Report]:
    """Return a queue to work at, and what hears of its jobs."""
    from dueline.aws.worker_resources import WorkerResources
    from dueline.worker.watch.log import log

    return WorkerResources(deployment).connect(queue), log


class _Batch:
    """The records of an event, in order; `_fates` has what is to be done with those that were looked at."""

    def __init__(
        self,
        records: Sequence[SQSRecord],
        *,
        level: int,
        connection: QueueConnection,
        runner: HandlerRunner,
        report: Report,
    ) -> None:
        # A job's cancellation is read shortly before it runs: not that of the last when the first begins.
        self._coming = batches(records, size=lambda _: 0, most=READ_KEYS)
        self._level = level
        self._connection = connection
        self._runner = runner
        self._report = report
        self._fates: dict[str, Callable[[], None]] = {}
        self._unread: dict[JobId, DuelineError] = {}

    def work(self, record: SQSRecord) -> None:
        """Work one job off. Raises NotDone when it is to come again, and what burying it raises."""
        while record.message_id not in self._fates:
            self._look_at_next()
        self._fates[record.message_id]()

    def _look_at_next(self) -> None:
        records = next(self._coming)
        try:
            self._look_at(records)
        except Exception as fault:
            # Whatever it is: these come again, and the cancellations of later ones are read when it is their turn.
            self._report(trouble(fault, queue=self._connection.queue))
            self._fates |= {record.message_id: partial(_fail, text_of(fault)) for record in records}

    def _look_at(self, records: Sequence[SQSRecord]) -> None:
        now = self._connection.clock.monotonic()
        prepared = prepare([_claim(record, self._level, now) for record in records], self._connection, look=self._look)
        decided = [(taken, partial(self._run, taken)) for taken in prepared.ready]
        decided += [(taken, partial(self._bury, taken, dead)) for taken, dead in prepared.dead]
        decided += [(taken, partial(self._skip, taken)) for taken in prepared.cancelled]
        self._fates |= {taken.claim.arrival.message_id: fate for taken, fate in decided}

    def _look(self, ids: Iterable[JobId], *, table: Table) -> set[JobId]:
        known = cancellations_of(ids, table=table)
        self._unread |= known.unread
        for fault in set(known.unread.values()):
            self._report(trouble(fault, queue=self._connection.queue))
        return known.cancelled

    def _run(self, taken: Taken) -> None:
        if taken.job_id and taken.job_id in self._unread:
            raise NotDone(str(self._unread[taken.job_id]))
        time.sleep(seconds_until_due(taken, self._connection))
        match self._runner.run(taken):
            case Again(seconds=seconds, error=error):
                self._hide(taken, seconds)
                raise NotDone(error)
            case Dead() as dead:
                self._bury(taken, dead)
            case Held(error=error):
                raise NotDone(error)

    def _hide(self, taken: Taken, seconds: int) -> None:
        """Let a job wait for so long. What SQS refuses three times is told: then the job waits as its queue says."""
        inbox = self._connection.levels[taken.claim.level]
        fault: Exception = NotDone()
        for attempt in range(_HIDE_ATTEMPTS):
            time.sleep(attempt * _AGAIN_SECONDS)
            try:
                refusals = inbox.hide([taken.claim.arrival.receipt], [seconds])
            except RETRYABLE as error:
                fault = error
                continue
            if not refusals:
                return
            fault = Unavailable(refusals[0].reason)
            if refusals[0].final:
                break
        what = f"it comes after the visibility_timeout of its queue, and not after {seconds} s"
        self._report(trouble(fault, queue=taken.queue, job=taken.id, what=what))

    def _bury(self, taken: Taken, dead: Dead) -> None:
        bury(taken, dead, dead_letters=self._connection.dead_letters)

    def _skip(self, taken: Taken) -> None:
        self._report(Event(kind=Kind.SKIPPED, queue=taken.queue, job=taken.id, attempt=taken.attempt))


def _fail(why: str) -> None:
    raise NotDone(why)


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
