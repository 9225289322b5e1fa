"""Schedules: created with a preview, changed, paused, run, backfilled and deleted."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from dueline import Client, ScheduleNotFound
from dueline.client.schedules import Schedules
from tests.e2e.console.page import Page
from tests.waiting import wait_until

NAME = "digest"
BERLIN = "Europe/Berlin"
# No run of the rule comes while the tests look at what comes.
HOUR = 21 if datetime.now(ZoneInfo(BERLIN)).hour in (8, 9) else 9


@pytest.fixture
def schedules(client: Client) -> Schedules:
    return client.schedules("reminders")


@pytest.fixture
def digest(page: Page, schedules: Schedules) -> Iterator[None]:
    schedules.put(NAME, cron=f"0 {HOUR} * * *", zone=BERLIN, payload={"to": "all"}, owner="growth")
    page.open(f"/queues/reminders/schedules/{NAME}")
    page.see("heading", re.compile(f"^{NAME}"))
    yield
    schedules.delete(NAME)


@pytest.mark.usefixtures("client")
def test_schedules_are_listed_with_next_runs(page: Page) -> None:
    page.open("/queues/reminders/schedules")
    page.see("row", re.compile("^yearly .*0 9 1 1 \\* Europe/Berlin .*runs$"))
    page.click("link", "yearly")
    page.says("queues.yaml", "Next runs", "None yet.")
    page.see("row", re.compile(r"-01-01 09:00:00 in .*-01-01 08:00:00 UTC"))


def test_schedule_form_previews_its_rule(page: Page, schedules: Schedules) -> None:
    page.open("/queues/reminders/schedules")
    page.click("button", "New schedule …")
    page.fill(re.compile("^Name"), "cleanup")
    page.fill(re.compile("^Rule"), "0 25 * * *")
    page.see("alert")
    page.says("25")
    assert page.is_off("Create")
    page.fill(re.compile("^Rule"), "30 7 * * MON")
    page.see("row", re.compile(" 07:30:00 "))
    page.fill(re.compile("^Payload"), '{"older_than_days": 30}')
    page.click("button", "Create")
    page.says("Created")
    page.click("button", "Close")
    page.see("link", "cleanup")
    created = schedules.get("cleanup")
    assert (created.cron, created.zone, created.payload) == ("30 7 * * MON", BERLIN, {"older_than_days": 30})
    schedules.delete("cleanup")


@pytest.mark.usefixtures("digest")
def test_a_schedule_is_paused_and_resumed(page: Page, schedules: Schedules) -> None:
    page.click("button", "Pause …")
    page.says("makes no runs until it is resumed")
    page.click("button", "Pause")
    page.says("Paused.")
    page.click("button", "Close")
    page.says("None while it is paused.")
    assert schedules.get(NAME).paused is True
    page.click("button", "Resume …")
    page.click("button", "Resume")
    page.says("Resumed.")
    assert schedules.get(NAME).paused is False


@pytest.mark.usefixtures("digest")
def test_change_keeps_fields_without_inputs(page: Page, schedules: Schedules) -> None:
    page.click("button", "Change …")
    page.fill(re.compile("^Rule"), "0 10 * * *")
    page.see("row", re.compile(" 10:00:00 "))
    page.click("button", "Change")
    page.says("Changed", "Until then the old rule applies")
    changed = schedules.get(NAME)
    assert (changed.cron, changed.payload, changed.owner) == ("0 10 * * *", {"to": "all"}, "growth")


@pytest.mark.usefixtures("digest")
def test_a_schedule_is_run_now_and_backfilled(page: Page, client: Client) -> None:
    waiting = client.queue("reminders").depth.waiting
    page.click("button", "Run now …")
    page.fill(re.compile("^Payload"), '{"to": "ann"}')
    page.click("button", "Run now")
    page.says("A job that is due now")
    page.click("button", "Close")

    page.click("button", "Backfill …")
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    page.set_time("From", today - timedelta(days=4))
    page.set_time("To just before", today - timedelta(days=1))
    page.click("button", "Count them")
    page.says(re.compile("3 runs, the first at"))
    page.click("button", "Create 3 jobs")
    page.says("3 jobs created, due now.")
    assert wait_until(lambda: client.queue("reminders").depth.waiting == waiting + 4)


def test_a_schedule_is_deleted(page: Page, schedules: Schedules) -> None:
    schedules.put("old", every=3600, payload=1)
    page.open("/queues/reminders/schedules/old")
    page.click("button", "Delete …")
    page.says("makes no more runs")
    page.click("button", "Delete")
    page.says("Deleted.")
    page.click("button", "Close")
    page.see("heading", "Schedules")
    with pytest.raises(ScheduleNotFound):
        schedules.get("old")
