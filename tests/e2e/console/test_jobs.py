"""The jobs of a queue: found, scheduled, and many of them cancelled at once."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from selenium.webdriver.common.keys import Keys

from dueline import Client, Job, NewJob, State
from dueline.config.names import Names
from dueline.model import instant
from local.emulator import Emulator
from local.endpoints import Endpoints
from tests.e2e.console.page import Page
from tests.waiting import wait_until

FIND = "Find a job by its id or key"


@pytest.fixture
def scheduled(client: Client) -> Iterator[list[Job]]:
    """Four jobs of two tenants, due in hours."""
    wanted = [
        NewJob(payload={"campaign": 42 + number % 2, "to": name}, delay=7200 + number, tenant=tenant)
        for number, (name, tenant) in enumerate(
            [("ann", "acme"), ("bob", "acme"), ("eve", "globex"), ("dan", "globex")]
        )
    ]
    jobs = [job for job in client.schedule_many("invoices", wanted) if isinstance(job, Job)]
    yield jobs
    client.cancel_many([job.id for job in jobs])


def payloads(page: Page) -> list[str]:
    return re.findall(r'"to":"(\w+)"', page.text)


def test_jobs_are_found_by_tenant_text_field_and_time_and_the_address_keeps_what_was_asked(
    page: Page, scheduled: list[Job]
) -> None:
    page.open("/queues/invoices/jobs")
    page.until(lambda: payloads(page) == ["ann", "bob", "eve", "dan"], "all jobs, in due order")
    page.fill(re.compile("^Tenant"), "globex", role="searchbox")
    page.until(lambda: payloads(page) == ["eve", "dan"], "the tenant's")
    page.fill(re.compile("^Field of the payload"), "campaign = 43", role="searchbox")
    page.says("1 of 4 jobs scheduled")
    assert payloads(page) == ["dan"]
    page.driver.refresh()
    page.until(lambda: payloads(page) == ["dan"], "the same after a reload")
    page.open("/queues/invoices/jobs?text=ANN")
    page.until(lambda: payloads(page) == ["ann"], "what has this text")
    page.open("/queues/invoices/jobs")
    page.set_time(re.compile("^Due from"), scheduled[2].due)
    page.until(lambda: payloads(page) == ["eve", "dan"], "what is due then")


def test_large_numbers_are_told_apart_and_copied_as_they_are(page: Page, client: Client) -> None:
    large = 2**53 + 1  # which is no number of JavaScript
    for cid in (large - 1, large):
        client.schedule("emails", {"cid": cid}, delay=7200)
    page.open(f"/queues/emails/jobs?field=cid+%3D+{large}")
    page.says("1 of 2 jobs scheduled", f'{{"cid":{large}}}')
    page.click("link", re.compile("^[0-9a-f]{8}$"))
    page.click("button", "Schedule a copy …")
    page.click("radio", "after")
    page.fill(re.compile("^Delay"), "2h")
    page.click("button", "Schedule")
    page.says("Scheduled:")
    page.click("link", re.compile("^[0-9a-f]{8}$"))
    page.says(f'"cid": {large}')
    client.cancel_many([job.id for job in client.jobs("emails")])


def test_a_wrong_time_in_an_address_is_said_and_its_filters_stay(page: Page) -> None:
    wrong = "+275760-09-13T00:00:00Z"
    page.open(f"/queues/invoices/jobs?{urlencode({'from': wrong, 'tenant': 'acme'})}")
    page.says("Could not load jobs", wrong)
    assert page.see("searchbox", re.compile("^Tenant")).get_attribute("value") == "acme"


def test_a_job_is_looked_up_by_its_id_from_any_queue(page: Page, scheduled: list[Job]) -> None:
    page.open("/queues/emails/jobs")
    page.fill(FIND, scheduled[0].id, role="searchbox")
    page.click("button", "Open")
    page.see("heading", re.compile("^Job [0-9a-f]{8}"))
    assert page.path == f"/queues/invoices/jobs/{scheduled[0].id}"
    page.open("/queues/invoices/jobs/invoices.9.t.1.x")
    page.see("alert")


def test_a_job_is_looked_up_by_its_idempotency_key(page: Page, client: Client) -> None:
    job = client.schedule("emails", {"to": "ann"}, delay=7200, key="order 5/7")
    page.open("/queues/emails/jobs")
    page.fill(FIND, "order 5", role="searchbox")
    page.click("button", "Open")
    page.says("Could not load the job: Not Found")
    page.fill(FIND, "order 5/7", role="searchbox")
    page.click("button", "Open")
    page.see("heading", re.compile("^Job .* scheduled$"))
    assert page.path == f"/queues/emails/jobs/{job.id}"
    client.cancel(job.id)


def test_a_job_is_scheduled_and_what_is_wrong_with_it_is_said(page: Page, client: Client) -> None:
    page.open("/queues/emails/jobs")
    page.click("button", "Schedule a job …")
    page.fill(re.compile("^Payload"), '{"to": ')
    page.click("button", "Schedule")
    page.says("payload is no JSON")
    page.fill(re.compile("^Payload"), '{"to": "scheduled by hand"}')
    page.fill(re.compile("^Delay"), "tomorrow")
    page.click("button", "Schedule")
    page.says('delay is "tomorrow"')
    page.fill(re.compile("^Delay"), "2h")
    page.fill(re.compile("^Tenant Whose"), "acme")
    page.click("button", "Schedule")
    page.says("Scheduled:")
    page.click("button", "Close")
    page.says("scheduled by hand")
    [job] = [job for job in client.jobs("emails") if job.payload == {"to": "scheduled by hand"}]
    assert job.tenant == "acme"
    assert job.due - datetime.now(UTC) > timedelta(minutes=100)
    client.cancel(job.id)


def test_many_are_counted_and_shown_then_cancelled_and_promises_are_told_from_requests(
    page: Page, client: Client, scheduled: list[Job], emulator: Emulator, endpoints: Endpoints
) -> None:
    leaving = client.schedule("invoices", {"to": "soon"}, delay=300, tenant="acme")
    page.open("/queues/invoices/jobs?tenant=acme")
    page.says("3 of 5 jobs")
    with page.holding("/jobs?"):
        page.click("button", re.compile("^Cancel all that match"))
        page.see("dialog", "Cancel many jobs of invoices?")
        assert page.is_off("Cancel 0 jobs")
    page.says("those of the tenant acme", "3 jobs of 5 that were fetched")
    assert payloads(page)[-1] == "bob"
    hand_over(emulator, endpoints, leaving)
    page.click("button", "Cancel 3 jobs")
    page.says("2 cancelled (200): none comes under its id", "1 cancel requested (202): they may still come")
    told = [client.get(job.id).state for job in (*scheduled, leaving)]
    assert told == [State.CANCELLED] * 2 + [State.SCHEDULED] * 2 + [State.CANCEL_REQUESTED]


def hand_over(emulator: Emulator, endpoints: Endpoints, job: Job) -> None:
    """Raise the fence up to a job, as a tick does that is about to send it, between two ticks."""
    dynamodb = emulator.client("dynamodb")

    def raised() -> bool:
        try:
            dynamodb.update_item(
                TableName=Names(endpoints.name).state,
                Key={"pk": {"S": f"{job.queue}#0"}, "sk": {"S": "!state"}},
                UpdateExpression="SET fence = :due",
                ConditionExpression="attribute_not_exists(lease)",
                ExpressionAttributeValues={":due": {"S": instant.text(job.due)}},
            )
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    assert wait_until(raised)
    dynamodb.close()


def cancel_all(page: Page, tenant: str, *, lost: int = 0) -> None:
    """Cancel both jobs of a tenant; of the answers, the first are lost, once it is done."""
    page.open(f"/queues/invoices/jobs?tenant={tenant}")
    page.click("button", "Cancel all that match …")
    page.see("dialog", "Cancel many jobs of invoices?")
    page.driver.execute_script(LOSE_ANSWERS, lost)
    page.click("button", "Cancel 2 jobs")


LOSE_ANSWERS = """
    const ask = window.fetch;
    let left = arguments[0];
    window.fetch = async (path, asked) => {
        const answer = await ask(path, asked);
        const isLost = path.endsWith("/cancellations") && left-- > 0;
        return isLost ? new Response("", { status: 503, statusText: "Service Unavailable" }) : answer;
    };
"""


@pytest.mark.usefixtures("scheduled")
def test_a_lost_answer_is_asked_for_once_more_and_what_is_not_known_is_not_said_to_come(page: Page) -> None:
    cancel_all(page, "acme", lost=1)
    page.says("2 cancelled (200): none comes under its id")
    cancel_all(page, "globex", lost=2)
    page.says("2 not known: look again, since the answer was lost.", "Service Unavailable")
    page.lacks("scheduled as before")


@pytest.mark.usefixtures("scheduled")
def test_what_is_under_way_stays_in_sight_however_often_escape_is_pressed(page: Page) -> None:
    page.open("/queues/invoices/jobs?tenant=acme")
    page.click("button", "Cancel all that match …")
    page.see("button", "Cancel 2 jobs")
    with page.holding("/cancellations"):
        page.click("button", "Cancel 2 jobs")
        page.see("button", "Stop here")
        for _ in range(3):
            page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        assert page.all("button", "Stop here")
    page.says("2 cancelled (200)")
