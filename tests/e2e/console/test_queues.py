"""The first view: which queue needs attention, and what stops or slows one."""

import re

import pytest


@pytest.fixture(autouse=True)
def _first_view(page):
    page.open()
    page.see("heading", "Queues")
    page.see("rowheader", "emails")


def test_a_queue_is_paused_and_resumed(page, client):
    page.click("button", "Pause invoices")
    page.see("dialog", "Pause invoices?")
    page.says("start no more", "Jobs are still scheduled and dispatched")
    page.click("button", "Cancel")
    page.lacks("Pause invoices?")
    assert client.queue("invoices").control.paused is False

    page.click("button", "Pause invoices")
    page.click("button", "Pause")
    page.says("invoices is paused.")
    assert client.queue("invoices").control.paused is True
    page.click("button", "Close")
    page.see("row", re.compile("^invoices paused "))
    page.says(re.compile(r"Paused\n1\n"))

    page.click("button", "Resume invoices")
    page.click("button", "Resume")
    page.says("invoices is resumed.")
    assert client.queue("invoices").control.paused is False


def test_a_rate_is_set_and_lifted(page, client):
    page.click("button", "Rate of invoices")
    page.fill(re.compile("^At most"), "90/m")
    page.click("button", "Set the rate")
    page.says("invoices: 90/m.")
    assert str(client.queue("invoices").control.rate) == "90/m"
    page.click("button", "Close")
    page.see("row", re.compile("^invoices limited .* 90/m "))

    page.click("button", "Rate of invoices")
    page.fill(re.compile("^At most"), "")
    page.click("button", "Lift the limit")
    page.says("invoices: no limit.")
    assert client.queue("invoices").control.rate is None


def test_a_refusal_by_iam_is_shown(producer_page, client):
    producer_page.open()
    producer_page.see("row", re.compile("^emails not known "))
    producer_page.says("Late to dispatch and On time are not known: ")
    producer_page.see("row", re.compile("^webhooks no access .*is not authorized to perform.*( \N{EN DASH}){8}"))
    producer_page.says(re.compile(r"Waiting\n\d+\n1 of 5 queues"))
    producer_page.click("button", "Pause emails")
    producer_page.click("button", "Pause")
    producer_page.says("Forbidden 403", "is not authorized to perform")
    producer_page.is_answered("/pause", 403)
    assert client.queue("emails").control.paused is False
