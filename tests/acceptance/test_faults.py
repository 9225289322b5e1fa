"""What Dueline rests on is broken for minutes, and whole again; nothing that was accepted is lost."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

import pytest

from dueline import Client, Job, NewJob, State
from dueline.config.names import Names
from tests.acceptance.conftest import Aws, Figure
from tests.acceptance.faults import Faults
from tests.acceptance.inbox import Inbox, lateness, percentile
from tests.waiting import HANG_SECONDS

Break = Callable[[Faults], AbstractContextManager[None]]


@pytest.mark.aws_only("simulation and kills show it locally, in less time")
@pytest.mark.parametrize(
    ("broken", "minutes"),
    [
        pytest.param(lambda faults: faults.stopped("tick"), 2, id="ticks throttled"),
        pytest.param(lambda faults: faults.table_denied("api", "ingest"), 5, id="table denied"),
    ],
)
def test_nothing_is_lost_meanwhile(
    client: Client,
    names: Names,
    aws: Aws,
    inbox: Callable[..., Inbox],
    figure: Figure,
    table_after: float,
    broken: Break,
    minutes: int,
) -> None:
    plain = inbox("plain")
    at = datetime.now(UTC) + timedelta(seconds=table_after)
    jobs = client.schedule_many("plain", [NewJob(payload=n, at=at) for n in range(5)])
    with broken(Faults(names, aws)):
        until = time.monotonic() + 60 * minutes
        while time.monotonic() < until:
            jobs += client.schedule_many("plain", [NewJob(payload="meanwhile", delay=table_after)])
            time.sleep(2)
    accepted = [job for job in jobs if isinstance(job, Job)]
    figure("refused, and their callers informed", len(jobs) - len(accepted))
    plain.wait_for(*(job.id for job in accepted), seconds=60 * minutes + table_after + HANG_SECONDS)
    late = lateness(accepted, plain.landed)
    assert figure("early", sum(each < 0 for each in late)) == 0
    figure("latest, s", percentile(late, 100))
    assert len(accepted) > 5


@pytest.mark.aws_only("the local AWS takes whatever it is sent")
def test_throttling_table_has_jobs_buffered(
    client: Client, names: Names, aws: Aws, inbox: Callable[..., Inbox], figure: Figure, table_after: float
) -> None:
    flood, due = inbox("flood"), datetime.now(UTC) + timedelta(seconds=table_after + 60)
    with Faults(names, aws).table_throttled():
        results = client.schedule_many("flood", [NewJob(payload=n, at=due) for n in range(3000)])
    jobs = [each for each in results if isinstance(each, Job)]
    assert figure("buffered", sum(job.state is State.ACCEPTED for job in jobs)) > 0
    flood.wait_for(*(job.id for job in jobs), seconds=table_after + 2 * HANG_SECONDS)
    assert figure("early", sum(each < 0 for each in lateness(jobs, flood.landed))) == 0
