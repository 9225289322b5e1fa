"""What is deployed while a worker runs."""

from dataclasses import replace

import pytest

from dueline.errors import Forbidden
from dueline.testing import VirtualClock
from dueline.worker.events import EventKind
from dueline.worker.receiving import Receiver, seconds_until_due
from tests.builders import NOW, a_job, a_message, a_queue
from tests.work import Events, SharedQueue, a_connection, a_received_message


class Deployed:
    """A connection, and what is published of its queue by now."""

    def __init__(self, *levels, **settings):
        self.levels, self.settings = levels or (SharedQueue(),), settings
        self.connection, self.events = replace(self.now(), reload=self.now), Events()

    def now(self):
        return a_connection(*self.levels, clock=VirtualClock(NOW), **self.settings)

    def changed(self, *levels, **settings):
        self.levels, self.settings = levels or self.levels, settings
        self.connection.refresh(self.events)
        return [(event.kind, event.reason) for event in self.events]


def test_another_visibility_timeout_is_applied_and_reported():
    deployed = Deployed(visibility_timeout=60)
    assert deployed.changed(visibility_timeout=5) == [(EventKind.CHANGED, "visibility_timeout is 5, was 60")]
    assert deployed.connection.settings.visibility_timeout == 5


def test_queue_that_becomes_precise_holds_its_jobs():
    deployed = Deployed()
    early = a_received_message(a_job(due=NOW.replace(second=1)))
    assert seconds_until_due(early, deployed.connection) == 0
    deployed.changed(queue=a_queue(precise=True))
    assert seconds_until_due(early, deployed.connection) == 1


def test_new_level_is_polled_and_a_removed_one_is_not():
    one, two = SharedQueue(), SharedQueue()
    deployed = Deployed(one)
    deployed.changed(one, two)
    two.send([a_message()])
    (claim,) = Receiver(deployed.connection, report=Events()).receive(most=1)
    deployed.changed(one)
    assert Receiver(deployed.connection, report=Events()).receive(most=1) == []
    assert two.asked == [("receive", 1)]
    assert deployed.connection.levels[claim.level] is two


def test_settings_that_cannot_be_read_stay_as_they_are():
    deployed = Deployed(visibility_timeout=60)

    def forbidden():
        raise Forbidden("no ssm:GetParameter")

    deployed.connection.reload = forbidden
    reported = [(EventKind.TROUBLE, "its published settings were not applied: no ssm:GetParameter")]
    assert deployed.changed(visibility_timeout=5) == reported
    assert deployed.connection.settings.visibility_timeout == 60


@pytest.mark.parametrize("hidden", [0, 4])
def test_too_short_visibility_timeout_is_not_applied(hidden):
    deployed = Deployed(visibility_timeout=60)
    ((kind, reason),) = deployed.changed(visibility_timeout=hidden)
    assert (kind, f"visibility_timeout of queue emails is {hidden}: for a worker" in reason) == (
        EventKind.TROUBLE,
        True,
    )
    assert deployed.connection.settings.visibility_timeout == 60
