"""What docs/cli.md and docs/names.md type works."""

import os
import re
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from dueline import Client
from local.emulator import Emulator
from local.endpoints import Endpoints
from local.signing_proxy import signing_proxy
from tests.e2e.environment import environment_of
from tests.waiting import HANG_SECONDS, wait_until

ROOT = Path(__file__).parents[2]
NAMES = (ROOT / "docs" / "names.md").read_text()
BY_PYTHON, BY_SHELL, BY_HTTP = re.findall(r"```(?:python|sh)\n(.*?)```", NAMES, re.DOTALL)
(TOUR,) = re.findall(r"```bash\n(.*?)```", (ROOT / "docs" / "cli.md").read_text(), re.DOTALL)

Shell = Callable[[str], str]


@pytest.fixture
def shell(emulator: Emulator, endpoints: Endpoints, commands: Path, tmp_path: Path) -> Shell:
    """Runs what is typed, with `dueline` on the PATH and the deployment in the environment; returns its stdout."""
    env = environment_of(emulator, "e2e") | {"PATH": f"{commands}:{os.environ['PATH']}"}

    def typed(script: str) -> str:
        result = subprocess.run(
            ["/bin/bash", "-euc", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANG_SECONDS
        )
        assert result.returncode == 0, result.stdout + result.stderr
        assert "Traceback" not in result.stderr
        return result.stdout

    return typed


def test_the_tour_goes_through(shell: Shell) -> None:
    # Each queue has a function of its own to start: all at once take longer on a busy machine than a call may.
    assert wait_until(lambda: "unknown" not in shell("dueline queues 2>&1 || true"))
    assert shell(TOUR)


def test_page_of_names_goes_through(shell: Shell, endpoints: Endpoints, emulator: Emulator, credentials: None) -> None:
    exec(BY_PYTHON, {"client": Client.connect("e2e"), "timedelta": timedelta})
    assert shell(BY_SHELL).count("cancelled") == 1
    with signing_proxy(endpoints.api, authority=emulator.authority) as api:
        cancelled = shell(f"API={api}\n{BY_HTTP.replace('curl ', 'curl -fsS ')}").splitlines()[-1]
    assert cancelled.endswith('"state":"cancelled"}')
