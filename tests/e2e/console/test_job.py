"""One job: its way, and what is done with it."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from dueline import Client, Discard, Job, ReceivedJob, State, Worker
from tests.e2e.console.conftest import Letter
from tests.e2e.console.page import Page
from tests.e2e.working import working
from tests.waiting import wait_until

EVIL = "<script>window.evil = 1</script><img src=x onerror='window.evil = 1'>"


@pytest.fixture
def job(client: Client) -> Job:
    return client.schedule("emails", {"to": "ann", "subject": "hello"}, delay=timedelta(hours=3), tenant="acme")


def opened(page: Page, job: Job) -> None:
    page.open(f"/queues/{job.id.partition('.')[0]}/jobs/{job.id}")
    page.see("heading", re.compile("^Job "))


def test_its_payload_and_attributes_are_shown_and_a_copy_of_it_scheduled(page: Page, client: Client, job: Job) -> None:
    opened(page, job)
    page.says('"subject": "hello"', "acme", "by the table", "to come")
    page.click("button", "Schedule a copy …")
    page.click("radio", "after")
    page.fill(re.compile("^Delay"), "3d")
    page.click("button", "Schedule")
    page.says("Scheduled:")
    [copy] = [each for each in client.jobs("emails") if each.payload == job_payload and each.id != job.id]
    assert copy.tenant == "acme"
    client.cancel_many([copy.id, job.id])


job_payload = {"to": "ann", "subject": "hello"}


def test_it_is_moved_and_leads_to_the_job_that_took_its_place(page: Page, client: Client, job: Job) -> None:
    opened(page, job)
    page.click("button", "Reschedule …")
    page.fill(re.compile("^Delay"), "2d")
    page.click("button", "Reschedule")
    page.says("took its place")
    page.click("button", "Close")
    page.says("It was moved to")
    moved = client.get(job.id)
    assert moved.state is State.CANCELLED
    page.click("link", re.compile("^[0-9a-f]{8}$"))
    page.says("It waits in the table until it is due.")
    after = page.path.rpartition("/")[2]
    assert client.get(after).due - datetime.now(UTC) > timedelta(days=1, hours=23)
    client.cancel(after)


def test_it_is_run_now(page: Page, client: Client, job: Job) -> None:
    opened(page, job)
    page.click("button", "Run now …")
    page.click("button", "Run now")
    page.says("took its place")
    page.click("link", re.compile("^[0-9a-f]{8}$"))
    page.says("It was handed to its queue.")
    assert page.is_off("Run now …")


def test_it_is_cancelled_for_good_and_one_that_has_left_is_promised_nothing(
    page: Page, client: Client, job: Job
) -> None:
    opened(page, job)
    page.click("button", "Cancel the job …")
    page.says("cannot be brought back")
    page.click("button", "Cancel the job")
    page.says("Cancelled.", "Nothing comes under its id: that is a promise.")
    assert client.get(job.id).state is State.CANCELLED
    page.is_answered(f"/jobs/{job.id}", 200)

    left = client.schedule("emails", {"to": "bob"})
    opened(page, left)
    page.click("button", "Cancel the job …")
    page.click("button", "Cancel the job")
    page.says("Cancel requested.", "It may still come")
    page.is_answered(f"/jobs/{left.id}", 200, 202)


def test_of_one_that_was_moved_meanwhile_it_is_not_said_that_it_never_comes(
    page: Page, client: Client, job: Job
) -> None:
    opened(page, job)
    page.click("button", "Cancel the job …")
    moved = client.reschedule(job.id, delay=timedelta(hours=5))
    page.click("button", "Cancel the job")
    page.says("Moved meanwhile, not cancelled: it comes as")
    assert client.get(moved.id).state is State.SCHEDULED
    client.cancel(moved.id)


def test_its_attempts_and_its_end_are_on_its_way(page: Page, client: Client) -> None:
    worker = Worker("console")

    @worker.job("reminders")
    def give_up(_: ReceivedJob) -> None:
        raise Discard("no such mailbox")

    job = client.schedule("reminders", {"to": "nobody"})
    with working(worker):
        assert wait_until(lambda: client.get(job.id).state is State.FAILED)
    opened(page, job)
    page.says("attempt 1", "Discard", "Its attempts are used up.")


def test_a_payload_that_is_markup_is_shown_as_text_and_does_nothing(page: Page, client: Client, letter: Letter) -> None:
    job = client.schedule("webhooks", {"evil": EVIL}, delay=timedelta(hours=3), tenant="<b>acme")
    client.schedules("webhooks").put("evil", every=timedelta(days=1), payload=EVIL, description=EVIL, owner=EVIL)
    letter("webhooks", job.id, EVIL, error=EVIL[:60], reason=EVIL)
    for path in ("jobs", f"jobs/{job.id}", "schedules", "schedules/evil"):
        page.open(f"/queues/webhooks/{path}")
        page.says("<script>window.evil" if path != "schedules" else "evil")
    page.open("/queues/webhooks/dead-letters")
    page.click("button", "Look at them")
    page.see("heading", "Samples")
    if EVIL not in page.text:
        page.click("DisclosureTriangle", re.compile("^<script>"))
    page.says(EVIL)
    page.open("/queues/webhooks/jobs?tenant=%3Cscript%3Ewindow.evil%20%3D%201%3C%2Fscript%3E")
    page.says("None of them matches.")
    assert page.driver.execute_script("return [window.evil, document.images.length]") == [None, 0]
    client.cancel(job.id)
    client.schedules("webhooks").delete("evil")
