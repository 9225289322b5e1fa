"""A deployed Dueline as its users have it: a name, `dueline.Client`, HTTP and boto3.

It is deployed into a local AWS, or, with ACCEPTANCE=aws, it is the sandbox in the account of the AWS credentials.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import boto3
import httpx
import pytest

from dueline import Client, Worker
from dueline.config.names import Names
from local.emulator import Emulator
from tests.acceptance import sandbox
from tests.acceptance.early import Job, schedule_early, trust
from tests.acceptance.inbox import Inbox
from tests.acceptance.rights import SigV4, role_with
from tests.e2e.deployed import RetryingTransport, as_administrator, deployed_locally
from tests.e2e.deployed import working as process_jobs
from tests.waiting import HANG_SECONDS, PATIENT

IS_AWS = os.environ.get("ACCEPTANCE") == "aws"
FIGURE = "figure: "
Figure = Callable[[str, float], float]
Aws = Callable[[str], Any]
Scale = Callable[[int, int], int]
WAYS = {"invoked": {"transport": "invoke"}, "over http": {"transport": "http"}, "direct": {"direct": True}}
each_way = pytest.mark.parametrize("client", WAYS.values(), ids=WAYS, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not IS_AWS and (mark := item.get_closest_marker("aws_only")):
            item.add_marker(pytest.mark.skip(reason=f"on AWS only: {mark.args[0]}"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [each for outcome in ("passed", "failed") for each in terminalreporter.getreports(outcome)]
    rows = [
        (each.nodeid.rpartition("::")[2], name.removeprefix(FIGURE), value)
        for each in reports
        if each.when == "call"
        for name, value in each.user_properties
        if name.startswith(FIGURE)
    ]
    if rows:
        terminalreporter.section("figures")
        for test, name, value in rows:
            terminalreporter.write_line(f"{value:>12,.4g}  {name}  ({test})")


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """Put a figure into the report, and return it, to be held to its bound."""

    def note(name: str, value: float) -> float:
        record_property(f"{FIGURE}{name}", value)
        return value

    return note


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of the deployment, to which the environment leads."""
    with ExitStack() as stack:
        if not IS_AWS:
            folder = tmp_path_factory.mktemp("deployment")
            emulator = stack.enter_context(Emulator(log=folder / "log", tls=folder))
            stack.enter_context(deployed_locally(emulator, sandbox.QUEUES, folder=folder))
            stack.enter_context(as_administrator(emulator, sandbox.NAME))
        sandbox.refuse_others(boto3.Session())
        sandbox.refuse_jobs(boto3.Session())
        yield sandbox.NAME


@pytest.fixture(scope="session")
def names(deployment: str) -> Names:
    return Names(deployment)


@pytest.fixture(scope="session")
def session(deployment: str) -> boto3.Session:
    return boto3.Session()


@pytest.fixture(scope="session")
def aws(session: boto3.Session) -> Aws:
    """Clients of AWS's services, with the rights of the one who runs the tests."""
    return cache(session.client)


@pytest.fixture(scope="session")
def url_of(aws: Aws) -> Callable[[str], str]:
    """The URL of an SQS queue, by its name."""
    return lambda name: str(aws("sqs").get_queue_url(QueueName=name)["QueueUrl"])


@pytest.fixture(scope="session")
def clients(deployment: str) -> Callable[..., Client]:
    """One client for each way of `Client.connect`."""
    return cache(lambda **way: Client.connect(deployment, session=boto3.Session(), patience=PATIENT, **way))


# Of a wider scope, its parameters would change the order of the tests, of which some disturb what others wait for.
@pytest.fixture
def client(request: pytest.FixtureRequest, clients: Callable[..., Client]) -> Client:
    return clients(**getattr(request, "param", {"transport": "invoke"}))


@pytest.fixture(scope="session")
def http_of(names: Names, aws: Aws) -> Iterator[Callable[[boto3.Session], httpx.Client]]:
    """HTTP clients of the API, which sign with the credentials of a session."""
    url = aws("ssm").get_parameter(Name=names.api_url_parameter)["Parameter"]["Value"]
    with ExitStack() as stack:

        def open_client(session: boto3.Session) -> httpx.Client:
            transport = RetryingTransport(verify=trust())
            return stack.enter_context(
                httpx.Client(base_url=url, auth=SigV4(session), timeout=HANG_SECONDS, transport=transport)
            )

        yield open_client


@pytest.fixture(scope="session")
def http(http_of: Callable[[boto3.Session], httpx.Client], session: boto3.Session) -> httpx.Client:
    """An HTTP client of the API, by its gateway."""
    return http_of(session)


@pytest.fixture(scope="session")
def table_after(http: httpx.Client) -> float:
    """After how many seconds a job must be due to go by the table, with time for the request to be sent."""
    return float(http.get("/queues").json()["queues"][0]["direct_horizon"] + (5 if IS_AWS else 1))


@pytest.fixture(scope="session")
def early(http: httpx.Client, table_after: float) -> dict[str, Job]:
    """Jobs by the table for several tests, scheduled first, so that all of them are waited for at once."""
    return schedule_early(http, delay=table_after)


@pytest.fixture(scope="session")
def inboxes(names: Names, aws: Aws) -> Iterator[Callable[..., Inbox]]:
    made: dict[str, Inbox] = {}

    def inbox(queue: str, priority: int = 1) -> Inbox:
        name = names.queue(queue, priority)
        if name not in made:
            made[name] = Inbox(aws("sqs"), name, threads=8 if IS_AWS else 1)
        return made[name]

    yield inbox
    for each in made.values():
        each.stop()


@pytest.fixture(scope="session")
def inbox(inboxes: Callable[..., Inbox], early: dict[str, Job]) -> Callable[..., Inbox]:
    """All that arrived in a queue, or in a priority of it, since the first test that used it."""

    def opened(queue: str, priority: int = 1) -> Inbox:
        return inboxes(queue, priority).open()

    return opened


@pytest.fixture(scope="session")
def holder(names: Names, session: boto3.Session) -> Iterator[Callable[[str, str], boto3.Session]]:
    """The credentials of one who has a managed policy of a queue, and nothing else: `holder("producer", "plain")`."""
    with ExitStack() as stack:
        yield cache(lambda kind, queue: stack.enter_context(role_with(names, kind, queue, session, is_aws=IS_AWS)))


@pytest.fixture(scope="session")
def of_scale() -> Scale:
    """How many jobs to send: few to a local AWS, many to AWS."""
    return lambda few, many: many if IS_AWS else few


@pytest.fixture
def working(inboxes: Callable[..., Inbox], session: boto3.Session, deployment: str) -> Callable[..., Any]:
    """Let a worker of the library process a queue while a context is open."""

    @contextmanager
    def run(queue: str, function: Callable[[Any], None]) -> Iterator[None]:
        inboxes(queue).close()
        worker = Worker(deployment, session=session)
        worker.job(queue)(function)
        with process_jobs(worker):
            yield

    return run
