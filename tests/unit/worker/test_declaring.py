"""The schedules in a worker's code, as they are declared when it starts."""

import threading

import pytest

from dueline.errors import InvalidSchedule, Throttled, Unavailable
from dueline.worker.declaring import Declaring
from dueline.worker.scheduled import ScheduledInCode
from dueline.worker.watch.event import Kind
from tests.work import DeclaredSchedules, Events, wait_until

DAILY = {"cron": "0 9 * * *", "every": None, "zone": "Europe/Berlin", "payload": {"to": "all"}}
DAILY |= {"start": None, "end": None, "count": None, "jitter": 0, "catch_up": "latest", "overlap": "skip"}


@pytest.fixture
def events():
    return Events()


def declaring(schedules, events, *names, owner="shop", prune=False):
    code = ScheduledInCode()
    for name in names:
        code.add("emails", name, DAILY)
    parts = {"report": events, "jitter": lambda: 0.0, "owner": owner, "prune": prune}
    return Declaring(scheduled=[("emails", code.of("emails"))], schedules=schedules, **parts)


def told(events, kind):
    return [event.reason for event in events.of(kind)]


def test_each_schedule_in_the_code_is_put_under_its_owner(events):
    schedules = DeclaredSchedules()
    with declaring(schedules, events, "digest", "report").declared():
        assert schedules.put_so_far == {name: {**DAILY, "owner": "shop"} for name in ("digest", "report")}
    assert told(events, Kind.DECLARED) == ["schedules digest, report"]
    assert told(events, Kind.UNDECLARED) == []


@pytest.mark.parametrize("prune", [False, True])
def test_what_its_owner_declared_before_and_is_no_more_in_the_code_is_told_and_pruned_if_that_is_asked(events, prune):
    schedules = DeclaredSchedules(old="shop", theirs="bank", digest="shop")
    with declaring(schedules, events, "digest", prune=prune).declared():
        assert set(schedules.put_so_far) == {"digest", "theirs"} | (set() if prune else {"old"})
    (reason,) = told(events, Kind.UNDECLARED)
    assert "'old' of owner 'shop'" in reason
    assert ("deleted" in reason) is prune


def test_what_another_service_makes_its_own_while_it_prunes_is_left_and_told(events):
    schedules = DeclaredSchedules(old="shop", older="shop")
    schedules.put_by_others = {"old": {"owner": "bank"}}
    with declaring(schedules, events, prune=True).declared():
        assert schedules.put_so_far == {"old": {"owner": "bank"}}
    left, deleted = told(events, Kind.UNDECLARED)
    assert "'old'" in left
    assert "left alone: somebody has just changed it" in left
    assert "'older'" in deleted
    assert "was deleted" in deleted


def test_without_an_owner_nothing_is_looked_for(events):
    schedules = DeclaredSchedules(old="shop")
    with declaring(schedules, events, "digest", owner=None).declared():
        assert schedules.requests == 1


def test_while_aws_is_away_it_works_and_they_are_declared_when_it_is_back(events, monkeypatch):
    monkeypatch.setattr("dueline.worker.declaring._FIRST_WAIT_SECONDS", 0.01)
    schedules = DeclaredSchedules([Unavailable("away"), Throttled("much")])
    with declaring(schedules, events, "digest").declared():
        assert wait_until(lambda: told(events, Kind.DECLARED) == ["schedules digest"])
    assert len(events.of(Kind.TROUBLE)) == 2
    assert all("are tried again" in reason for reason in told(events, Kind.TROUBLE))


def test_one_that_is_refused_ends_the_start_with_the_reason(events):
    schedules = DeclaredSchedules([InvalidSchedule("zone is 'Mars'")])
    with pytest.raises(InvalidSchedule, match="Mars"), declaring(schedules, events, "digest").declared():
        """It does not get here."""


def test_one_that_is_refused_only_later_is_told(events, monkeypatch):
    monkeypatch.setattr("dueline.worker.declaring._FIRST_WAIT_SECONDS", 0.01)
    schedules = DeclaredSchedules([Unavailable("away"), InvalidSchedule("zone is 'Mars'")])
    with declaring(schedules, events, "digest").declared():
        assert wait_until(lambda: len(events.of(Kind.TROUBLE)) == 2)
    assert "not tried again: zone is 'Mars'" in told(events, Kind.TROUBLE)[1]


def test_no_thread_goes_on_when_the_worker_ends(events):
    with declaring(DeclaredSchedules([Unavailable("away")]), events, "digest").declared():
        assert "declare" in {thread.name for thread in threading.enumerate()}
    assert wait_until(lambda: "declare" not in {thread.name for thread in threading.enumerate()})
