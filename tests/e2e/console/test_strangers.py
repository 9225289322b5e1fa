"""Who has not been given the token gets nothing: neither by a page from elsewhere nor by a name that leads here."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By

from dueline import Client
from tests.e2e.console.chromium import REBOUND
from tests.e2e.console.page import Page
from tests.e2e.console.serving import Served
from tests.waiting import wait_until

NOBODYS = "of-nobody"
PAGE = """<!doctype html><title>elsewhere</title>
<form action="{url}/api/queues/invoices/pause" method="post" enctype="text/plain">
<input name='{{"a":"' value='"}}'><button>Win a prize</button></form>
"""
# What a page may try: to read, to be let in by the token, and to write in the ways that ask nobody first.
TRY = """
const [url, token, done] = arguments;
const pause = `${url}/api/queues/invoices/pause`;
const tries = [
    [`${url}/console/overview`, {}],
    [`${url}/console/overview`, {headers: {"X-Dueline-Console": token}}],
    [pause, {method: "POST", body: "{}", headers: {"content-type": "application/json", "X-Dueline-Console": token}}],
    [pause, {method: "POST", body: "{}", headers: {"content-type": "text/plain"}}],
];
const answers = tries.map(([path, asked]) => fetch(path, asked).then(a => a.text(), () => "nothing"));
const blind = fetch(pause, {method: "POST", body: "{}", mode: "no-cors"}).then(a => a.type, () => "nothing");
Promise.all([...answers, blind]).then(done);
"""


class Elsewhere(BaseHTTPRequestHandler):
    page = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.page.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def elsewhere(page: str) -> Iterator[str]:
    """Serve a page from another port."""
    handler = type("Handler", (Elsewhere,), {"page": page})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_page_from_elsewhere_reads_nothing_and_its_forms_do_nothing_even_with_the_token(
    browser: webdriver.Chrome, served: Served, client: Client
) -> None:
    with elsewhere(PAGE.format(url=served.url)) as url:
        browser.get(url)
        *read, blind = browser.execute_async_script(TRY, served.url, served.token)
        assert read == ["nothing"] * len(read)
        assert blind in ("opaque", "nothing")
        browser.find_element(By.TAG_NAME, "button").click()
        assert wait_until(lambda: browser.current_url.startswith(served.url))
        Page(browser, url=served.url, token=served.token).says('"status"')
    assert client.queue("invoices").control.paused is False


def test_another_name_that_leads_here_is_refused(browser: webdriver.Chrome, served: Served) -> None:
    port = served.url.rpartition(":")[2]
    for path in ("/", "/console/overview"):
        browser.get(f"http://{REBOUND}:{port}{path}")
        assert '"status"' in browser.find_element(By.TAG_NAME, "body").text, path


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


def test_a_link_of_a_colleague_shows_nothing_without_a_console_of_ones_own_and_says_how_to_get_one(
    browser: webdriver.Chrome, served: Served
) -> None:
    with another_tab(browser):
        page = Page(browser, url=served.url, token=NOBODYS)
        browser.get(f"{served.url}/queues/emails/jobs")
        page.see("heading", "This page needs a console of your own")
        page.says("Run dueline console", "/queues/emails/jobs")
        assert page.fetched("GET", "/console/overview")[0] == 401
        page.fill(re.compile("Or paste the address"), f"{served.url}/#token={served.token}")
        page.click("button", "Open")
        page.see("heading", "Jobs")


def test_read_only_is_refused_by_the_server_whatever_the_page_asks(
    browser: webdriver.Chrome, reading: Served, client: Client
) -> None:
    page = Page(browser, url=reading.url, token=reading.token)
    page.open()
    page.see("rowheader", "emails")
    page.says("read-only")
    assert page.is_off("Pause invoices")
    before = client.queue("invoices")
    json = {"content-type": "application/json"}
    for method, path, body in (
        ("POST", "/api/queues/invoices/pause", {}),
        ("PUT", "/api/queues/invoices/rate", {"rate": "1/s"}),
        ("POST", "/api/queues/invoices/jobs", {"payload": 1}),
        ("POST", "/console/queues/invoices/dead-letters/redrive", {"errors": [], "limit": None, "apply": True}),
        ("POST", "/console/queues/invoices/dead-letters/delete", {"confirm": "invoices", "errors": []}),
    ):
        status, told = page.fetched(method, path, body, **json)
        assert (status, "read-only" in told) == (403, True), (path, told)
    assert page.fetched("POST", "/api/schedules/preview", {"cron": "0 9 * * *", "zone": "UTC"}, **json)[0] == 200
    assert page.fetched("POST", "/console/queues/invoices/dead-letters/look", {}, **json)[0] == 202
    after = client.queue("invoices")
    assert (after.control, after.scheduled, after.depth) == (before.control, before.scheduled, before.depth)
