"""Short forms of the scenarios, on one deployment; in full: `python -m tests.e2e.chaos --help`."""

from functools import partial

import pytest

from tests.e2e.chaos import functions, schedules, workers
from tests.e2e.chaos.deployment import deployed
from tests.e2e.chaos.proxy import PROC

pytestmark = pytest.mark.skipif(not PROC.exists(), reason="only Linux says when a process is dead")
KILLS = functions.Plan(kills=6, promises=1, jobs=60, seconds=4, spread=3, seed=3)
NETWORK_FAULTS = functions.Plan(of_each=1, promises=1, jobs=60, seconds=4, spread=3, seed=3)
SCHEDULES = schedules.Plan(schedules=7, changes=14, kills=6, seconds=5, lead=(20, 26), tail=6, seed=5)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    with deployed(tmp_path_factory.mktemp("chaos")) as running:
        yield running


@pytest.mark.parametrize(
    "scenario",
    [
        # No job is lost, early, delivered after a 200, or twice without a cause, and nothing is parked, while processes
        # are killed, while the table, then SQS, throttle, and while other requests go wrong.
        pytest.param(partial(functions.run, KILLS), id="kills"),
        pytest.param(partial(functions.run, NETWORK_FAULTS), id="network faults"),
        # Each run of a schedule comes once, none after a cut, and no schedule dies.
        pytest.param(partial(schedules.run, SCHEDULES), id="schedules"),
        # Every job has its effect once, is cancelled, or is a dead letter with its own error.
        pytest.param(partial(workers.run, jobs=100, seed=1), id="workers"),
    ],
)
def test_promises_are_kept(deployment, scenario):
    report = scenario(deployment)
    assert not report.complaints, str(report)
