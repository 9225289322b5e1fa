"""While the table throttles, jobs are buffered, and none is lost."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from dueline import Job, NewJob, State
from tests.acceptance.inbox import lateness
from tests.waiting import HANG_SECONDS

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_OnDemandThroughput.html
NO_LIMIT = -1


@contextmanager
def throttled(dynamodb, table):
    """Let the table of jobs take a write a second and no more."""

    def limit_writes(units):
        dynamodb.update_table(TableName=table, OnDemandThroughput={"MaxWriteRequestUnits": units})
        dynamodb.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 2, "MaxAttempts": 150})

    limit_writes(1)
    try:
        yield
    finally:
        limit_writes(NO_LIMIT)


@pytest.mark.aws_only("the local AWS takes whatever it is sent")
def test_throttling_table_has_jobs_buffered(client, names, aws, inbox, figure, table_after):
    flood, due = inbox("flood"), datetime.now(UTC) + timedelta(seconds=table_after + 60)
    with throttled(aws("dynamodb"), names.table):
        results = client.schedule_many("flood", [NewJob(payload=n, at=due) for n in range(3000)])
    jobs = [each for each in results if isinstance(each, Job)]
    assert figure("buffered", sum(job.state is State.ACCEPTED for job in jobs)) > 0
    flood.wait_for(*(job.id for job in jobs), seconds=table_after + 2 * HANG_SECONDS)
    assert figure("early", sum(each < 0 for each in lateness(jobs, flood.landed))) == 0
