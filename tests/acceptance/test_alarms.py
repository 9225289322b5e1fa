"""Each alarm rings when it must, and falls silent when that is over: all of them are waited for together."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dueline import Client, DuelineError, NewJob
from dueline.config import metrics
from dueline.config.names import Names
from tests.acceptance.alarms import BY_SILENCE, EXPECTED, figures, on_what
from tests.acceptance.conftest import Aws, Figure
from tests.acceptance.faults import Faults
from tests.acceptance.inbox import jobs_of

# CloudWatch has SQS's metrics a minute or two later, of a queue that nobody used for hours up to 15 minutes later:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/monitoring-using-cloudwatch.html
RINGS_WITHIN, SILENT_WITHIN = timedelta(minutes=20), timedelta(minutes=35)
WITHOUT_WATCH = timedelta(minutes=25)
# Two periods have it for certain, of five minutes and of a quarter of an hour.
FAULTY, FAILING = timedelta(minutes=6), timedelta(minutes=17)
FIRINGS = 3


def alarms_of(names: Names, aws: Aws) -> Iterator[Any]:
    pages = aws("cloudwatch").get_paginator("describe_alarms")
    for page in pages.paginate(AlarmNamePrefix=f"{names.deployment}-", AlarmTypes=["MetricAlarm"]):
        yield from page["MetricAlarms"]


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
    client: Client, names: Names, aws: Aws, url_of: Callable[[str], str], figure: Figure, table_after: float
) -> None:
    alarms, faults, now = Alarms(names, aws), Faults(names, aws), datetime.now(UTC)
    data = list(figures(names.deployment, now=now))
    aws("cloudwatch").put_metric_data(Namespace=metrics.NAMESPACE, MetricData=data)
    far = jobs_of(client.schedule_many("plain", [NewJob(payload=n, delay=86_400) for n in range(2000)]))
    with faults.schedule_off("plain"), faults.stopped("watch"):
        # Its jobs are due before its ticks are back, so that the first of these shows how late they are.
        jobs_of(client.schedule_many("plain", [NewJob(payload=1, delay=table_after)]))
        with faults.stopped("ingest"):
            break_functions(client, names, aws, faults, iter([job.id for job in far]))
        for _ in range(FIRINGS):
            aws("sqs").send_message(QueueUrl=url_of(names.tick_dlq), MessageBody="this alarm is to ring")
        alarms.wait(datetime.now(UTC) + WITHOUT_WATCH, lambda: EXPECTED - {"plain Lateness"} <= alarms.rang)
    alarms.wait(datetime.now(UTC) + RINGS_WITHIN, lambda: alarms.rang >= EXPECTED)
    alarms.wait(datetime.now(UTC) + SILENT_WITHIN, lambda: {alarms.states.get(on) for on in EXPECTED} == {"OK"})
    never_silent = sorted(on for on in EXPECTED if alarms.states.get(on) != "OK")
    assert figure("alarms", len(EXPECTED)) > 0
    assert (sorted(EXPECTED - alarms.rang), never_silent) == ([], [])


def break_functions(client: Client, names: Names, aws: Aws, faults: Faults, far: Any) -> None:
    """Break functions for so long that two periods of an alarm have it; what waits for ingest is sent in between."""
    let_ingest_wait(client)
    # A submission would be buffered in the inbound queue, and be no fault: a cancel must be written.
    with faults.table_denied("api"):
        repeat_for(FAULTY, lambda: client.cancel(next(far)))
    let_ingest_wait(client)
    # A tick without a partition fails.
    repeat_for(FAILING, lambda: invoke(aws, names, "tick"))


def invoke(aws: Aws, names: Names, function: str) -> None:
    """Invoke a function, and wait for its answer, with what it cannot read."""
    functions = aws("lambda")
    with suppress(functions.exceptions.TooManyRequestsException):
        functions.invoke(FunctionName=names.function(function), Payload=json.dumps({}).encode())
