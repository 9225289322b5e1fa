"""What is looked at over all queues: schedules, dead letters, and a job that may be in any of them."""

import re

import pytest

FIND = "Whole id or key of a job, in all queues"
REFUSED = re.compile(r"4 of 5 queues did not answer:\ninvoices: .*is not authorized to perform")


@pytest.fixture
def jobs(client):
    """A job in each of two queues, of the same key, and one in the first of a key of its own."""
    keys = {"emails": "order 7", "invoices": "order 7", "reminders": "order 8/9"}
    jobs = {queue: client.schedule(queue, {}, delay=7200, key=key) for queue, key in keys.items()}
    yield jobs
    client.cancel_many([job.id for job in jobs.values()])


def search(page, text):
    page.fill(FIND, text, role="searchbox")
    page.click("button", "Search")


@pytest.mark.parametrize("by", ["key", "id"])
def test_search_opens_the_only_match(page, jobs, by):
    page.open()
    search(page, "order 8/9" if by == "key" else jobs["reminders"].id)
    page.see("heading", re.compile("^Job .* scheduled$"))
    assert page.path == f"/queues/reminders/jobs/{jobs['reminders'].id}"


def test_search_lists_the_jobs_of_a_key(page, jobs):
    page.open("/schedules")
    search(page, "order 7")
    for queue in ("emails", "invoices"):
        # With its day, where that is another one: it is due in two hours.
        page.see("row", re.compile(rf"^[0-9a-f]{{8}} {queue} scheduled ([0-9-]{{10}} )?[0-9:]{{5}}"))
    search(page, "order 8")
    page.says("The queues have no such job: the search needs a whole id")
    assert len(jobs) == 3


def test_search_says_which_queues_did_not_answer(producer_page, jobs):
    producer_page.open()
    search(producer_page, jobs["emails"].id)
    producer_page.says(REFUSED)
    producer_page.see("row", re.compile("^[0-9a-f]{8} emails scheduled "))
    assert producer_page.path.startswith("/search?text=")


@pytest.mark.usefixtures("client")
def test_schedules_of_all_queues_are_listed(page, producer_page):
    page.open()
    page.click("link", "Schedules")
    page.see("row", re.compile(r"^yearly reminders .*0 9 1 1 \* Europe/Berlin in .*runs$"))
    producer_page.open("/schedules")
    producer_page.says(REFUSED, "The queues that answered have no schedules.")


def test_dead_letters_of_all_queues_are_counted(page, client, add_dead_letter):
    job = client.schedule("reminders", 1, delay=7200)
    client.cancel(job.id)
    add_dead_letter("reminders", job.id, "1", error="KeyError", reason="no url")
    page.open()
    page.click("link", "Dead letters")
    page.see("row", re.compile(r"^reminders \d"))
    page.says(re.compile(r"\d+ jobs? in the dead-letter queues of 5 of 5 queues"))
    page.click("link", "reminders")
    assert page.path == "/queues/reminders/dead-letters"
