"""Schedules: listed, paused, run and deleted."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from dueline import ScheduleNotFound
from tests.waiting import wait_until

NAME = "digest"
BERLIN = "Europe/Berlin"
# No run of the rule comes while the tests look at what comes.
HOUR = 21 if datetime.now(ZoneInfo(BERLIN)).hour in (8, 9) else 9


@pytest.mark.usefixtures("client")
def test_schedules_are_listed_with_next_runs(page):
    page.open("/queues/reminders/schedules")
    page.see("row", re.compile("^yearly .*0 9 1 1 \\* Europe/Berlin .*runs$"))
    page.click("link", "yearly")
    page.says("queues.yaml", "Next runs", "None yet.")
    page.see("row", re.compile(r"-01-01 09:00:00 in .*-01-01 08:00:00 UTC"))


def test_a_schedule_is_paused_resumed_run_and_deleted(page, client):
    schedules = client.schedules("reminders")
    schedules.put(NAME, cron=f"0 {HOUR} * * *", zone=BERLIN, payload={"to": "all"}, owner="growth")
    page.open(f"/queues/reminders/schedules/{NAME}")
    page.see("heading", re.compile(f"^{NAME}"))
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
    page.click("button", "Close")
    assert schedules.get(NAME).paused is False

    waiting = client.queue("reminders").depth.waiting
    page.click("button", "Run now …")
    page.click("button", "Run now")
    page.says("A job that is due now")
    page.click("button", "Close")
    assert wait_until(lambda: client.queue("reminders").depth.waiting == waiting + 1)

    page.click("button", "Delete …")
    page.says("makes no more runs")
    page.click("button", "Delete")
    page.says("Deleted.")
    page.click("button", "Close")
    page.see("heading", "Schedules")
    with pytest.raises(ScheduleNotFound):
        schedules.get(NAME)
