"""Dead letters: read on a click, put back or deleted once that was confirmed."""

import re

import pytest

from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def _incident(page, client, add_dead_letter, emulator, endpoints):
    """A bug has filled the dead-letter queue of webhooks: 12 of one error, 2 of another."""
    emulator.client("sqs").purge_queue(QueueUrl=endpoints.dead_letter_queues["webhooks"])
    emulator.client("sqs").purge_queue(QueueUrl=endpoints.queues["webhooks"])
    for number in range(14):
        error, reason = ("KeyError", "no url") if number < 12 else ("ReadTimeout", "no answer in 10 s")
        add_dead_letter(
            "webhooks", f"webhooks.0.d.1795255290123.{number}", f'{{"order": {number}}}', error=error, reason=reason
        )
    page.open("/queues/webhooks/dead-letters")
    page.see("heading", "Dead letters")


def depth(client):
    queue = client.queue("webhooks")
    return queue.depth.waiting, queue.dead


def test_dead_letters_are_read_on_a_click(page, client):
    page.says("14 jobs", "Reading hides messages from everyone else for a moment")
    assert not page.all("row", re.compile("KeyError"))
    page.click("button", "Inspect")
    page.see("row", re.compile("KeyError 12 "))
    page.see("row", re.compile("ReadTimeout 2 "))
    page.says("1 to 14 of 14 dead letters read")
    page.click("checkbox", "Choose KeyError")
    page.says("1 to 12 of 12 dead letters read, those of KeyError")
    page.click("DisclosureTriangle", re.compile("^KeyError"))
    page.says("no url", '"order":', "Attempts\n10", "in send", "Died\n")
    assert wait_until(lambda: depth(client) == (0, 14)), "they are shown to everyone again"


def chosen(page):
    return {node.name for node in page.all("checkbox", re.compile("^Choose dead letter"))}


def test_single_dead_letters_are_chosen_over_pages(page, client, add_dead_letter):
    for number in range(14, 24):
        add_dead_letter("webhooks", f"webhooks.0.d.1795255290123.{number}", "{}", error="KeyError", reason="no url")
    page.click("button", "Inspect")
    page.says("1 to 20 of 24 dead letters read")
    first = chosen(page)
    page.click("button", "Next")
    page.says("21 to 24 of 24 dead letters read")
    second = chosen(page)
    assert (len(first), len(second), first & second) == (20, 4, set())
    page.click("checkbox", min(second))
    page.click("button", "Previous")
    page.says("1 to 20 of 24 dead letters read")
    page.click("checkbox", min(first))
    page.click("button", "Redrive the 2 chosen …")
    page.says("Puts the 2 chosen dead letters back into the queue")
    page.click("button", "Redrive")
    page.says("2 jobs put back into the queue")
    assert wait_until(lambda: depth(client) == (2, 22))
    page.click("button", "Close")
    page.says("1 to 20 of 22 dead letters read")
    page.click("checkbox", min(chosen(page)))
    page.click("button", "Delete the 1 chosen …")
    page.fill(re.compile("^Type webhooks"), "webhooks")
    page.click("button", "Delete for good")
    page.says("1 job deleted for good", "1 to 20 of 21 dead letters read")
    assert wait_until(lambda: depth(client) == (2, 21))


def test_delete_spares_errors_not_shown(page, client, add_dead_letter):
    page.click("button", "Inspect")
    page.see("row", re.compile("KeyError 12 "))
    add_dead_letter("webhooks", "webhooks.0.d.1795255290123.99", "{}", error="PaymentFailed", reason="refused")
    page.click("button", "Delete all …")
    page.says("14 jobs as inspected", "cannot be brought back")
    page.fill(re.compile("^Type webhooks"), "webhook")
    assert page.is_off("Delete for good")
    page.fill(re.compile("^Type webhooks"), "webhooks")
    page.click("button", "Delete for good")
    page.says("14 jobs deleted for good, of 15 read", "1 to 1 of 1 dead letter read")
    assert wait_until(lambda: depth(client) == (0, 1))
