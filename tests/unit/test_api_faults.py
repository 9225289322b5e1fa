"""What the HTTP API counts as a fault of AWS, for the alarm on it, and what it does not."""

import json
import random
import string

import pytest

from dueline.aws import clients
from dueline.aws.dynamodb import DynamoTable
from dueline.aws.s3 import S3Payloads
from dueline.aws.sqs import SqsQueue
from dueline.config import metrics
from dueline.core.job import JobId
from dueline.errors import Throttled, Unavailable
from dueline.testing import MemoryTable, VirtualClock
from tests.api_harness import CONTEXT, call_api, import_api
from tests.builders import NOW, a_queue, an_id
from tests.contract.answers import answer


@pytest.fixture
def api(monkeypatch):
    with import_api(monkeypatch, a_queue()) as api:
        yield api


@pytest.fixture
def call(api, capsys):
    """Sends a request, and returns the status, the body, and how many faults were counted."""

    def call(method, path, body=None):
        status, answer = call_api(api, method, path, body=None if body is None else json.dumps(body))
        reply = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
        counted = [line[metrics.API_FAULTS] for line in reply if metrics.API_FAULTS in line]
        assert all(line["deployment"] == "d" for line in reply if metrics.API_FAULTS in line)
        return status, answer, sum(sum(each) for each in counted)

    return call


class Failing(MemoryTable):
    """A table that cannot be queried."""

    def __init__(self, error):
        super().__init__()
        self._error = error

    def read(self, keys):
        raise self._error

    def add(self, row):
        raise self._error


def test_reschedule_before_ingest_is_no_fault_of_aws(call):
    id = an_id()
    status, reply, faults = call("PATCH", f"/queues/emails/jobs/{id}", {"delay": 9000})
    assert (status, reply["code"], faults) == (503, "not_yet", 0)
    assert reply["detail"].startswith(f"job {id} is not in the table: it may still be on its way there")


def test_fault_of_aws_is_counted_and_not_quoted(api, call, monkeypatch):
    failing = Failing(Unavailable("reading: InternalServerError: host 10.0.0.1"))
    monkeypatch.setattr(type(api.DEPLOYMENT), "table", failing)
    status, reply, faults = call("GET", f"/queues/emails/jobs/{an_id()}")
    assert (status, reply["code"], faults) == (503, "unavailable", 1)
    assert "10.0.0.1" not in reply["detail"]


def test_fault_of_one_of_many_is_counted(api, call, monkeypatch):
    monkeypatch.setattr(type(api.DEPLOYMENT), "table", Failing(Unavailable("writing: InternalServerError")))
    status, reply, faults = call("POST", "/queues/emails/cancellations", {"ids": [str(an_id())]})
    assert (status, reply["jobs"][0]["error"]["status"], faults) == (200, 503, 1)


def test_throttling_and_a_deadline_are_no_faults(api, call, monkeypatch):
    monkeypatch.setattr(type(api.DEPLOYMENT), "table", Failing(Throttled("reading: slow down")))
    status, _, faults = call("GET", f"/queues/emails/jobs/{an_id()}")
    assert (status, faults) == (429, 0)
    monkeypatch.setattr(CONTEXT, "get_remaining_time_in_millis", lambda: 0)
    _, reply, faults = call("POST", "/queues/emails/cancellations", {"ids": [str(an_id())]})
    assert (reply["jobs"][0]["error"]["code"], faults) == ("not_yet", 0)


COUNTED = ("", "NotVisible", "Delayed")
ANSWERS = {
    "BatchGetItem": {"Responses": {}, "UnprocessedKeys": {}},
    "BatchWriteItem": {"UnprocessedItems": {}},
    "Query": {"Items": []},
    "UpdateItem": {"Attributes": {}},
    "GetQueueAttributes": {"Attributes": {f"ApproximateNumberOfMessages{each}": "0" for each in COUNTED}},
    "SendMessageBatch": {"Successful": [{"Id": str(each)} for each in range(10)], "Failed": []},
}
LARGE = "".join(random.Random(1).choices(string.ascii_letters, k=30_000))
REQUESTS = [
    ("POST", "/queues/emails/jobs", {"payload": 1, "delay": 5}),
    ("POST", "/queues/emails/jobs", {"payload": LARGE, "delay": 3600, "key": "K"}),
    ("POST", "/queues/emails/jobs", {"payload": LARGE, "delay": 5, "key": "K"}),
    ("POST", "/queues/emails/jobs", {"jobs": [{"payload": 1, "key": str(each), "delay": 3600} for each in range(9)]}),
    ("PATCH", f"/queues/emails/jobs/{an_id()}", {"delay": 9000}),
    ("DELETE", f"/queues/emails/jobs/{an_id()}", None),
    ("POST", "/queues/emails/cancellations", {"ids": [str(an_id()) for _ in range(40)]}),
    ("GET", "/queues/emails/jobs", None),
    ("GET", "/queues/emails", None),
    ("PUT", "/queues/emails/schedules/digest", {"every": 3600, "payload": 1}),
    ("GET", "/queues/emails/schedules/digest/history", None),
]


@pytest.fixture
def slow(api, monkeypatch):
    """Has AWS answer each request of the API's own clients after 4.9 s, by a clock that this moves; returns that."""
    clock = VirtualClock(NOW)

    def answered(request, **_):
        clock.sleep(4.9)
        return answer(200, ANSWERS.get(request.headers.get("X-Amz-Target", b"").decode().rpartition(".")[2], {}))

    def made(make):
        client = make(longest=api.LONGEST_REQUEST)
        client.meta.events.register("before-send", answered)
        return client

    monkeypatch.setattr(clients, "DEADLINE", clients.Deadline(monotonic=clock.monotonic))
    monkeypatch.setattr(CONTEXT, "get_remaining_time_in_millis", lambda: 20_000 - clock.monotonic() * 1000)
    table, sqs, s3 = DynamoTable(made(clients.dynamodb), "jobs", state="state"), made(clients.sqs), made(clients.s3)
    monkeypatch.setattr(type(api.DEPLOYMENT), "table", table)
    monkeypatch.setattr(type(api.DEPLOYMENT), "payloads", S3Payloads(lambda: s3, "b"))
    for name, value in {"clock": clock, "spread": map, "queue": lambda name: SqsQueue(sqs, name)}.items():
        monkeypatch.setattr(api.DEPLOYMENT, name, value)
    return clock


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
def test_every_request_is_answered_before_the_function_ends(api, slow, method, path, body):
    status, reply = call_api(api, method, path, body=None if body is None else json.dumps(body))
    assert slow.monotonic() <= 20
    assert status in (200, 201, 202, 404, 503)
    if status == 503 and path == "/queues/emails/jobs":
        assert JobId.parse(reply["id"]).queue == "emails"


def test_job_not_written_in_time_is_503_with_its_id(api, slow):
    method, path, body = REQUESTS[1]
    status, reply = call_api(api, method, path, body=json.dumps(body))
    assert (status, JobId.parse(reply["id"]).queue) == (503, "emails")


@pytest.mark.parametrize("path", ["/queues/emails/jobs/7", "/queues/nobody/jobs/7", "/nothing"])
def test_errors_of_callers_are_no_faults(call, path):
    status, _, faults = call("GET", path)
    assert (status, faults) == (404, 0)
