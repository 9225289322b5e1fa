"""Process jobs in a Lambda function whose event source is a queue of Dueline."""

import math
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, overload

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from dueline import otel
from dueline.core.cancel import cancellations_of
from dueline.core.job import JobId, check_kind
from dueline.core.message import Message, batches, from_lambda_event
from dueline.core.ports import READ_KEYS, QueueMessage, Table
from dueline.core.text import text_of
from dueline.errors import RETRYABLE, DuelineError, Unavailable
from dueline.worker.claims import Claim
from dueline.worker.delivery import DeadLetter, DeadLettered, Deferred, ReceivedJob, ReceivedMessage, RetryLater
from dueline.worker.events import EventKind
from dueline.worker.execution import Callback, Callbacks, HandlerRunner
from dueline.worker.handlers import Handler, Handlers, blamed_on_caller, check_function
from dueline.worker.queue_context import QueueContext
from dueline.worker.receiving import prepare, seconds_until_due

_ARN = re.compile(r"arn:[^:]+:sqs:[^:]+:\d+:(?P<deployment>[^_:]+)_(?P<queue>[^_:]+?)(_p(?P<priority>\d))?")
_HIDE_ATTEMPTS = 3
_RETRY_SECONDS = 0.2

Function = Callable[[ReceivedJob], Any]
# From the names of a deployment and a queue.
Connect = Callable[[str, str], QueueContext]


class NotDone(Exception):
    """A record that SQS is to deliver again."""


class Consumer:
    """A Lambda handler: it calls the function of its kind once for each job of an event.

    Each job succeeds or fails alone. Each event names its queue. A job that is retried waits as the queue's retry
    policy says.
    """

    def __init__(self, calls: Mapping[str | None, Function], *, once: bool, callbacks: Callbacks) -> None:
        if not calls:
            raise ValueError("the handlers are {}: there must be a function of a kind, or of None for all others")
        for kind, call in calls.items():
            check_kind(kind)
            check_function(call)
        self._callbacks = callbacks
        self._calls, self._once, self._connect = dict(calls), once, cache(self._connect_to)
        self._connect_elsewhere: Connect | None = None

    @property
    def function(self) -> Function:
        """The plain function that was decorated, to be called with a job of a test's own."""
        if len(self._calls) > 1:
            raise AttributeError(f"it has {len(self._calls)} functions, one of each kind: call the one that is meant")
        return next(iter(self._calls.values()))

    def connected(self, connect_to: Connect) -> "Consumer":
        """Return the same handler over other queues than those on AWS."""
        other = copy(self)
        other._connect_elsewhere, other._connect = connect_to, cache(other._connect_to)
        return other

    def __call__(self, event: dict[str, Any], context: Any) -> Any:
        """Process an event; return the records that SQS is to deliver again. There may be up to 10,000 in one event."""
        records = [SQSRecord(record) for record in event["Records"]]
        deployment, queue, level = address_of(records[0].event_source_arn)
        context, runner = self._connect(deployment, queue)
        batch = _EventBatch(records, level=level, context=context, runner=runner)
        processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        return process_partial_response(event, batch.process, processor, context)

    def _connect_to(self, deployment: str, queue: str) -> tuple[QueueContext, HandlerRunner]:
        context = (self._connect_elsewhere or connect)(deployment, queue)
        of = {kind: Handler(queue=queue, kind=kind, call=call, once=self._once) for kind, call in self._calls.items()}
        handlers = Handlers(queue=queue, by_kind=of)
        runner = HandlerRunner(handlers, context, callbacks=self._callbacks, trace=otel.handling, jitter=random.random)
        return context, runner


def connect(deployment: str, queue: str) -> QueueContext:
    """Return the connection to a queue."""
    from dueline.aws.worker_deployment import WorkerDeployment
    from dueline.worker.log import log

    return WorkerDeployment(deployment).connect(queue, report=log)


class _EventBatch:
    """The records of an event, in order; `_actions` has what to do with those that are prepared, by message id."""

    def __init__(
        self, records: Sequence[SQSRecord], *, level: int, context: QueueContext, runner: HandlerRunner
    ) -> None:
        # Cancellations are read a hundred at a time, so that those of the last jobs are fresh when these run.
        self._unprepared = batches(records, size=lambda _: 0, most=READ_KEYS)
        self._level, self._context, self._runner = level, context, runner
        self._actions: dict[str, Callable[[], None]] = {}
        self._unread: dict[JobId, DuelineError] = {}

    def process(self, record: SQSRecord) -> None:
        """Process one job. Raises NotDone when SQS is to deliver it again, and what sending a dead letter raises."""
        while record.message_id not in self._actions:
            self._prepare_next()
        self._actions[record.message_id]()

    def _prepare_next(self) -> None:
        records = next(self._unprepared)
        try:
            self._prepare(records)
        except Exception as fault:
            # Whatever it is: these are delivered again, and later ones are prepared in their turn.
            self._context.report_error(fault)
            self._actions |= {record.message_id: partial(_fail, text_of(fault)) for record in records}

    def _prepare(self, records: Sequence[SQSRecord]) -> None:
        now = self._context.clock.monotonic()
        claims = [_claim(record, self._level, now) for record in records]
        prepared = prepare(claims, self._context, look=self._cancelled_among)
        decided = [(each, partial(self._run, each)) for each in prepared.ready]
        decided += [(each.received, partial(self._bury, each)) for each in prepared.dead]
        decided += [(each, partial(self._context.report, each.event(EventKind.SKIPPED))) for each in prepared.cancelled]
        self._actions |= {received.claim.arrival.message_id: action for received, action in decided}

    def _cancelled_among(self, ids: Iterable[JobId], *, table: Table) -> set[JobId]:
        cancellations = cancellations_of(ids, table=table)
        self._unread |= cancellations.unread
        for fault in set(cancellations.unread.values()):
            self._context.report_error(fault)
        return cancellations.cancelled

    def _run(self, received: ReceivedMessage) -> None:
        if received.job_id and received.job_id in self._unread:
            raise NotDone(str(self._unread[received.job_id]))
        self._context.clock.sleep(seconds_until_due(received, self._context))
        match self._runner.run(received):
            case RetryLater(seconds=seconds, error=error):
                self._hide(received, seconds)
                raise NotDone(error)
            case DeadLettered() as dead:
                DeadLetter(received=received, dead=dead).send(self._context.dead_letters)
            case Deferred(error=error):
                raise NotDone(error)

    def _hide(self, received: ReceivedMessage, seconds: int) -> None:
        """Hide a job for so long. If SQS refuses three times, report it: the job waits for the visibility timeout."""
        inbox = self._context.levels[received.claim.level]
        fault: Exception = NotDone()
        for attempt in range(_HIDE_ATTEMPTS):
            time.sleep(attempt * _RETRY_SECONDS)
            try:
                refusals = inbox.hide([received.claim.arrival.receipt], [seconds])
            except RETRYABLE as error:
                fault = error
                continue
            if not refusals:
                return
            fault = Unavailable(refusals[0].reason)
            if refusals[0].final:
                break
        what = f"it comes after the visibility_timeout of its queue, and not after {seconds} s"
        self._context.report(received.trouble(fault, what))

    def _bury(self, dead_letter: DeadLetter) -> None:
        """Report and bury what no handler was called with, of which its runner has reported nothing."""
        self._context.report(dead_letter.event())
        dead_letter.send(self._context.dead_letters)


def _fail(why: str) -> None:
    raise NotDone(why)


@overload
def lambda_handler(
    call: Function | Mapping[str | None, Function],
    *,
    once: bool = False,
    on_error: Callback | None = None,
    on_dead: Callback | None = None,
) -> Consumer: ...


@overload
def lambda_handler(
    *, once: bool = False, on_error: Callback | None = None, on_dead: Callback | None = None
) -> Callable[[Function], Consumer]: ...


def lambda_handler(
    call: Function | Mapping[str | None, Function] | None = None,
    *,
    once: bool = False,
    on_error: Callback | None = None,
    on_dead: Callback | None = None,
) -> Consumer | Callable[[Function], Consumer]:
    """Decorate a function that processes one job: it becomes the handler of a Lambda function.

    Or call it with the function of each kind; that of None takes the jobs that no other takes:
    `handler = lambda_handler({"welcome": welcome, "digest": digest, None: send})`.
    A function returns or raises as that of a `Worker` does; `once`, `on_error` and `on_dead` mean the same. The
    decorator takes these alone, or no arguments. The event source mapping needs `ReportBatchItemFailures`, the
    function's role the queue's consumer policy. Pause and rate have no effect: Lambda receives the messages by itself.
    """

    def consumer(calls: Mapping[str | None, Function]) -> Consumer:
        with blamed_on_caller():
            return Consumer(calls, once=once, callbacks=callbacks)

    with blamed_on_caller():
        callbacks = Callbacks(on_error=on_error, on_dead=on_dead)
    if call is None:
        return lambda decorated: consumer({None: decorated})
    return consumer(call if isinstance(call, Mapping) else {None: call})


def address_of(arn: str) -> tuple[str, str, int]:
    """Return the deployment, the queue and the level, from 0, that the ARN of an SQS queue names. Raises ValueError."""
    match = _ARN.fullmatch(arn)
    if match is None:
        raise ValueError(f"the event is of {arn!r}: it must be of a queue of Dueline, named {{deployment}}_{{queue}}")
    return match["deployment"], match["queue"], int(match["priority"] or 1) - 1


def _claim(record: SQSRecord, level: int, now: float) -> Claim:
    attributes = from_lambda_event(record.raw_event.get("messageAttributes", {}))
    system = record.raw_event["attributes"]
    arrival = QueueMessage(
        message=Message(body=record.body, attributes=attributes),
        message_id=record.message_id,
        receipt=record.receipt_handle,
        receives=int(system["ApproximateReceiveCount"]),
        sent=datetime.fromtimestamp(int(system["SentTimestamp"]) / 1000, UTC),
    )
    # Lambda itself sees to it that no other call gets the record while the function runs.
    return Claim(arrival=arrival, level=level, received=now, visible=math.inf)
