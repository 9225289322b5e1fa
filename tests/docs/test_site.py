"""The site, as its readers see it: `docs.build` builds it, and a browser opens it."""

import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest
from selenium.webdriver.common.by import By

from docs import build
from tests.e2e.console.chromium import TELEPHONE, WIDE, chromium, prefer, resize, skip_without_chromium
from tests.waiting import wait_until

EDIT = "https://example.com/edit/main/"
# What a newcomer types, and the page that should come first.
QUERIES = {
    "pytest": "docs/testing.html",
    "unit test": "docs/testing.html",
    "idempotency key": "docs/names.html",
    "retry": "docs/worker.html",
    "Django": "docs/django.html",
    "cancel": "docs/tutorial.html",
    "cron": "docs/schedules.html",
    "cost": "docs/cost.html",
    "IAM": "docs/roles.html",
    "dead letter": "docs/worker.html",
}
SEARCH = "return [...document.querySelectorAll('div')].find((each) => each.shadowRoot)"
# Code whose lines end out of sight. Drawings scroll: wrapped, they would be none.
CUT = """
    return [...document.querySelectorAll("pre > code")]
        .filter((code) => code.scrollWidth > code.clientWidth + 1)
        .filter((code) => !code.closest(".language-text") || getComputedStyle(code).overflowX !== "auto")
        .map((code) => code.innerText);
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, with an address where pages are edited."""
    folder = tmp_path_factory.mktemp("docs")
    settings = folder / build.SETTINGS.name
    settings.write_text(build.SETTINGS.read_text().replace('edit_url = ""', f'edit_url = "{EDIT}"'))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "SETTINGS", settings)
        assert build.main(folder / "built") == 0, "a link or a page does not exist: see what was printed"
    return folder / "built" / "site"


@pytest.fixture(scope="module")
def url(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@pytest.fixture(scope="module")
def browser():
    skip_without_chromium()
    with chromium() as driver:
        yield driver


def test_search_finds_no_sources(site):
    pages = set(re.findall(r'"location": "([^"#]+)', (site / "search.json").read_text()))
    assert len(pages) > 60
    assert {page for page in pages if not page.startswith("docs/") and "/" in page} == set()


def test_search_works_from_the_disk(site):
    assert (site / "search.js").read_text() == f"var __index = {(site / 'search.json').read_text()}"


@pytest.mark.parametrize("query", QUERIES)
def test_search_shows_what_a_newcomer_wants_first(query, browser, url):
    browser.get(f"{url}index.html")
    browser.find_element(By.CSS_SELECTOR, ".md-search__button").click()
    search = browser.execute_script(SEARCH).shadow_root
    search.find_element(By.CSS_SELECTOR, "input").send_keys(query)

    def first():
        """Return the page of the first result by now, "" while the results are those of what was typed before."""
        link = urlsplit(browser.execute_script("return arguments[0].querySelector('a[href]')?.href ?? ''", search))
        return link.path.removeprefix("/") if parse_qs(link.query).get("h") == [query] else ""

    # They are sorted as they come.
    assert wait_until(lambda: first() == QUERIES[query]), first()


def test_pages_link_to_where_their_file_is_edited(browser, url):
    def links():
        return browser.execute_script("return [...document.querySelectorAll('a[rel=edit]')].map((each) => each.href)")

    pages = {"index.html": "README.md", "docs/worker.html": "docs/worker.md", "docs/decisions/index.html": None}
    for page, file in pages.items():
        browser.get(f"{url}{page}")
        assert wait_until(lambda: browser.find_elements(By.CSS_SELECTOR, "article h1"))
        expected = [f"{EDIT}{file}"] if file else []
        assert wait_until(lambda expected=expected: links() == expected), (page, links())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_are_those_of_the_system(scheme, browser, url):
    prefer(browser, scheme)
    browser.get(f"{url}docs/worker.html")
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    lightness = [int(part) for part in re.findall(r"\d+", background)[:3]]
    assert min(lightness) > 200 if scheme == "light" else max(lightness) < 60


@pytest.mark.parametrize("page", ["index", "docs/tutorial", "docs/cli", "docs/worker", "docs/http", "docs/queues"])
def test_no_code_is_cut(page, browser, url):
    browser.get(f"{url}{page}.html")
    assert wait_until(lambda: bool(browser.find_elements(By.CSS_SELECTOR, "pre > code")))
    for size in (TELEPHONE, WIDE):
        resize(browser, size)
        assert browser.execute_script(CUT) == []
