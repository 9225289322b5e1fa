"""The jobs of a queue: filtered, scheduled, and many of them cancelled at once."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from dueline import Client, Job, NewJob, State, Worker
from tests.e2e.console.page import Page
from tests.e2e.working import working
from tests.waiting import wait_until


@pytest.fixture
def scheduled(client: Client) -> Iterator[list[Job]]:
    """Four jobs of two tenants, due in hours."""
    tenants = {"ann": "acme", "bob": "acme", "eve": "globex", "dan": "globex"}
    new = [
        NewJob(payload={"campaign": 42 + number % 2, "to": name}, delay=7200 + number, tenant=tenants[name])
        for number, name in enumerate(tenants)
    ]
    jobs = [job for job in client.schedule_many("invoices", new) if isinstance(job, Job)]
    yield jobs
    client.cancel_many([job.id for job in jobs])


def payloads(page: Page) -> list[str]:
    return re.findall(r'"to":"(\w+)"', page.text)


def test_filters_stay_in_the_address(page: Page, scheduled: list[Job]) -> None:
    page.open("/queues/invoices/jobs")
    page.until(lambda: payloads(page) == ["ann", "bob", "eve", "dan"], "all jobs, in due order")
    page.fill(re.compile("^Tenant"), "globex", role="searchbox")
    page.until(lambda: payloads(page) == ["eve", "dan"], "the tenant's")
    page.fill(re.compile("^Field of the payload"), "campaign = 43", role="searchbox")
    page.says("1 of 4 jobs scheduled")
    page.driver.refresh()
    page.until(lambda: payloads(page) == ["dan"], "the same after a reload")
    page.open("/queues/invoices/jobs")
    page.set_time(re.compile("^Due from"), scheduled[2].due)
    page.until(lambda: payloads(page) == ["eve", "dan"], "what is due then")


def test_job_form_needs_a_json_payload(page: Page, client: Client) -> None:
    page.open("/queues/emails/jobs")
    page.click("button", "Schedule a job …")
    page.fill(re.compile("^Payload"), '{"to": ')
    page.click("button", "Schedule")
    page.says("payload is no JSON")
    page.fill(re.compile("^Payload"), '{"to": "scheduled by hand"}')
    page.fill(re.compile("^Delay"), "2h")
    page.fill(re.compile("^Tenant Whose"), "acme")
    page.fill(re.compile("^Key"), "by-hand")
    assert Select(page.see("combobox", "If a job has it")).first_selected_option.text == "keep"
    page.click("button", "Schedule")
    page.says("Scheduled:")
    page.click("button", "Close")
    page.says("scheduled by hand")
    [job] = [job for job in client.jobs("emails") if job.payload == {"to": "scheduled by hand"}]
    assert (job.tenant, job.key) == ("acme", "by-hand")
    assert job.due - datetime.now(UTC) > timedelta(minutes=100)
    client.cancel(job.id)


def test_many_jobs_are_counted_then_cancelled(page: Page, client: Client, scheduled: list[Job]) -> None:
    page.open("/queues/invoices/jobs?tenant=acme")
    page.says("2 of 4 jobs")
    with page.holding("/jobs?"):
        page.click("button", re.compile("^Cancel all that match"))
        page.see("dialog", "Cancel many jobs of invoices?")
        assert page.is_off("Cancel the jobs")
    page.says("those of the tenant acme", "2 jobs of 4 fetched")
    with page.holding("/cancellations"):
        page.click("button", "Cancel 2 jobs")
        page.see("button", "Stop here")
        for _ in range(3):
            page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        assert page.all("button", "Stop here"), "work in progress stays in sight"
    page.says("2 cancelled (200): none will be delivered")
    states = [client.get(job.id).state for job in scheduled]
    assert states == [State.CANCELLED] * 2 + [State.SCHEDULED] * 2


def test_recorded_jobs_are_listed_by_state_and_kind(page: Page, client: Client, dead_job: Job) -> None:
    worker = Worker("console")
    worker.job("reminders", kind="welcome")(lambda _: None)
    done = client.schedule("reminders", {"to": "ann"}, kind="welcome")
    with working(worker):
        assert wait_until(lambda: client.get(done.id).state is State.SUCCEEDED)
    page.open("/queues/reminders/jobs")
    Select(page.see("combobox", "State")).select_by_visible_text("failed")
    page.see("row", re.compile(f"failed {uid(dead_job)} 1 .* LookupError$"))
    assert (page.path, page.all("row", re.compile(uid(done)))) == ("/queues/reminders/jobs?state=failed", [])
    assert page.is_off("Cancel all that match …")
    Select(page.see("combobox", "State")).select_by_visible_text("all that workers received")
    page.see("row", re.compile(f"failed {uid(dead_job)} 1 "))
    page.see("row", re.compile(f"succeeded {uid(done)} welcome 1 "))
    page.fill(re.compile("^Kind"), "welcome", role="searchbox")
    page.until(lambda: not page.all("row", re.compile(uid(dead_job))), "those of the kind alone")
    page.see("row", re.compile(f"succeeded {uid(done)} welcome 1 "))
    page.open("/queues/invoices/jobs")
    page.see("option", "failed (needs track: true)")
    page.open("/queues/invoices/jobs?state=failed")
    page.says("track of queue invoices is false: it must be true")


def uid(job: Job) -> str:
    return job.id.rpartition(".")[2][:8]
