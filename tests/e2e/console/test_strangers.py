"""Without the token nobody gets anything, and with it no page but the console's own."""

from selenium.webdriver.common.by import By

from tests.e2e.console.page import Page
from tests.fake_api_server import Reply, fake_api_server
from tests.waiting import wait_until

PAGE = """<!doctype html><title>elsewhere</title>
<form action="{url}/api/queues/invoices/pause" method="post" enctype="text/plain">
<input name='{{"a":"' value='"}}'><button>Win a prize</button></form>
"""
# What a page may try: to read, to use the token, and to write without a preflight.
TRY = """
const [url, token, done] = arguments;
const pause = `${url}/api/queues/invoices/pause`;
const tries = [
    [`${url}/api/queues`, {}],
    [`${url}/api/queues`, {headers: {"X-Dueline-Console": token}}],
    [pause, {method: "POST", body: "{}", headers: {"content-type": "application/json", "X-Dueline-Console": token}}],
    [pause, {method: "POST", body: "{}", headers: {"content-type": "text/plain"}}],
];
const answers = tries.map(([path, options]) => fetch(path, options).then(a => a.text(), () => "nothing"));
const blind = fetch(pause, {method: "POST", body: "{}", mode: "no-cors"}).then(a => a.type, () => "nothing");
Promise.all([...answers, blind]).then(done);
"""


def test_foreign_page_can_do_nothing(browser, served, client):
    with fake_api_server() as elsewhere:
        page = Reply(body=PAGE.format(url=served.url).encode(), headers={"content-type": "text/html"})
        elsewhere.respond = lambda _: page
        browser.get(elsewhere.url)
        *read, blind = browser.execute_async_script(TRY, served.url, served.token)
        assert read == ["nothing"] * len(read)
        assert blind in ("opaque", "nothing")
        browser.find_element(By.TAG_NAME, "button").click()
        assert wait_until(lambda: browser.current_url.startswith(served.url))
        Page(browser, served).says('"status"')
    assert client.queue("invoices").control.paused is False


def test_link_without_a_token_explains_itself(page, browser, served):
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")  # it has no token
    try:
        browser.get(f"{served.url}/queues/emails/jobs")
        page.see("heading", "This page needs a console of your own")
        page.says("Run dueline console", "/queues/emails/jobs")
        browser.get(f"{served.url}/")
        page.see("heading", "This page needs a console of your own")
        browser.get(f"{served.url}/#token={served.token}")
        page.see("heading", "Queues")
    finally:
        browser.close()
        browser.switch_to.window(first)


def test_a_read_only_page_has_its_buttons_off(browser, consoles):
    page = Page(browser, consoles["read-only"])
    page.open()
    page.see("rowheader", "emails")
    page.says("read-only")
    assert page.is_off("Pause invoices")
