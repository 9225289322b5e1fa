"""A deployed Dueline as its users have it: a name, `dueline.Client`, HTTP and boto3.

It is deployed into a local AWS, or, with ACCEPTANCE=aws, it is the sandbox in the account of the AWS credentials.
"""

import os
from contextlib import ExitStack, contextmanager
from functools import cache

import boto3
import httpx
import pytest

from dueline import Client, Worker
from dueline.config.names import Names
from local.emulator import Emulator
from tests.acceptance import sandbox
from tests.acceptance.early import schedule_early, trust
from tests.acceptance.inbox import Inbox
from tests.acceptance.rights import SigV4, role_with
from tests.e2e.deployed import RetryingTransport, as_administrator, deployed_locally
from tests.e2e.deployed import working as process_jobs
from tests.waiting import HANG_SECONDS, PATIENT

IS_AWS = os.environ.get("ACCEPTANCE") == "aws"
FIGURE = "figure: "
WAYS = {"invoked": {"transport": "invoke"}, "over http": {"transport": "http"}, "direct": {"direct": True}}
each_way = pytest.mark.parametrize("client", WAYS.values(), ids=WAYS, indirect=True)


def pytest_collection_modifyitems(items):
    for item in items:
        if not IS_AWS and (mark := item.get_closest_marker("aws_only")):
            item.add_marker(pytest.mark.skip(reason=f"on AWS only: {mark.args[0]}"))


def pytest_terminal_summary(terminalreporter):
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
def figure(record_property):
    """Put a figure into the report, and return it, to be held to its bound."""

    def note(name, value):
        record_property(f"{FIGURE}{name}", value)
        return value

    return note


@pytest.fixture(scope="session")
def deployment(tmp_path_factory):
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
def names(deployment):
    return Names(deployment)


@pytest.fixture(scope="session")
def session(deployment):
    return boto3.Session()


@pytest.fixture(scope="session")
def aws(session):
    """Clients of AWS's services, with the rights of the one who runs the tests."""
    return cache(session.client)


@pytest.fixture(scope="session")
def url_of(aws):
    """The URL of an SQS queue, by its name."""
    return lambda name: str(aws("sqs").get_queue_url(QueueName=name)["QueueUrl"])


@pytest.fixture(scope="session")
def clients(deployment):
    """One client for each way of `Client.connect`."""
    return cache(lambda **way: Client.connect(deployment, session=boto3.Session(), patience=PATIENT, **way))


# Of a wider scope, its parameters would change the order of the tests, of which some disturb what others wait for.
@pytest.fixture
def client(request, clients):
    return clients(**getattr(request, "param", {"transport": "invoke"}))


@pytest.fixture(scope="session")
def http_of(names, aws):
    """HTTP clients of the API, which sign with the credentials of a session, or not at all."""
    url = aws("ssm").get_parameter(Name=names.api_url_parameter)["Parameter"]["Value"]
    with ExitStack() as stack:

        def open_client(session):
            auth, transport = SigV4(session) if session else None, RetryingTransport(verify=trust())
            return stack.enter_context(httpx.Client(base_url=url, auth=auth, timeout=HANG_SECONDS, transport=transport))

        yield open_client


@pytest.fixture(scope="session")
def http(http_of, session):
    """An HTTP client of the API, by its gateway."""
    return http_of(session)


@pytest.fixture(scope="session")
def table_after(http):
    """After how many seconds a job must be due to go by the table, with time for the request to be sent."""
    return float(http.get("/queues").json()["queues"][0]["direct_horizon"] + (5 if IS_AWS else 1))


@pytest.fixture(scope="session")
def early(http, table_after):
    """Jobs by the table for several tests, scheduled first, so that all of them are waited for at once."""
    return schedule_early(http, delay=table_after)


@pytest.fixture(scope="session")
def inboxes(names, aws):
    made = {}

    def inbox(queue, priority=1):
        name = names.queue(queue, priority)
        if name not in made:
            made[name] = Inbox(aws("sqs"), name, threads=8 if IS_AWS else 1)
        return made[name]

    yield inbox
    for each in made.values():
        each.stop()


@pytest.fixture(scope="session")
def inbox(inboxes, early):
    """All that arrived in a queue, or in a priority of it, since the first test that used it."""

    def opened(queue, priority=1):
        return inboxes(queue, priority).open()

    return opened


@pytest.fixture(scope="session")
def holder(names, session):
    """The credentials of one who has a managed policy of a queue, and nothing else: `holder("producer", "plain")`."""
    with ExitStack() as stack:
        yield cache(lambda kind, queue: stack.enter_context(role_with(names, kind, queue, session, is_aws=IS_AWS)))


@pytest.fixture(scope="session")
def of_scale():
    """How many jobs to send: few to a local AWS, many to AWS."""
    return lambda few, many: many if IS_AWS else few


@pytest.fixture
def working(inboxes, session, deployment):
    """Let a worker of the library process a queue while a context is open."""

    @contextmanager
    def run(queue, function):
        inboxes(queue).close()
        worker = Worker(deployment, session=session)
        worker.job(queue)(function)
        with process_jobs(worker):
            yield

    return run
