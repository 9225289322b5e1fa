"""What docs/cli.md and docs/names.md type works."""

from datetime import timedelta

from dueline import Client
from local.emulator import Emulator
from local.endpoints import Endpoints
from local.signing_proxy import signing_proxy
from tests.e2e.conftest import Shell
from tests.e2e.newcomer import code_of
from tests.waiting import wait_until

[BY_PYTHON], [BY_SHELL, BY_HTTP] = (code_of("docs/names.md", language) for language in ("python", "sh"))
[TOUR] = code_of("docs/cli.md", "bash")


def test_the_tour_goes_through(shell: Shell) -> None:
    # Each queue has a function of its own to start: all at once take longer on a busy machine than a call may.
    assert wait_until(lambda: "unknown" not in shell("dueline queues 2>&1 || true"))
    assert shell(TOUR)


def test_page_of_names_goes_through(shell: Shell, endpoints: Endpoints, emulator: Emulator) -> None:
    exec(BY_PYTHON, {"client": Client.connect("e2e"), "timedelta": timedelta})
    assert shell(BY_SHELL).count("cancelled") == 1
    with signing_proxy(endpoints.api, authority=emulator.authority) as api:
        cancelled = shell(f"API={api}\n{BY_HTTP.replace('curl ', 'curl -fsS ')}").splitlines()[-1]
    assert cancelled.endswith('"state":"cancelled"}')
