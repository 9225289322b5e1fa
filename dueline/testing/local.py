"""A deployment in memory for the tests of a service: its clients, its time, and what became of its jobs."""

import json
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dueline.aws.direct_api import DirectApi, DirectDeployment
from dueline.client.async_client import AsyncClient
from dueline.client.client import Client
from dueline.client.models import NewJob, ScheduledJob
from dueline.config.deployment import Deployment, load
from dueline.core.cancel import cancelled_among
from dueline.core.job import JobId, Partition, Route, State, StoredJob, queue_name
from dueline.core.message import ATTEMPTS, Message
from dueline.core.overview import read_control
from dueline.core.ports import Pointer, QueueMessage
from dueline.core.queue_settings import MAX_HIDDEN_SECONDS, RetryPolicy
from dueline.core.request import Default, json_text
from dueline.operations.dead_letters import error_of
from dueline.schedules import answers, changes, definition, manual_runs, queries
from dueline.testing.memory_deployment import MemoryDeployment
from dueline.worker.delivery import Event, EventKind, ReceivedJob, ReceivedMessage
from dueline.worker.execution import HandlerRunner
from dueline.worker.lambda_consumer import Consumer, SequentialProcessor
from dueline.worker.runner import event_loop
from dueline.worker.worker import Worker

# What the code under test computes from the machine's clock has come by then: it may run for so long.
_AHEAD = timedelta(minutes=1)
_MOST_STEPS = 10_000
# What a job's attempt ends with.
_ENDS = frozenset({EventKind.SUCCEEDED, EventKind.RETRIED, EventKind.FAILED, EventKind.SKIPPED, EventKind.OVERLAPPED})
# Names, settings by name, or the path of a queues.yaml.
Queues = Sequence[str] | Mapping[str, Mapping[str, Any] | None] | Path


class Local:
    """A deployment in memory: the code that runs on AWS, over a table and queues in memory, in virtual time.

    `queues` are the names of its queues; or their settings by name, as in queues.yaml; or the path of a queues.yaml.
    `client` and `async_client` are what `Client.connect()` and `AsyncClient.connect()` return elsewhere. Time stands
    still until `advance` or `run` moves it. It starts `now`: by default a minute ahead of the machine's clock, so that
    an instant that code under test computes from that has come once as much virtual time has passed. Threads may share
    it, but for `advance` and `run`. `default` is that of `Client.connect`. Raises ConfigurationError for a file, and
    ValueError for settings, that are wrong.
    """

    def __init__(self, queues: Queues, *, now: datetime | None = None, default: Default | None = None) -> None:
        start = datetime.now(UTC).replace(microsecond=0) + _AHEAD if now is None else now
        if start.utcoffset() is None:
            raise ValueError(f"now is {start.isoformat()}: it must have a time zone")
        self._deployment = MemoryDeployment(_config(queues), start=start.astimezone(UTC))
        api = _LocalApi(self._deployment)
        self.client = Client(api, clock=self._deployment.clock, jitter=lambda: 0.5, default=default)
        self.async_client = AsyncClient(self.client)

    @property
    def now(self) -> datetime:
        """The virtual time, in UTC."""
        return self._deployment.clock.now()

    def advance(
        self, *, weeks: float = 0, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> datetime:
        """Move time on by so much, and return what it is then: jobs that come due reach their queues, none is run.

        A job reaches its queue when it is due, where on AWS that may be up to a second later.
        """
        by = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        if by < timedelta(0):
            raise ValueError(f"time is to move by {by}: it never goes back")
        self._deployment.advance_to(self.now + by)
        return self.now

    def scheduled(self, queue: str) -> list[ScheduledJob]:
        """Return the jobs that wait for their time, in order of it, but for those that were cancelled.

        Raises QueueNotFound.
        """
        self._deployment.settle()
        in_sqs = [
            each.message.job()
            for level in self._deployment.levels(queue)
            for each in level.deliveries
            if each.visible > self.now and not each.receives
        ]
        cancelled = cancelled_among([job.id for job in in_sqs], table=self._deployment.table) if in_sqs else set()
        there = [ScheduledJob.of_job(job) for job in in_sqs if job.id not in cancelled]
        jobs = {job.id: job for job in (*self.client.jobs(queue), *there)}
        return sorted(map(self._with_payload, jobs.values()), key=lambda job: (job.due, job.id))

    def sent(self, queue: str) -> list[ScheduledJob]:
        """Return the jobs that have reached their queue, in order, those too that were run or cancelled since.

        Raises QueueNotFound.
        """
        self._deployment.settle()
        deliveries = [each for level in self._deployment.levels(queue) for each in level.history]
        there = sorted((each for each in deliveries if each.visible <= self.now), key=lambda each: each.visible)
        return [self._job_of(each.message, State.DISPATCHED) for each in there]

    def dead(self, queue: str) -> list[ScheduledJob]:
        """Return the jobs in the dead-letter queue, in the order in which they died, with `error` and `attempts`.

        Raises QueueNotFound.
        """
        self._deployment.queue(queue)
        messages = [each.message for each in self._deployment.dead_letter_queue(queue).deliveries]
        return [
            replace(
                self._job_of(message, State.FAILED),
                error=error_of(message),
                attempts=int(message.attributes.get(ATTEMPTS, "0")),
            )
            for message in messages
        ]

    def run(self, worker: Worker) -> list[Event]:
        """Run what is due, and what comes due until the last retry has ended; return the end of each attempt, in order.

        Each has its `kind`, such as `retried` or `failed`, the id of its `job`, its `attempt`, and the `error`, the
        `reason` and the `stack` of one that failed. The worker's schedules are declared first. What handlers raise
        becomes a retry or a dead letter, as it does on AWS. Time moves on to each retry; without any, it stands still.
        A paused queue stays as it is; a rate has no effect. Raises RuntimeError after 10,000 jobs: a handler may
        schedule the next one without end.
        """
        ends, handlers = list[Event](), worker._chosen(None)
        connect = partial(self._deployment.connect, report=partial(_note, ends))
        queues = [each.queue for each in handlers]
        with event_loop() as loop, worker._declaring(self.client.schedules, lambda _: None, queues):
            of: dict[str, Any] = {"loop": loop, "jitter": lambda: 0.5}
            self._run([_QueueRun(worker._runner(each, connect(each.queue), **of)) for each in handlers])
        return ends

    def invoke(self, handler: Consumer, event: dict[str, Any]) -> Any:
        """Return what a Lambda handler returns for an event, such as `sqs_event` makes, of a queue of this deployment.

        Raises QueueNotFound.
        """
        return handler.connected(lambda _, queue: self._deployment.connect(queue, report=lambda _: None))(event, None)

    def _run(self, runs: Sequence["_QueueRun"]) -> None:
        for _ in range(_MOST_STEPS):
            self._deployment.settle()
            if any(run.step() for run in runs):
                continue
            levels = [level for run in runs for level in self._deployment.levels(run.queue)]
            ahead = [each for level in levels for each in level.deliveries if each.visible > self.now]
            if not any(each.receives for each in ahead):
                return
            self._deployment.advance_to(min([*self._deployment.times_ahead(), *(each.visible for each in ahead)]))
        raise RuntimeError(f"after {_MOST_STEPS} jobs some are still due: does a handler schedule the next one?")

    def _job_of(self, message: Message, state: State) -> ScheduledJob:
        return self._with_payload(replace(ScheduledJob.of_job(message.job()), state=state))

    def _with_payload(self, job: ScheduledJob) -> ScheduledJob:
        """Return a job with its payload, wherever that is kept."""
        if job.payload_at is None:
            return job
        text = self._deployment.payloads.read(Pointer(bucket=job.payload_at.bucket, key=job.payload_at.key))
        return replace(job, payload=json.loads(text), payload_at=None)


def _config(queues: Queues) -> Deployment:
    if isinstance(queues, str | Path):
        return load(Path(queues))
    settings = dict(queues) if isinstance(queues, Mapping) else dict.fromkeys(queues)
    return Deployment.model_validate({"queues": settings})


def _note(ends: list[Event], event: Event) -> None:
    """Note how an attempt ended, unless somebody pressed Ctrl-C: handlers run in the main thread here."""
    if event.error == KeyboardInterrupt.__name__:
        raise KeyboardInterrupt
    if event.kind in _ENDS:
        ends.append(event)


class _QueueRun:
    """Runs the jobs of one queue of a worker, one at a time, in the caller's thread."""

    def __init__(self, runner: HandlerRunner) -> None:
        self._context, self.queue = runner.context, runner.context.queue
        self._processor = SequentialProcessor(runner)

    def step(self) -> bool:
        """Run the most urgent job that is due; return whether there was one that may run."""
        if read_control(self.queue, table=self._context.table).is_stopped:
            return False
        now = self._context.clock.monotonic()
        for level, queue in enumerate(self._context.levels):
            # A worker hides a message for as long as its job runs.
            for arrival in queue.receive(most=1, wait=0, hidden=MAX_HIDDEN_SECONDS):
                of: dict[str, Any] = {"queue": self.queue, "level": level, "received": now, "visible": math.inf}
                if not self._processor.process([ReceivedMessage(arrival=arrival, **of)]):
                    queue.delete([arrival.receipt])
                return True
        return False


class _LocalApi(DirectApi):
    """The calls of a direct client, and those about schedules besides, which on AWS only the HTTP API makes."""

    def __init__(self, deployment: MemoryDeployment) -> None:
        self._deployment = deployment
        direct = DirectDeployment(deployed=deployment, published=deployment, settings=deployment.settings())
        super().__init__(lambda: direct, clock=deployment.clock)

    def requester(self) -> Callable[..., dict[str, Any]]:
        return self._request

    def _request(
        self,
        method: str,
        path: str,
        body: str | None = None,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        queue: str | None = None,
    ) -> dict[str, Any]:
        """Answer a request of `client.Schedules`, which has checked it, as the HTTP API does: by a call of the core."""
        url, deployment = urlsplit(path), self._deployment
        _, queue, _, *rest = url.path.strip("/").split("/")
        settings, table, now = deployment.queue(queue), deployment.table, deployment.clock.now()
        change, if_match = changes.Changes(deployment.route()), headers.get("if-match")
        fields = json.loads(body or "{}")
        match [method, *rest]:
            case ["GET"]:
                query = dict(parse_qsl(url.query))
                page = queries.page(queue, table=table, after=query.get("next", ""), limit=int(query["limit"]))
                return answers.page_fields(page, now=now)
            case ["GET", name]:
                return answers.schedule_fields(queries.get(queue, name, table=table), now=now)
            case ["POST", name, "run"]:
                text = json_text(fields["payload"]) if "payload" in fields else None
                runs, key = manual_runs.ManualRuns(deployment.route()), headers.get("idempotency-key")
                return answers.submitted_fields(runs.run_now(queue, name, payload=text, key=key).job)
            case ["PUT", name]:
                changed = change.put(settings, name, definition.Definition.from_dict(fields), if_match=if_match)
            case ["POST", name, "resume"]:
                changed = change.resume(settings, name, if_match=if_match)
            case ["POST", name, "pause"]:
                changed = change.pause(queue, name, if_match=if_match)
            case ["DELETE", name]:
                changed = change.delete(queue, name, if_match=if_match)
            case _:
                raise NotImplementedError(f"{method} {path}: a deployment in memory has no history or backfill")
        deployment.settle()
        return answers.schedule_fields(changed.head, now=now, changed=changed.is_changed)


_ACCOUNT = "123456789012"
_KEPT = timedelta(days=7)


def received_job(
    payload: object = None, *, queue: str = "jobs", attempt: int = 1, due: datetime | None = None, **of: Any
) -> ReceivedJob:
    """Return a job as a handler gets it, in the attempt of that number of ten; by default it is due now.

    The payload becomes JSON and back, as on its way through a queue: a tuple is a list then. `of` are the `key`, the
    `kind`, the `tenant` and the `priority`, as in NewJob; `dataclasses.replace` sets what else there is. Raises
    InvalidJob for what could not be scheduled.
    """
    message = _message(NewJob(payload=payload, at=due, **of), queue=queue)
    arrival = _arrival(message, 1, attempt)
    received = ReceivedMessage(queue=queue, arrival=arrival, level=0, received=0.0, visible=math.inf).read()
    job = received.for_handler(lateness=0.0, max_attempts=RetryPolicy().attempts)
    return replace(job, payload=json.loads(message.body))


def sqs_event(payloads: Iterable[object], *, queue: str = "jobs", attempt: int = 1) -> dict[str, Any]:
    """Return the event with which an SQS queue of Dueline invokes a Lambda function: a record for each payload.

    A NewJob in place of a payload has a kind, a key, a tenant or a priority, too. The records' `messageId` are "1", "2"
    and so on; `attempt` is how often each was received. Raises InvalidJob for what could not be scheduled.
    """
    jobs = [each if isinstance(each, NewJob) else NewJob(payload=each) for each in payloads]
    arrivals = [_arrival(_message(job, queue=queue), number, attempt) for number, job in enumerate(jobs, 1)]
    return event_of(arrivals, name=f"dueline_{queue_name(queue)}")


def event_of(arrivals: Iterable[QueueMessage], *, name: str) -> dict[str, Any]:
    """Return the event of messages from the SQS queue of that name.

    Source: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
    """
    return {"Records": [_record(each, f"arn:aws:sqs:us-east-1:{_ACCOUNT}:{name}") for each in arrivals]}


def _record(arrival: QueueMessage, arn: str) -> dict[str, Any]:
    sent = str(int(arrival.sent.timestamp() * 1000))
    return {
        "messageId": arrival.message_id,
        "receiptHandle": arrival.receipt,
        "body": arrival.message.body,
        "attributes": {
            "ApproximateReceiveCount": str(arrival.receives),
            "ApproximateFirstReceiveTimestamp": sent,
            "SentTimestamp": sent,
            "SenderId": _ACCOUNT,
        },
        "messageAttributes": {
            name: {"dataType": "String", "stringValue": text} for name, text in arrival.message.attributes.items()
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": "us-east-1",
    }


def _message(job: NewJob, *, queue: str) -> Message:
    now = datetime.now(UTC)
    request = job.checked(now=None)
    due = request.at or now + timedelta(seconds=request.delay or 0.0)
    partition = Partition(queue=queue_name(queue), number=0)
    id = (
        JobId.parse(request.id)
        if request.id
        else JobId(partition=partition, route=Route.DIRECT, due=due, uid=str(uuid.uuid4()))
    )
    of: dict[str, Any] = {"key": job.key, "kind": job.kind, "tenant": job.tenant, "priority": job.priority}
    return Message.of(StoredJob(id=id, payload=request.text or "", expires=due + _KEPT, **of))


def _arrival(message: Message, number: int, attempt: int) -> QueueMessage:
    if isinstance(attempt, bool) or not isinstance(attempt, int) or attempt < 1:
        raise ValueError(f"attempt is {attempt!r}: it must be 1 or more, a whole number")
    sent = datetime.now(UTC)
    return QueueMessage(message=message, message_id=str(number), receipt=str(number), receives=attempt, sent=sent)
