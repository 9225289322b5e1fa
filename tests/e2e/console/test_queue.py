"""One queue: what is due, and its last hours."""

from datetime import UTC, datetime, timedelta

from dueline import NewJob
from dueline.config import metrics
from tests.e2e.console.figures import put_figures


def test_due_jobs_have_a_chart_and_its_words(page, client):
    at = (datetime.now(UTC) + timedelta(hours=2)).replace(second=30, microsecond=0)
    times = [at, at, at, at + timedelta(minutes=5)]
    jobs = client.schedule_many("webhooks", [NewJob(payload="due", at=each) for each in times])
    page.open("/queues/webhooks")
    page.see("heading", "Due in the next 6 hours")
    page.says("4 jobs. Most at ", ": 3 in a minute.")
    page.until(lambda: page.driver.execute_script("return document.querySelector('canvas').width > 0"), "a chart")
    assert client.cancel_many([job.id for job in jobs if not isinstance(job, Exception)])


def test_lateness_and_throughput_are_drawn(page, emulator):
    page.open("/queues/webhooks")
    page.says("No tick reported a late job.")
    values = {metrics.LATENESS: 125.0, metrics.DISPATCHED: 40, metrics.ON_TIME: 39, metrics.DELAYED: 1}
    put_figures(emulator, "e2e", [(timedelta(minutes=20), {"queue": "webhooks", **values})])
    page.open("/queues/webhooks")
    page.says("At worst 2 min 5 s", "40 jobs dispatched", "97.50 % on time")
