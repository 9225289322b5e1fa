"""The jobs of a queue, filtered."""

import re

import pytest
from selenium.webdriver.support.select import Select

from dueline import Job, NewJob, State, Worker
from tests.e2e.deployed import working
from tests.waiting import wait_until


@pytest.fixture
def scheduled(client):
    """Four jobs of two kinds, due in hours."""
    kinds = {"ann": "welcome", "bob": "welcome", "eve": "digest", "dan": "digest"}
    new = [NewJob(payload={"to": name}, delay=7200 + number, kind=kinds[name]) for number, name in enumerate(kinds)]
    jobs = [job for job in client.schedule_many("invoices", new) if isinstance(job, Job)]
    yield jobs
    client.cancel_many([job.id for job in jobs])


def payloads(page):
    return re.findall(r'"to":"(\w+)"', page.text)


def test_filters_stay_in_the_address(page, scheduled):
    page.open("/queues/invoices/jobs")
    page.until(lambda: payloads(page) == ["ann", "bob", "eve", "dan"], "all jobs, in due order")
    page.fill(re.compile("^Kind"), "digest", role="searchbox")
    page.until(lambda: payloads(page) == ["eve", "dan"], "those of the kind")
    page.driver.refresh()
    page.until(lambda: payloads(page) == ["eve", "dan"], "the same after a reload")
    page.open(f"/queues/invoices/jobs?kind=digest&from={scheduled[3].due:%Y-%m-%dT%H:%M:%S}Z")
    page.until(lambda: payloads(page) == ["dan"], "what is due then")


def test_recorded_jobs_are_listed_by_state_and_kind(page, client, dead_job):
    worker = Worker("e2e")
    worker.job("reminders", kind="welcome")(lambda _: None)
    done = client.schedule("reminders", {"to": "ann"}, kind="welcome")
    with working(worker):
        assert wait_until(lambda: client.get(done.id).state is State.SUCCEEDED)
    page.open("/queues/reminders/jobs")
    Select(page.see("combobox", "State")).select_by_visible_text("failed")
    page.see("row", re.compile(f"failed {uid(dead_job)} 1 .* LookupError$"))
    assert (page.path, page.all("row", re.compile(uid(done)))) == ("/queues/reminders/jobs?state=failed", [])
    Select(page.see("combobox", "State")).select_by_visible_text("all that workers received")
    page.see("row", re.compile(f"failed {uid(dead_job)} 1 "))
    page.see("row", re.compile(f"succeeded {uid(done)} welcome 1 "))
    page.fill(re.compile("^Kind"), "welcome", role="searchbox")
    page.until(lambda: not page.all("row", re.compile(uid(dead_job))), "those of the kind alone")
    page.see("row", re.compile(f"succeeded {uid(done)} welcome 1 "))
    page.open("/queues/invoices/jobs?state=failed")
    page.says("track of queue invoices is false: it must be true")


def uid(job):
    return job.id.rpartition(".")[2][:8]
