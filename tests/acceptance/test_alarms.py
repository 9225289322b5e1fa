"""Each alarm rings when it must, and falls silent when that is over: all of them are waited for together."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dueline import Client, DuelineError, NewJob
from dueline.config import metrics
from dueline.config.names import Names
from tests.acceptance.alarms import BY_FIGURE, BY_SILENCE, GROWING, ON_DEAD_LETTERS, ON_FAULTS, on_what
from tests.acceptance.conftest import Figure
from tests.acceptance.faults import Faults
from tests.acceptance.inbox import jobs_of
from tests.acceptance.sandbox import queue_names
from tests.acceptance.test_settings import alarms_of

Aws = Callable[[str], Any]
# CloudWatch has SQS's metrics a minute or two later, of a queue that nobody used for hours up to 15 minutes later:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/monitoring-using-cloudwatch.html
RINGS_WITHIN, SILENT_WITHIN = timedelta(minutes=20), timedelta(minutes=35)
# Two periods of five minutes that miss ticks, and one more that had started.
WITHOUT_TICKS = timedelta(minutes=16)
# A period of five minutes has it for certain.
FAULTY = timedelta(minutes=2)


class Alarms:
    """Which alarms rang until now, and which are silent."""

    def __init__(self, names: Names, aws: Aws) -> None:
        self._names, self._aws = names, aws
        self.rang, self.states = set[str](), dict[str, str]()
        self.look()

    def look(self) -> None:
        alarms = (
            (on_what(each["AlarmName"], self._names), each["StateValue"]) for each in alarms_of(self._names, self._aws)
        )
        self.states = {on: state for on, state in alarms if on}
        self.rang |= {on for on, state in self.states.items() if state == "ALARM"}
        self.rang |= {on for on in BY_SILENCE if self.states.get(on) == "INSUFFICIENT_DATA"}

    def wait(self, until: datetime, done: Callable[[], bool]) -> None:
        while not done() and datetime.now(UTC) < until:
            time.sleep(10)
            self.look()


def dead_letter_urls(aws: Aws) -> list[str]:
    names = [each for each in queue_names() if each.endswith(("-dlq", "_dlq"))]
    return [aws("sqs").get_queue_url(QueueName=each)["QueueUrl"] for each in names]


def repeat_for(duration: timedelta, call: Callable[[], object]) -> None:
    until = time.monotonic() + duration.total_seconds()
    while time.monotonic() < until:
        with suppress(DuelineError):
            call()
        time.sleep(1)


def let_ingest_wait(client: Client) -> None:
    """Move a job to now, in a queue that has its ticks: ingest is sent it by the inbound queue."""
    # SQS reports the age of no message that was received more than three times: so there are several, in turn.
    (job,) = jobs_of(client.schedule_many("moved", [NewJob(payload=1, delay=1200)]))
    with suppress(DuelineError):
        client.reschedule(job.id, delay=0)


@pytest.mark.aws_only("the local AWS does not evaluate alarms by itself")
def test_alarms_ring_and_fall_silent(
    client: Client, names: Names, aws: Aws, figure: Figure, table_after: float
) -> None:
    alarms, faults, now = Alarms(names, aws), Faults(names, aws), datetime.now(UTC)
    on_dead_letters = {each for each in alarms.states if ON_DEAD_LETTERS in each}
    data = [each for by in BY_FIGURE.values() for each in by.data(names.deployment, now=now)]
    for first in range(0, len(data), 1000):
        aws("cloudwatch").put_metric_data(Namespace=metrics.NAMESPACE, MetricData=data[first : first + 1000])
    for url in dead_letter_urls(aws):
        aws("sqs").send_message(QueueUrl=url, MessageBody="this alarm is to ring")
    far = jobs_of(client.schedule_many("plain", [NewJob(payload=n, delay=86_400) for n in range(500)]))
    with faults.schedule_off("plain"):
        until = now + WITHOUT_TICKS
        # Its jobs are due before its ticks are back, so that the first of these shows how late they are.
        jobs_of(client.schedule_many("plain", [NewJob(payload=1, delay=table_after)]))
        for function in ("api", "ingest", "planner", "tick"):
            invoke(aws, names, function)
        with faults.stopped("ingest"):
            break_functions(client, names, aws, faults, iter([job.id for job in far]))
            alarms.wait(until, lambda: False)
    # Those on growth ring for what comes besides what is there.
    for url in dead_letter_urls(aws):
        aws("sqs").send_message(QueueUrl=url, MessageBody="and this one, for it grows")
    expected = {*ON_FAULTS, *BY_FIGURE, *on_dead_letters}
    alarms.wait(datetime.now(UTC) + RINGS_WITHIN, lambda: expected <= alarms.rang)
    for url in dead_letter_urls(aws):
        empty(aws("sqs"), url)
    alarms.wait(datetime.now(UTC) + SILENT_WITHIN, lambda: {alarms.states.get(on) for on in expected} == {"OK"})
    assert any(GROWING in each for each in on_dead_letters)
    never_silent = sorted(on for on in expected if alarms.states.get(on) != "OK")
    assert figure("alarms", len(expected)) > 0
    assert (sorted(expected - alarms.rang), never_silent) == ([], [])


def break_functions(client: Client, names: Names, aws: Aws, faults: Faults, far: Any) -> None:
    """Break one function after another for two minutes; what waits for ingest is sent in between."""
    let_ingest_wait(client)
    # A submission would be buffered in the inbound queue, and be no fault: a cancel must be written.
    with faults.table_denied("api"):
        repeat_for(FAULTY, lambda: client.cancel(next(far)))
    let_ingest_wait(client)
    with faults.stopped("api"):
        repeat_for(FAULTY, lambda: client.queue("plain"))
    let_ingest_wait(client)
    # Lambda tries what it was sent asynchronously, as by schedules, again and again: an alarm needs throttles at once.
    with faults.stopped("tick"), faults.schedules_hidden():
        repeat_for(FAULTY, lambda: (invoke(aws, names, "tick"), invoke(aws, names, "ttl")))


def invoke(aws: Aws, names: Names, function: str) -> None:
    """Invoke a function, and wait for its answer, with what it cannot read, or while it cannot do its work."""
    functions = aws("lambda")
    with suppress(functions.exceptions.TooManyRequestsException):
        functions.invoke(FunctionName=names.function(function), Payload=json.dumps({}).encode())


def empty(sqs: Any, url: str) -> None:
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", []):
        for each in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
