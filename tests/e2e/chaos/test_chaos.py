"""Short forms of the scenarios, on one deployment; in full: `python -m tests.e2e.chaos --help`."""

from collections.abc import Iterator

import pytest

from dueline.aws import dynamodb
from tests.e2e.chaos import killed_functions, schedules, workers
from tests.e2e.chaos.deployment import Deployment, deployed
from tests.e2e.chaos.kills import TICK, step_of
from tests.e2e.chaos.proxy import PROC, Exchange, Sender

pytestmark = pytest.mark.skipif(not PROC.exists(), reason="only Linux says when a process is dead")
KILLS = killed_functions.Plan(kills=7, jobs=60, seconds=4, spread=3, seed=3)
SCHEDULES = schedules.Plan(schedules=7, changes=14, kills=6, seconds=5, lead=(20, 26), tail=6, seed=5)
WORKER_JOBS = 100


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(tmp_path_factory.mktemp("chaos")) as running:
        yield running


def test_killed_functions_keep_the_promises(deployment: Deployment) -> None:
    """No job is lost, early, delivered after a 200, or twice without a cause."""
    report = killed_functions.run(KILLS, deployment)
    assert not report.complaints, str(report)


def test_schedules_keep_the_promises_under_kills(deployment: Deployment) -> None:
    """Each run of a schedule comes once, none after a cut, and no schedule dies."""
    report = schedules.run(SCHEDULES, deployment)
    assert not report.complaints, str(report)


def test_killed_workers_keep_the_promises(deployment: Deployment) -> None:
    """Every job has its effect once, is cancelled, or is a dead letter with its own error."""
    report = workers.run(deployment, jobs=WORKER_JOBS, seed=1)
    assert not report.complaints, str(report)


@pytest.mark.parametrize(
    ("update", "step"),
    [
        (dynamodb.TAKE, "acquire the lease"),
        (dynamodb.RENEW, "checkpoint"),
        (dynamodb.RELEASE, "checkpoint"),
        (dynamodb.TOUCH, "read what a move did"),
        (dynamodb.MARK_EXACT, "note a promise"),
        (dynamodb.MARK_DONE, "note that a key is done"),
        (dynamodb.PLAN, "note what is planned"),
    ],
)
def test_each_update_is_a_step(update: dynamodb.Update, step: str) -> None:
    body = f'{{"Key": {{"sk": {{"S": "#cancelled"}}}}, "UpdateExpression": "{update.expression}"}}'.encode()
    sender = Sender(function=TICK, pid=0, invocation="")
    assert (
        step_of(Exchange(operation="UpdateItem", body=body, sender=sender, carry=lambda _: pytest.fail("sent"))) == step
    )
