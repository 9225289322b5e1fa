"""Handlers and schedules in a worker's code."""

from datetime import timedelta
from functools import partial

import pytest

import dueline
from dueline.errors import InvalidSchedule, Throttled, Unavailable
from dueline.worker.code_schedules import CodeSchedule, ScheduleSync
from dueline.worker.delivery import EventKind, Retries
from dueline.worker.worker import Worker
from tests.builders import NOW, a_job
from tests.waiting import wait_until
from tests.work import DeclaredSchedules, Events

NINE = "0 9 * * MON-FRI"


def handler_of(worker, schedule, **of_job):
    handlers = worker._chosen(None)[0]
    return handlers.find(a_job(schedule=schedule, scheduled_for=NOW if schedule else None, **of_job))


def test_schedule_function_gets_its_jobs_alone():
    worker = Worker()
    worker.job("emails", once=True, retry=Retries(attempts=2))(lambda job: "the queue's")
    worker.job("emails", kind="welcome")(lambda job: "welcome's")
    worker.schedule("emails", "digest", cron=NINE, zone="Europe/Berlin")(lambda job: "digest's")
    worker.schedule("emails", "report", every=timedelta(minutes=5), payload={"to": "all"})
    worker.schedule("invoices", "report", every=60)(lambda job: "another queue's")
    got = [handler_of(worker, each).call(None) for each in ("digest", "report", "by-hand", None)]
    assert got == ["digest's", *["the queue's"] * 3]
    digest = handler_of(worker, "digest")
    assert (digest.once, digest.retry.attempts) == (True, 2)
    assert handler_of(worker, "digest", kind="welcome").call(None) == "digest's"
    assert handler_of(worker, "another", kind="welcome").call(None) == "welcome's"


@pytest.mark.parametrize(("kind", "named"), [(None, r"\('emails'\)"), ("digest", r"\('emails', kind='digest'\)")])
def test_schedule_is_left_to_a_handler_of_its_kind(kind, named):
    worker = Worker()
    worker.job("emails", kind="welcome")(print)
    worker.schedule("emails", "digest", every=900, kind=kind)
    with pytest.raises(ValueError, match=rf"'digest' of queue 'emails' has no function: .*with @worker\.job{named}"):
        worker._chosen(None)
    worker.job("emails", kind=kind)(lambda job: "its kind's")
    assert handler_of(worker, "digest", kind=kind).call(None) == "its kind's"


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("digest", {"cron": "0 9 * * MON-FRI", "zone": "Mars"}, "zone"),
        ("digest", {"every": 59}, "every"),
        ("digest", {"every": 10**15}, "every is 1000000000000000: it must be from 60 s to 3653 days"),
        ("digest", {"cron": NINE, "overlap": "forbid"}, "overlap"),
        ("digest", {"cron": NINE, "kind": "A"}, "kind is 'A'"),
        ("digest", {"cron": NINE, "payload": {1, 2}}, "payload"),
        ("di#gest", {"cron": NINE}, "name"),
    ],
)
def test_invalid_schedule_is_refused(name, options, reason):
    with pytest.raises(InvalidSchedule, match=reason):
        Worker().schedule("emails", name, **options)


def test_a_name_is_of_one_schedule():
    worker = Worker()
    for queue in ("emails", "invoices"):
        worker.schedule(queue, "digest", cron=NINE)
    with pytest.raises(ValueError, match="is in the code already"):
        worker.schedule("emails", "digest", cron=NINE)


# Handlers


def send_later(job):
    yield


@pytest.mark.parametrize("call", [send_later, partial(send_later)])
def test_generator_function_is_refused(call):
    says = "a generator function, of which nothing would run"
    with pytest.raises(ValueError, match=f"handler of queue 'emails' .*{says}"):
        dueline.Worker().schedule("emails", "digest", every=60)(call)
    with pytest.raises(ValueError, match=f"the handler .*{says}"):
        dueline.lambda_handler(once=True)(call)


# Declared when the worker starts


DAILY = {"cron": "0 9 * * *", "every": None, "zone": "Europe/Berlin", "payload": {"to": "all"}}
DAILY |= {"start": None, "end": None, "count": None, "jitter": 0, "catch_up": "latest", "overlap": "skip"}


@pytest.fixture
def events(monkeypatch):
    monkeypatch.setattr("dueline.worker.code_schedules._RETRY_SECONDS", 0.01)
    return Events()


def declaring(schedules, events, *names):
    code = [CodeSchedule(queue="emails", name=name, arguments=DAILY) for name in names]
    return ScheduleSync(schedules, report=events, jitter=lambda: 0.5).run(code)


def reasons(events, kind):
    return [event.reason for event in events.of(kind)]


def test_schedules_are_declared_once_aws_is_back(events):
    schedules = DeclaredSchedules([Unavailable("away"), Throttled("much")])
    with declaring(schedules, events, "digest", "report"):
        assert wait_until(lambda: len(reasons(events, EventKind.DECLARED)) == 2)
    assert schedules.put_so_far == {"digest": DAILY, "report": DAILY}
    assert [reason.split(":")[0] for reason in reasons(events, EventKind.TROUBLE)] == [
        "schedule digest is not declared yet, and is tried again"
    ] * 2


def test_refused_schedule_ends_the_start(events):
    schedules = DeclaredSchedules([InvalidSchedule("zone is 'Mars'")])
    with pytest.raises(InvalidSchedule, match="Mars"), declaring(schedules, events, "digest"):
        """It does not get here."""


def test_late_refusal_is_reported(events):
    schedules = DeclaredSchedules([Unavailable("away"), InvalidSchedule("zone is 'Mars'")])
    with declaring(schedules, events, "digest"):
        assert wait_until(lambda: len(events.of(EventKind.TROUBLE)) == 2)
    assert reasons(events, EventKind.TROUBLE)[1].endswith("nor is what follows it in the code: zone is 'Mars'")
