"""`dueline console`, and a browser before it."""

import pytest

from dueline import Retries, State, Worker
from dueline.config.names import Names
from tests.e2e.console.chromium import chromium, skip_without_chromium
from tests.e2e.console.page import Page
from tests.e2e.console.serving import administrator, serving
from tests.e2e.deployed import environment_of, working
from tests.e2e.emulated_iam import key_of
from tests.waiting import wait_until


@pytest.fixture(scope="package", autouse=True)
def _needs_chromium():
    skip_without_chromium()


@pytest.fixture(scope="package")
def browser(_needs_chromium):
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="package")
def consoles(emulator, endpoints):
    """That of an administrator, the same but read-only, and that of a service that may only produce for emails."""
    key = key_of(emulator, "producer", Names(endpoints.name).policy("emails", "producer"))
    theirs = dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), key, strict=True))
    env = environment_of(emulator, endpoints.name)
    with serving({"all": (env,), "read-only": (env, "--read-only"), "producer": (env | theirs,)}) as consoles:
        yield consoles


@pytest.fixture(scope="package")
def served(consoles):
    return consoles["all"]


@pytest.fixture
def page(browser, served):
    return Page(browser, served)


@pytest.fixture
def producer_page(browser, consoles):
    """The page of a service that has the managed policy for producers of emails, and nothing else."""
    return Page(browser, consoles["producer"])


@pytest.fixture(scope="package")
def client(emulator, endpoints):
    """The client of a team that schedules jobs."""
    with administrator(emulator, endpoints.name) as client:
        rule = {"cron": "0 9 1 1 *", "zone": "Europe/Berlin"}
        client.schedules("reminders").put("yearly", **rule, payload={"to": "all"}, owner="queues.yaml")
        yield client
    # Other tests work at this queue, too.
    for urls in (endpoints.queues, endpoints.dead_letter_queues):
        emulator.client("sqs").purge_queue(QueueUrl=urls["reminders"])


@pytest.fixture
def dead_job(client):
    """A job of a queue that tracks, which its worker has given up."""
    worker = Worker("e2e")

    @worker.job("reminders", retry=Retries(attempts=1))
    def give_up(_):
        raise LookupError("no such mailbox")

    job = client.schedule("reminders", {"to": "nobody"})
    with working(worker):
        assert wait_until(lambda: client.get(job.id).state is State.FAILED)
    return job


@pytest.fixture(scope="package")
def add_dead_letter(emulator, endpoints):
    """Puts a job into a queue's dead-letter queue, as a worker does that has given it up."""
    sqs = emulator.client("sqs")

    def put(queue, id, payload, *, error, reason):
        values = {"dueline-id": id, "dueline-due": "2026-11-21T07:05:00.000Z", "dueline-error": error}
        values |= {"dueline-reason": reason, "dueline-attempts": "10", "dueline-stack": f"in send\n{error}: {reason}"}
        attributes = {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}
        url = endpoints.dead_letter_queues[queue]
        sqs.send_message(QueueUrl=url, MessageBody=payload, MessageAttributes=attributes)

    yield put
    sqs.close()
