"""The files of the console's page, and its functions, tested with node."""

import re
import subprocess
from pathlib import Path

from dueline.cli.connect import Target
from dueline.console.application import PAGE
from tests.unit.console.conftest import browsing

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = sorted(file.relative_to(PAGE).as_posix() for file in PAGE.rglob("*") if file.suffix in TYPES)


def test_files_are_served_without_a_token(browser):
    folder = browser.folder
    for file in FILES:
        got = browser.send("GET", f"{folder}/{file}", x_dueline_console=None)
        assert (file, got.status, got.body) == (file, 200, (PAGE / file).read_bytes())
        assert got.headers["content-type"].startswith(TYPES[Path(file).suffix])


def test_browser_caches_files_of_this_run_only(browser, api_server):
    index = browser.send("GET", "/")
    folders = re.findall(rb'(?:href|src)="/([^/]+)/', index.body)
    assert {f"/{each.decode()}" for each in folders} == {browser.folder}
    assert len(browser.folder) > 32
    assert index.headers["cache-control"] == "no-store"
    assert browser.send("GET", f"{browser.folder}/app.js").headers["cache-control"] == "private, max-age=86400"
    assert browser.send("GET", "/console/about").headers["cache-control"] == "no-store"
    with browsing(Target(url=api_server.url)) as other:
        assert other.send("GET", f"{browser.folder}/app.js").refusal == (404, "route_not_found")


def test_functions_of_the_page():
    command = ["node", "--test", "--test-reporter=spec", "page.test.mjs"]
    run = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout
