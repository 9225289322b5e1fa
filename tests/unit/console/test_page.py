"""What the console's page decides, without a browser: node runs page.test.mjs."""

import subprocess
from pathlib import Path


def test_what_the_page_decides_holds():
    command = ["node", "--test", "--test-reporter=spec", "page.test.mjs"]
    run = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout
