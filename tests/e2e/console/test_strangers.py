"""A page without the token, or of a read-only console: tests/unit/console/test_guard.py has who is refused."""

from collections.abc import Iterator
from contextlib import contextmanager

from selenium import webdriver

from tests.e2e.console.page import Page
from tests.e2e.console.serving import Served


@contextmanager
def another_tab(browser: webdriver.Chrome) -> Iterator[None]:
    """Open a tab, which has no token, and go back to the first one at the end."""
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    try:
        yield
    finally:
        browser.close()
        browser.switch_to.window(first)


def test_link_without_a_token_explains_itself(page: Page, browser: webdriver.Chrome, served: Served) -> None:
    with another_tab(browser):
        browser.get(f"{served.url}/queues/emails/jobs")
        page.see("heading", "This page needs a console of your own")
        page.says("Run dueline console", "/queues/emails/jobs")
        browser.get(f"{served.url}/")
        page.see("heading", "This page needs a console of your own")
        browser.get(f"{served.url}/#token={served.token}")
        page.see("heading", "Queues")


def test_a_read_only_page_has_its_buttons_off(browser: webdriver.Chrome, consoles: dict[str, Served]) -> None:
    page = Page(browser, consoles["read-only"])
    page.open()
    page.see("rowheader", "emails")
    page.says("read-only")
    assert page.is_off("Pause invoices")
