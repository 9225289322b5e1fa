"""The schedules in a worker's code, and the functions that process their jobs."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from dueline.errors import InvalidSchedule
from dueline.worker.worker import Worker

NINE = "0 9 * * MON-FRI"


def handled(worker, *schedules):
    """Return which function got a job of each schedule."""
    (handler,) = worker._chosen(None)
    return [handler.call(SimpleNamespace(schedule=schedule, queue="emails")) for schedule in schedules]


def test_schedule_function_gets_its_jobs_alone():
    worker = Worker()
    worker.job("emails", once=True)(lambda job: "the queue's")
    worker.schedule("emails", "digest", cron=NINE, zone="Europe/Berlin")(lambda job: "digest's")
    worker.schedule("emails", "report", every=timedelta(minutes=5), payload={"to": "all"})
    assert handled(worker, "digest", "report", "by-hand", None) == ["digest's", *["the queue's"] * 3]
    assert worker._chosen(["emails"])[0].once


def test_job_without_a_function_fails_and_is_retried():
    worker = Worker()
    worker.schedule("emails", "digest", every=900)(lambda job: "digest's")
    assert handled(worker, "digest") == ["digest's"]
    for schedule in (None, "another"):
        with pytest.raises(LookupError, match=r"add @worker\.job\('emails'\)"):
            handled(worker, schedule)


def test_schedule_without_a_function_ends_the_start():
    worker = Worker()
    worker.job("invoices")(lambda job: None)
    worker.schedule("emails", "digest", cron=NINE)
    with pytest.raises(ValueError, match="schedule 'digest' of queue 'emails' has no function"):
        worker.run()


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("digest", {"cron": "0 9 * * MON-FRI", "zone": "Mars"}, "zone"),
        ("digest", {"every": 59}, "every"),
        ("digest", {"cron": NINE, "overlap": "forbid"}, "overlap"),
        ("digest", {"cron": NINE, "payload": {1, 2}}, "payload"),
        ("di#gest", {"cron": NINE}, "name"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_where_it_stands(name, options, reason):
    with pytest.raises(InvalidSchedule, match=reason):
        Worker().schedule("emails", name, **options)


def test_a_name_is_of_one_schedule():
    worker = Worker()
    worker.schedule("emails", "digest", cron=NINE)
    with pytest.raises(ValueError, match="is in the code already"):
        worker.schedule("emails", "digest", cron=NINE)


def test_nothing_is_pruned_without_an_owner():
    with pytest.raises(ValueError, match="without an owner"):
        Worker(prune=True)
