"""The console's page: its files come as they are, and what it decides holds, as node says of page.test.mjs."""

import subprocess
from pathlib import Path

from dueline.console.files import PAGE

TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = sorted(file.relative_to(PAGE).as_posix() for file in PAGE.rglob("*") if file.suffix in TYPES)


def test_each_file_of_the_page_comes_without_a_token_and_by_its_type(browser):
    for file in FILES:
        got = browser.ask("GET", f"/{file}", x_dueline_console=None)
        assert (file, got.status, got.body) == (file, 200, (PAGE / file).read_bytes())
        assert got.headers["content-type"].startswith(TYPES[Path(file).suffix])


def test_what_the_page_decides_holds():
    command = ["node", "--test", "--test-reporter=spec", "page.test.mjs"]
    run = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout
