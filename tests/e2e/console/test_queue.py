"""One queue: what is coming, how it was, and what it is set to."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from dueline import Client, NewJob
from dueline.config import metrics
from local.emulator import Emulator
from tests.e2e.console.page import Page


def test_what_is_due_is_a_timeline_and_a_table_that_lead_to_the_jobs(page: Page, client: Client) -> None:
    at = (datetime.now(UTC) + timedelta(hours=2)).replace(second=30, microsecond=0)
    times = [at, at, at, at + timedelta(minutes=5)]
    jobs = client.schedule_many("reminders", [NewJob(payload="due", at=each) for each in times])
    page.open("/queues/reminders?hours=3")
    page.see("heading", "Due in the next 3 hours")
    page.says(re.compile(r"\b\d jobs\."))
    page.click("DisclosureTriangle", re.compile("^As a table.* Due in the next 3 hours"))
    page.see("row", re.compile(r"\d\d:\d\d 3$"))
    page.click("link", "1 h")
    page.see("heading", "Due in the next 1 hour")
    assert page.path == "/queues/reminders?hours=1"
    assert client.cancel_many([job.id for job in jobs if not isinstance(job, Exception)])


def test_a_further_view_loads_none_of_the_page_s_files_again(page: Page) -> None:
    sizes = """
        const files = performance.getEntriesByType("resource").filter(({name}) => /\\.(js|css)$/.test(name));
        return files.map(({transferSize}) => transferSize);
    """
    page.open("/queues/emails")
    page.open("/queues/invoices")
    page.says("Settings")
    told = page.driver.execute_script(sizes)
    assert len(told) > 20
    assert set(told) == {0}


def test_its_levels_and_settings_are_told_and_where_they_come_from(page: Page) -> None:
    page.open("/queues/invoices")
    page.says("Settings", "queues.yaml", "Retention", "7 d", "Tracking")


def test_lateness_and_throughput_are_drawn_or_it_is_said_why_not(page: Page, emulator: Emulator) -> None:
    page.open("/queues/webhooks")
    page.says("Lateness and throughput of the last hours are not known", "CloudWatch")
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    told = {metrics.LATENESS: 125.0, metrics.DISPATCHED: 40.0, metrics.ON_TIME: 39.0, metrics.DELAYED: 1.0}
    report(emulator, "webhooks", told, at=now - timedelta(minutes=20))
    page.open("/queues/webhooks")
    page.says("At worst 2 min 5 s", "40 jobs handed over", "97.50 % on time")


def report(emulator: Emulator, queue: str, told: dict[str, float], *, at: datetime) -> None:
    """Tell CloudWatch what the functions tell it, which the local AWS does not make metrics of."""
    dimensions = [{"Name": name, "Value": value} for name, value in metrics.dimensions("console", queue).items()]
    data: list[dict[str, Any]] = [
        {"MetricName": name, "Dimensions": dimensions, "Timestamp": at, "Value": value} for name, value in told.items()
    ]
    emulator.client("cloudwatch").put_metric_data(Namespace=metrics.NAMESPACE, MetricData=data)
