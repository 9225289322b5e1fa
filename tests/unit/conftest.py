import gc
import os
import signal
from functools import cache

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

from tests.api_harness import import_api
from tests.builders import a_queue
from tests.fake_api_server import fake_api_server
from tests.system import System

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# So that one commit is green on all machines, or red on all; `make soak` tries other examples.
settings.register_profile("repeated", settings.get_profile("random"), derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeated"))

# To look over all that is imported, for every 700 objects more, takes a seventh of the time: most is freed before.
gc.set_threshold(100_000, 20, 20)

# The commands stay as they are; each that is typed would have all of them made again out of their functions.
typer.testing._get_command = cache(typer.testing._get_command)


@pytest.fixture
def system():
    """A deployment in memory with the queue `emails`, which has one partition."""
    return System()


@pytest.fixture
def api(monkeypatch):
    """The function of the HTTP API with a queue `emails`, on a table and queues in memory."""
    with import_api(monkeypatch, a_queue()) as api:
        yield api


@pytest.fixture
def api_server():
    with fake_api_server() as server:
        yield server


@pytest.fixture
def handle_signal():
    """Set what handles a signal, until the test ends."""
    before = {}
    yield lambda number, handler: before.setdefault(number, signal.signal(number, handler))
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def interruptible(handle_signal):
    """Have Ctrl-C do what it does in a terminal: what a shell starts in the background ignores it."""
    handle_signal(signal.SIGINT, signal.default_int_handler)
