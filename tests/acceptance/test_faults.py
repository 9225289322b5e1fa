"""While the table throttles, jobs are buffered, and none is lost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dueline import Client, Job, NewJob, State
from dueline.config.names import Names
from tests.acceptance.conftest import Aws, Figure
from tests.acceptance.inbox import Inbox, lateness
from tests.waiting import HANG_SECONDS

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_OnDemandThroughput.html
NO_LIMIT = -1


@contextmanager
def throttled(dynamodb: Any, table: str) -> Iterator[None]:
    """Let the table of jobs take a write a second and no more."""

    def limit_writes(units: int) -> None:
        dynamodb.update_table(TableName=table, OnDemandThroughput={"MaxWriteRequestUnits": units})
        dynamodb.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 2, "MaxAttempts": 150})

    limit_writes(1)
    try:
        yield
    finally:
        limit_writes(NO_LIMIT)


@pytest.mark.aws_only("the local AWS takes whatever it is sent")
def test_throttling_table_has_jobs_buffered(
    client: Client, names: Names, aws: Aws, inbox: Callable[..., Inbox], figure: Figure, table_after: float
) -> None:
    flood, due = inbox("flood"), datetime.now(UTC) + timedelta(seconds=table_after + 60)
    with throttled(aws("dynamodb"), names.table):
        results = client.schedule_many("flood", [NewJob(payload=n, at=due) for n in range(3000)])
    jobs = [each for each in results if isinstance(each, Job)]
    assert figure("buffered", sum(job.state is State.ACCEPTED for job in jobs)) > 0
    flood.wait_for(*(job.id for job in jobs), seconds=table_after + 2 * HANG_SECONDS)
    assert figure("early", sum(each < 0 for each in lateness(jobs, flood.landed))) == 0
