"""Each view for everyone: axe finds nothing, in the light and in the dark, and a telephone scrolls in one direction."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from dueline import Client
from tests.e2e.console.chromium import TELEPHONE, WIDE, prefer, resize
from tests.e2e.console.conftest import Letter
from tests.e2e.console.page import Page

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
RUN = """
const [within, only, done] = arguments;
axe.run(within, {resultTypes: ["violations"], ...(only && {runOnly: only})}).then(
    ({violations}) => done(violations.map(({id, nodes}) => [id, ...nodes.map(
        ({html, failureSummary}) => `${html}: ${failureSummary}`)])), (error) => done([["axe", `${error}`]]));
"""
WIDER = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(autouse=True)
def _as_before(browser: webdriver.Chrome) -> Iterator[None]:
    yield
    prefer(browser, "light")
    resize(browser, WIDE)


@pytest.fixture
def shown(page: Page, client: Client, letter: Letter) -> Iterator[dict[str, Callable[[], object]]]:
    """What opens each view, with something in it; a dialog opens over the view before it."""
    job = client.schedule("invoices", {"to": "ann", "text": "long " * 40}, delay=timedelta(hours=2), tenant="acme")
    letter("webhooks", job.id, '{"order": 1}', error="KeyError", reason="no url")

    def look() -> None:
        page.open("/queues/webhooks/dead-letters")
        page.click("button", "Look at them")
        page.click("DisclosureTriangle", re.compile("KeyError"))

    def ask(button: str | re.Pattern[str], text: str) -> Callable[[], None]:
        def open() -> None:
            page.click("button", button)
            page.see("dialog")
            page.says(text)

        return open

    def view(path: str, text: str, *, last: str = "/console/about") -> Callable[[], None]:
        def open() -> None:
            page.open(path)
            page.says(text)
            page.is_answered(last, 200)

        return open

    yield {
        "queues": view("/", "dead letters", last="/console/figures"),
        "a pause": ask("Pause invoices", "begin no more"),
        "a queue": view("/queues/invoices", "Due in the next", last="/figures?hours=6"),
        "jobs": view("/queues/invoices/jobs", "acme"),
        "many cancelled": ask(re.compile("^Cancel all that match"), "that were fetched"),
        "a job": view(f"/queues/invoices/jobs/{job.id}", "Its way"),
        "dead letters": look,
        "schedules": view("/queues/reminders/schedules", "yearly"),
        "a new schedule": ask("New schedule …", " UTC"),
        "a schedule": view("/queues/reminders/schedules/yearly", "Next runs"),
    }
    client.cancel(job.id)


def test_axe_finds_nothing_in_light_or_dark_and_nothing_is_wider_than_a_telephone(
    page: Page, shown: dict[str, Callable[[], object]]
) -> None:
    found: dict[str, Any] = {}
    axe = AXE.read_text()
    for name, show in shown.items():
        show()
        page.driver.execute_script(f"window.axe || (() => {{ {axe} }})()")
        # What a dialog lies over was looked at before.
        within = "dialog" if page.all("dialog") else "html"
        # Of all that axe looks for, the contrast of colours is what the dark may change.
        for scheme, only in (("light", None), ("dark", ["color-contrast"])):
            prefer(page.driver, scheme)
            found[f"{name}, {scheme}"] = page.driver.execute_async_script(RUN, within, only)
        resize(page.driver, TELEPHONE)
        found[f"{name}, wider than a telephone"] = page.driver.execute_script(WIDER)
        resize(page.driver, WIDE)
    assert {where: what for where, what in found.items() if what} == {}


def test_a_dialog_stays_in_front_while_another_queue_overtakes_its_own(page: Page, client: Client) -> None:
    page.open()
    page.click("button", "Pause emails")
    page.see("dialog", "Pause emails?")
    with overtaken(page, client, by="reminders"):
        assert page.driver.execute_script("return document.querySelector('dialog').matches(':modal')")


@pytest.mark.parametrize("moves", ["as it is", "by taking it out and putting it in again"])
def test_the_focus_stays_on_its_button_while_another_queue_overtakes_its_own(
    page: Page, client: Client, moves: str
) -> None:
    page.open()
    button = page.see("button", "Pause emails")
    if moves != "as it is":
        # Not every browser has it.
        page.driver.execute_script("delete Element.prototype.moveBefore")
    page.driver.execute_script("arguments[0].focus()", button)
    with overtaken(page, client, by="reminders"):
        names = [node.name for node in page.all("rowheader")]
        assert names.index("reminders") < names.index("emails")
        assert page.driver.execute_script("return document.activeElement === arguments[0]", button)
    assert button.accessible_name == "Pause emails"


@contextmanager
def overtaken(page: Page, client: Client, *, by: str) -> Iterator[None]:
    """Let a queue go up in the first view, which is open, while the context is open."""
    page.says(re.compile(r"Paused\n0\n"))
    client.pause(by)
    try:
        page.driver.execute_script("document.dispatchEvent(new Event('visibilitychange'))")
        page.says(re.compile(r"Paused\n1\n"))
        yield
    finally:
        client.resume(by)


def test_a_dialog_takes_the_focus_and_gives_it_back_and_is_used_by_keyboard_alone(page: Page, client: Client) -> None:
    page.open()
    button = page.see("button", "Pause invoices")
    page.driver.execute_script("arguments[0].focus()", button)
    press(page, Keys.ENTER)
    page.see("dialog", "Pause invoices?")
    assert page.driver.execute_script("return document.activeElement.closest('dialog') !== null")
    press(page, Keys.ESCAPE)
    page.until(lambda: not page.all("dialog"), "the dialog to go")
    assert page.driver.execute_script("return document.activeElement === arguments[0]", button)
    assert client.queue("invoices").control.paused is False


def press(page: Page, key: str) -> None:
    page.driver.switch_to.active_element.send_keys(key)
