"""The console's page: its files come as they are, and what it decides holds, as node says of its tests here."""

import re
import subprocess
from pathlib import Path

from dueline.console.files import PAGE

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = sorted(file.relative_to(PAGE).as_posix() for file in PAGE.rglob("*") if file.suffix in TYPES)


def test_each_file_of_the_page_comes_without_a_token_and_by_its_type(browser):
    place = browser.place
    for file in FILES:
        got = browser.ask("GET", f"{place}/{file}", x_dueline_console=None)
        assert (file, got.status, got.body) == (file, 200, (PAGE / file).read_bytes())
        assert got.headers["content-type"].startswith(TYPES[Path(file).suffix])


def test_a_browser_keeps_the_files_of_the_run_and_meets_none_that_were_kept_before_it(browse):
    with browse() as before, browse() as now:
        index = now.ask("GET", "/")
        named = re.findall(rb'(?:href|src)="/([^/]+)/', index.body)
        assert {f"/{each.decode()}" for each in named} == {now.place}
        assert len(now.place) > 32
        assert index.headers["cache-control"] == "no-store"
        assert now.ask("GET", f"{now.place}/app.js").headers["cache-control"] == "private, max-age=86400"
        assert now.ask("GET", f"{before.place}/app.js").refusal == (404, "route_not_found")
        assert now.ask("GET", "/console/about").headers["cache-control"] == "no-store"


def test_what_the_page_decides_holds():
    command = ["node", "--test", "--test-reporter=spec", "page.test.mjs", "views.test.mjs"]
    run = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout
