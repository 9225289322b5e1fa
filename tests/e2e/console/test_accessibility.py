"""Each view for everyone: axe finds nothing, in the light and in the dark, and a telephone scrolls in one direction."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.e2e.console.chromium import TELEPHONE, WIDE, prefer, resize

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
RUN = """
const [within, only, done] = arguments;
axe.run(within, {resultTypes: ["violations"], ...(only && {runOnly: only})}).then(
    ({violations}) => done(violations.map(({id, nodes}) => [id, ...nodes.map(
        ({html, failureSummary}) => `${html}: ${failureSummary}`)])), (error) => done([["axe", `${error}`]]));
"""
WIDER = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(autouse=True)
def _as_before(browser):
    yield
    prefer(browser, "light")
    resize(browser, WIDE)


@pytest.fixture
def shown(page, client, add_dead_letter, dead_job):
    """What opens each view, with something in it; a dialog opens over the view before it."""
    job = client.schedule("invoices", {"to": "ann", "text": "long " * 40}, delay=timedelta(hours=2), tenant="acme")
    add_dead_letter("webhooks", job.id, '{"order": 1}', error="KeyError", reason="no url")

    def look():
        page.open("/queues/webhooks/dead-letters")
        page.click("button", "Inspect")
        page.click("DisclosureTriangle", re.compile("KeyError"))

    def dead():
        page.open(f"/queues/reminders/jobs/{dead_job.id}")
        page.click("button", "Find it")
        page.says("no such mailbox")

    def dialog(button, text):
        def open():
            page.click("button", button)
            page.see("dialog")
            page.says(text)

        return open

    def view(path, text, *, last="/console/about"):
        def open():
            page.open(path)
            page.says(text)
            page.is_answered(last, 200)

        return open

    yield {
        "queues": view("/", "dead letters", last="/console/figures"),
        "a pause": dialog("Pause invoices", "start no more"),
        "all schedules": view("/schedules", "yearly"),
        "all dead letters": view("/dead-letters", "as SQS estimates"),
        "a search": view("/search?text=none", "no such job"),
        "a queue": view("/queues/invoices", "Due in the next", last="/figures"),
        "jobs": view("/queues/invoices/jobs", "acme"),
        "a job": view(f"/queues/invoices/jobs/{job.id}", "Attributes"),
        "a reschedule": dialog("Reschedule …", "It gets a new id"),
        "recorded jobs": view("/queues/reminders/jobs?state=failed", "LookupError"),
        "a dead job": dead,
        "a retry": dialog("Redrive …", "At least once"),
        "dead letters": look,
        "schedules": view("/queues/reminders/schedules", "yearly"),
        "a schedule": view("/queues/reminders/schedules/yearly", "Next runs"),
    }
    client.cancel(job.id)


def test_pages_are_accessible(page, shown):
    violations = {}
    axe = AXE.read_text()
    for name, show in shown.items():
        show()
        page.driver.execute_script(f"window.axe || (() => {{ {axe} }})()")
        # What a dialog lies over was looked at before.
        within = "dialog" if page.all("dialog") else "html"
        # Of all that axe looks for, the contrast of colours is what the dark may change.
        for scheme, only in (("light", None), ("dark", ["color-contrast"])):
            prefer(page.driver, scheme)
            violations[f"{name}, {scheme}"] = page.driver.execute_async_script(RUN, within, only)
        resize(page.driver, TELEPHONE)
        violations[f"{name}, wider than a telephone"] = page.driver.execute_script(WIDER)
        resize(page.driver, WIDE)
    assert {where: what for where, what in violations.items() if what} == {}


def test_the_focus_stays_while_rows_move(page, client):
    page.open()
    button = page.see("button", "Pause emails")
    page.driver.execute_script("arguments[0].focus()", button)
    page.says(re.compile(r"Paused\n0\n"))
    client.pause("reminders")
    page.driver.execute_script("document.dispatchEvent(new Event('visibilitychange'))")
    page.says(re.compile(r"Paused\n1\n"))
    names = [node.name for node in page.all("rowheader")]
    client.resume("reminders")
    assert names.index("reminders") < names.index("emails")
    assert page.driver.execute_script("return document.activeElement === arguments[0]", button)


def test_a_dialog_is_used_by_keyboard_alone(page, client):
    page.open()
    page.until(lambda: not page.is_off("Pause invoices"), "the queue's answer")
    button = page.see("button", "Pause invoices")
    page.driver.execute_script("arguments[0].focus()", button)
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.see("dialog", "Pause invoices?")
    assert page.driver.execute_script("return document.activeElement.closest('dialog') !== null")
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog"), "the dialog to go")
    assert page.driver.execute_script("return document.activeElement === arguments[0]", button)
    assert client.queue("invoices").control.paused is False
