"""The first view: which queue needs somebody, and what stops or slows one."""

import re
from datetime import timedelta

import pytest
from selenium import webdriver

from dueline import Client
from local.emulator import Emulator
from local.endpoints import Endpoints
from tests.e2e.console.conftest import Letter
from tests.e2e.console.page import Page
from tests.e2e.console.serving import Served


@pytest.fixture(autouse=True)
def _first_view(page: Page) -> None:
    page.open()
    page.see("heading", "Queues")
    page.see("rowheader", "emails")


def order(page: Page) -> list[str]:
    return [node.name for node in page.all("rowheader")]


def test_queues_come_worst_first_with_sums_on_top_and_each_says_why(
    page: Page, client: Client, letter: Letter, emulator: Emulator, endpoints: Endpoints
) -> None:
    for url in endpoints.dead_letter_queues.values():
        emulator.client("sqs").purge_queue(QueueUrl=url)
    letter("webhooks", "none", "{}", error="KeyError", reason="no url")
    client.pause("reminders")
    page.click("button", "Refresh now")
    page.until(lambda: order(page) == ["webhooks", "reminders", "emails", "invoices"], "the worst first")
    page.see("row", re.compile("^webhooks dead letters .* 1 "))
    page.see("row", re.compile("^reminders paused "))
    page.says(re.compile(r"Need attention\n1\n"), re.compile(r"Paused\n1\n"))
    client.resume("reminders")
    page.click("button", "Refresh now")
    page.until(lambda: order(page)[1] == "emails", "by name, where nothing is to be said")


def test_a_queue_is_paused_and_resumed_once_that_was_confirmed(page: Page, client: Client) -> None:
    page.click("button", "Pause invoices")
    page.see("dialog", "Pause invoices?")
    page.says("begin no more", "Jobs go on being scheduled")
    page.click("button", "Cancel")
    page.lacks("Pause invoices?")
    assert client.queue("invoices").control.paused is False

    page.click("button", "Pause invoices")
    page.click("button", "Pause")
    page.says("invoices is paused.")
    assert client.queue("invoices").control.paused is True
    page.click("button", "Close")
    page.see("row", re.compile("^invoices paused "))

    page.click("button", "Resume invoices")
    page.click("button", "Resume")
    page.says("invoices is resumed.")
    assert client.queue("invoices").control.paused is False


def test_a_rate_is_set_and_lifted(page: Page, client: Client) -> None:
    page.click("button", "Rate of invoices")
    page.fill(re.compile("^At most"), "90/m")
    page.click("button", "Set the rate")
    page.says("invoices: 90 a minute.")
    assert str(client.queue("invoices").control.rate) == "90/m"
    page.click("button", "Close")
    page.see("row", re.compile("^invoices limited .* 90/m "))

    page.click("button", "Rate of invoices")
    page.fill(re.compile("^At most"), "")
    page.click("button", "Lift the limit")
    page.says("invoices: no limit.")
    assert client.queue("invoices").control.rate is None


# A queue of which nothing can be drawn.
BROKEN = """
    const ask = window.fetch;
    const broken = () => new Response('{"queues": [null]}', {headers: {"content-type": "application/json"}});
    window.fetch = async (path, asked) => (path === "/console/overview" ? broken() : ask(path, asked));
"""


def test_where_a_view_breaks_it_is_said_why_and_the_way_back_begins_anew(page: Page) -> None:
    page.driver.execute_script(BROKEN)
    page.click("button", "Refresh now")
    page.see("alert")
    page.says("This went wrong", "null")
    page.click("link", "Queues")
    page.see("rowheader", "emails")


def test_whoever_may_not_do_something_is_told_so_by_iam_and_sees_the_rest(
    browser: webdriver.Chrome, of_producer: Served, client: Client
) -> None:
    page = Page(browser, url=of_producer.url, token=of_producer.token)
    page.open()
    page.see("row", re.compile("^emails well "))
    page.see("row", re.compile("^webhooks no access "))
    page.click("button", "Pause emails")
    page.click("button", "Pause")
    page.says("Forbidden 403", "is not authorized to perform")
    page.is_answered("/pause", 403)
    assert client.queue("emails").control.paused is False


@pytest.mark.thorough
def test_figures_come_anew_by_themselves_and_stay_with_their_age_while_the_console_does_not_answer(
    page: Page, client: Client
) -> None:
    assert page.all("row", re.compile("^emails .* 0 none ")), page.text
    client.schedule("emails", {"to": "ann"}, delay=timedelta(hours=1))
    page.see("row", re.compile("^emails well .* 1 in "))
    page.driver.execute_cdp_cmd("Network.enable", {})
    page.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/console/*"]})
    try:
        page.see("alert")
        page.says("The console does not answer", re.compile("What is shown is .* ago"))
        assert page.all("row", re.compile("^emails well .* 1 in "))
    finally:
        page.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    page.click("button", "Refresh now")
    page.until(lambda: not page.all("alert"), "the failure to go")
