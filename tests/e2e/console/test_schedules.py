"""Schedules: listed, paused, run and deleted."""

import re
from collections.abc import Iterator
from datetime import datetime
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
def test_a_schedule_is_run_now(page: Page, client: Client) -> None:
    waiting = client.queue("reminders").depth.waiting
    page.click("button", "Run now …")
    page.click("button", "Run now")
    page.says("A job that is due now")
    assert wait_until(lambda: client.queue("reminders").depth.waiting == waiting + 1)


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
