from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import boto3
import pytest
from moto import mock_aws
from moto.core import models

from dueline.core.ports import Table
from tests.contract.engines import ENGINES, Engine

# moto makes 1,300 of them for each test, of the same patterns.
models.CallbackResponse = cache(models.CallbackResponse)


@pytest.fixture(autouse=True)
def _an_account_of_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture(scope="package")
def started() -> Iterator[Callable[[str], Engine]]:
    """Start an engine when a test first names it, and keep it until the last test of this folder."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(ENGINES[name]()))


@pytest.fixture
def engine(request: pytest.FixtureRequest, started: Callable[[str], Engine]) -> Iterator[Engine]:
    """The engine that a test's parameter names: `pytest.mark.parametrize("engine", TABLES, indirect=True)`."""
    running = started(request.param)
    with running.answering():
        yield running


@pytest.fixture
def table(engine: Engine) -> Table:
    return engine.table()


@pytest.fixture
def session() -> Iterator[boto3.Session]:
    """A session of an account that moto keeps in memory."""
    with mock_aws():
        yield boto3.Session("AKIDEXAMPLE", "s", region_name="eu-west-1")
