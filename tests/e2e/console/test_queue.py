"""One queue: what is due, its last hours and its settings."""

import re
from datetime import UTC, datetime, timedelta

from dueline import Client, NewJob
from dueline.config import metrics
from local.emulator import Emulator
from tests.e2e.console.figures import put_figures
from tests.e2e.console.page import Page


def test_due_jobs_have_a_chart_and_a_table(page: Page, client: Client) -> None:
    at = (datetime.now(UTC) + timedelta(hours=2)).replace(second=30, microsecond=0)
    times = [at, at, at, at + timedelta(minutes=5)]
    jobs = client.schedule_many("reminders", [NewJob(payload="due", at=each) for each in times])
    page.open("/queues/reminders?hours=3")
    page.see("heading", "Due in the next 3 hours")
    page.says(re.compile(r"\b\d jobs\."))
    page.click("DisclosureTriangle", re.compile("^As a table.* Due in the next 3 hours"))
    page.see("row", re.compile(r"\d\d:\d\d 3$"))
    page.click("link", "1 h")
    page.see("heading", "Due in the next hour")
    assert page.path == "/queues/reminders?hours=1"
    assert client.cancel_many([job.id for job in jobs if not isinstance(job, Exception)])


def test_files_of_the_page_are_loaded_once(page: Page) -> None:
    sizes = """
        const files = performance.getEntriesByType("resource").filter(({name}) => /\\.(js|css)$/.test(name));
        return files.map(({transferSize}) => transferSize);
    """
    page.open("/queues/emails")
    page.open("/queues/invoices")
    page.says("Settings")
    loaded = page.driver.execute_script(sizes)
    assert len(loaded) > 15
    assert set(loaded) == {0}


def test_lateness_and_throughput_are_drawn(page: Page, emulator: Emulator) -> None:
    page.open("/queues/webhooks")
    page.says("No tick reported a late job.", "queues.yaml", "Retention", "7 d")
    values = {metrics.LATENESS: 125.0, metrics.DISPATCHED: 40, metrics.ON_TIME: 39, metrics.DELAYED: 1}
    put_figures(emulator, "console", [(timedelta(minutes=20), {"queue": "webhooks", **values})])
    page.open("/queues/webhooks")
    page.says("At worst 2 min 5 s", "40 jobs dispatched", "97.50 % on time")
