"""One job: its state and attributes, and the changes of it."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from dueline import State, Worker
from tests.e2e.deployed import working
from tests.waiting import wait_until

PAYLOAD = {"to": "ann", "subject": "hello"}
EVIL = "<script>window.evil = 1</script><img src=x onerror='window.evil = 1'>"


@pytest.fixture
def job(client):
    return client.schedule("emails", PAYLOAD, delay=timedelta(hours=3), tenant="acme")


def open_job(page, job):
    page.open(f"/queues/{job.id.partition('.')[0]}/jobs/{job.id}")
    page.see("heading", re.compile("^Job "))


def test_a_job_is_moved_and_then_run_now(page, client, job):
    open_job(page, job)
    page.click("button", "Reschedule …")
    page.fill(re.compile("^Due after"), "2d")
    page.click("button", "Reschedule")
    page.says("took its place")
    page.click("button", "Close")
    page.says("Moved. It is now")
    assert client.get(job.id).moved_from == job.id
    page.click("link", re.compile("^[0-9a-f]{8}$"))
    page.says("It waits in the table until it is due.")
    assert client.get(page.path.rpartition("/")[2]).due - datetime.now(UTC) > timedelta(days=1, hours=23)
    page.click("button", "Run now …")
    page.click("button", "Run now")
    page.says("took its place")
    page.click("link", re.compile("^[0-9a-f]{8}$"))
    page.says("It was sent to its queue.")
    assert page.is_off("Run now …")


def test_cancel_is_a_promise_before_dispatch(page, client, job):
    open_job(page, job)
    page.says('"subject": "hello"', "acme", "by the table", "It waits in the table until it is due.")
    page.click("button", "Cancel the job …")
    page.says("cannot be brought back")
    page.click("button", "Cancel the job")
    page.says("Cancelled.", "It will not be delivered, guaranteed.")
    assert client.get(job.id).state is State.CANCELLED
    page.is_answered(f"/jobs/{job.id}", 200)

    left = client.schedule("emails", {"to": "bob"})
    open_job(page, left)
    page.click("button", "Cancel the job …")
    page.click("button", "Cancel the job")
    page.says("Cancel requested.", "It may still be delivered")
    page.is_answered(f"/jobs/{left.id}", 200, 202)


def test_dead_job_is_retried_from_its_page(page, client, dead_job):
    open_job(page, dead_job)
    page.says("Attempts\n1", "LookupError", "Its attempts are used up.", "It has why the job died.")
    page.click("button", "Find it")
    page.says("no such mailbox", '"to": "nobody"', "in give_up")
    page.click("button", "Redrive …")
    page.says("Puts the job", "(LookupError)", "At least once")
    page.click("button", "Redrive")
    page.says("1 job put back into the queue")
    page.click("button", "Close")
    page.says(re.compile(r"None of the \d+ dead letters? read is this job's"))
    worker = Worker("e2e")
    worker.job("reminders")(lambda _: None)
    with working(worker):
        assert wait_until(lambda: client.get(dead_job.id).state is State.SUCCEEDED)
    page.see("heading", re.compile("^Job .* succeeded$"))
    page.lacks("Dead letter\n")


def test_markup_in_a_payload_is_shown_as_text(page, client, add_dead_letter):
    job = client.schedule("webhooks", {"evil": EVIL}, delay=timedelta(hours=3), tenant="<b>acme")
    client.schedules("webhooks").put("evil", every=timedelta(days=1), payload=EVIL, owner=EVIL)
    add_dead_letter("webhooks", job.id, EVIL, error=EVIL[:60], reason=EVIL)
    for path in ("jobs", f"jobs/{job.id}", "schedules", "schedules/evil"):
        page.open(f"/queues/webhooks/{path}")
        page.says("<script>window.evil" if path != "schedules" else "evil")
    page.open("/queues/webhooks/dead-letters")
    page.click("button", "Inspect")
    page.see("heading", "One by one")
    page.click("DisclosureTriangle", re.compile("^<script>"))
    page.says(f"{EVIL}\n\nJob\n")
    assert page.driver.execute_script("return [window.evil, document.images.length]") == [None, 0]
    client.cancel(job.id)
    client.schedules("webhooks").delete("evil")
