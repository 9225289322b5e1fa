"""Process jobs in a Lambda function whose event source is a queue of Dueline."""

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, overload

from dueline.core.job import check_kind
from dueline.core.message import Message, from_lambda_event
from dueline.core.ports import READ_KEYS, QueueMessage, cut
from dueline.errors import Unavailable
from dueline.worker.delivery import DeadLettered, Deferred, JobVerdict, ReceivedJob, ReceivedMessage, RetryLater
from dueline.worker.execution import Callback, Callbacks, HandlerRunner
from dueline.worker.handlers import Handler, Handlers, blamed_on_caller, check_function
from dueline.worker.log import log
from dueline.worker.queue_context import QueueContext
from dueline.worker.receiving import prepare, seconds_until_due

_ARN = re.compile(r"arn:[^:]+:sqs:[^:]+:\d+:(?P<deployment>[^_:]+)_(?P<queue>[^_:]+?)(_p(?P<priority>\d))?")

Function = Callable[[ReceivedJob], Any]
# From the names of a deployment and a queue.
Connect = Callable[[str, str], QueueContext]


class Consumer:
    """A Lambda handler: it calls the function of its kind once for each job of an event.

    Each job succeeds or fails alone. Each event names its queue. A job that is retried waits as the queue's retry
    policy says.
    """

    def __init__(
        self, calls: Mapping[str | None, Function], *, once: bool, callbacks: Callbacks, connect: Connect | None = None
    ) -> None:
        if not calls:
            raise ValueError("the handlers are {}: there must be a function of a kind, or of None for all others")
        for kind, call in calls.items():
            check_kind(kind)
            check_function(call)
        self._calls, self._once, self._callbacks = dict(calls), once, callbacks
        self._connect_to, self._connect = connect, cache(self._processor)

    @property
    def function(self) -> Function:
        """The plain function that was decorated, to be called with a job of a test's own."""
        if len(self._calls) > 1:
            raise AttributeError(f"it has {len(self._calls)} functions, one of each kind: call the one that is meant")
        return next(iter(self._calls.values()))

    def connected(self, connect: Connect) -> "Consumer":
        """Return the same handler over other queues than those on AWS."""
        return Consumer(self._calls, once=self._once, callbacks=self._callbacks, connect=connect)

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Process an event; return the records that SQS is to deliver again. There may be up to 10,000 in one event."""
        records = event["Records"]
        deployment, queue, level = address_of(records[0]["eventSourceARN"])
        processor = self._connect(deployment, queue)
        now = processor.context.clock.monotonic()
        received = [_received(record, queue, level, now) for record in records]
        # Cancellations are read a hundred at a time, so that those of the last jobs are fresh when these run.
        again = [each for some in cut(received, READ_KEYS) for each in processor.process(some)]
        return {"batchItemFailures": [{"itemIdentifier": each.arrival.message_id} for each in again]}

    def _processor(self, deployment: str, queue: str) -> "SequentialProcessor":
        context = (self._connect_to or connect)(deployment, queue)
        of = {kind: Handler(queue=queue, kind=kind, call=call, once=self._once) for kind, call in self._calls.items()}
        handlers = Handlers(queue=queue, by_kind=of)
        return SequentialProcessor(HandlerRunner(handlers, context, callbacks=self._callbacks, jitter=random.random))


def connect(deployment: str, queue: str) -> QueueContext:
    """Return the connection to a queue."""
    from dueline.aws.worker_deployment import WorkerDeployment

    return WorkerDeployment(deployment).connect(queue, report=log)


class SequentialProcessor:
    """Processes received messages one after another, in the caller's thread."""

    def __init__(self, runner: HandlerRunner) -> None:
        self.context, self._runner = runner.context, runner

    def process(self, batch: Sequence[ReceivedMessage]) -> list[ReceivedMessage]:
        """Return the messages that SQS is to deliver again."""
        try:
            prepare(batch, self.context)
        except Exception as fault:
            # Whatever it is: these are delivered again, and later ones are prepared in their turn.
            self.context.report_error(fault)
            return list(batch)
        return [each for each in batch if not each.cancelled and not self._is_done(each)]

    def _is_done(self, received: ReceivedMessage) -> bool:
        """Process one job; return whether its message is done with."""
        try:
            verdict = received.dead or self._run(received)
            if isinstance(verdict, DeadLettered):
                received.send_dead_letter(verdict, self.context.dead_letters)
        except Exception as fault:
            self.context.report(received.trouble(fault, "it is delivered again"))
            return False
        if isinstance(verdict, RetryLater):
            self._hide(received, verdict.seconds)
        return not isinstance(verdict, RetryLater | Deferred)

    def _run(self, received: ReceivedMessage) -> JobVerdict:
        self.context.clock.sleep(seconds_until_due(received, self.context))
        return self._runner.run(received)

    def _hide(self, received: ReceivedMessage, seconds: int) -> None:
        """Hide a job for so long. If SQS refuses, report it: the job waits for the visibility timeout."""
        try:
            refusals = self.context.levels[received.level].hide([received.arrival.receipt], [seconds])
            if refusals:
                raise Unavailable(refusals[0].reason)
        except Exception as fault:
            # Whatever it is: other records of the event are done.
            what = f"it comes after the visibility_timeout of its queue, and not after {seconds} s"
            self.context.report(received.trouble(fault, what))


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


def _received(record: dict[str, Any], queue: str, level: int, now: float) -> ReceivedMessage:
    system = record["attributes"]
    arrival = QueueMessage(
        message=Message(body=record["body"], attributes=from_lambda_event(record.get("messageAttributes", {}))),
        message_id=record["messageId"],
        receipt=record["receiptHandle"],
        receives=int(system["ApproximateReceiveCount"]),
        sent=datetime.fromtimestamp(int(system["SentTimestamp"]) / 1000, UTC),
    )
    # Lambda itself sees to it that no other call gets the record while the function runs.
    return ReceivedMessage(queue=queue, arrival=arrival, level=level, received=now, visible=math.inf)
