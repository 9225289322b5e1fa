"""Jobs over HTTP: what is answered where something fails, and what counts as a fault of AWS."""

import json
import random
import string
from datetime import UTC, datetime, timedelta

import pytest

from dueline.aws import clients
from dueline.aws.dynamodb import DynamoTable
from dueline.aws.s3 import S3Payloads
from dueline.aws.sqs import SqsQueue
from dueline.config import metrics
from dueline.core import instant, rows
from dueline.core.job import JobId, State
from dueline.core.status import Outcome, note_outcome
from dueline.errors import Throttled, Unavailable
from dueline.testing import MemoryTable, VirtualClock
from tests.api_harness import CONTEXT, call_api, import_api
from tests.builders import NOW, a_queue, an_id
from tests.contract.answers import raw_answer
from tests.wire import Wire, failing

KEYED = {"payload": 1, "delay": 3600, "key": "order 5"}


def test_job_is_found_by_its_key(api):
    for sent in (KEYED, {"payload": 1, "delay": 3600, "key": "x/&y"}):
        _, job = call_api(api, "POST", "/queues/emails/jobs", sent)
        answer = call_api(api, "GET", "/queues/emails/jobs", query={"key": sent["key"]})
        assert answer == call_api(api, "GET", f"/queues/emails/jobs/{job['id']}")
        del job["created"]
        assert answer == (200, {**job, "payload": 1, "key": sent["key"], "priority": 1})
    for query, status in (({"key": "order"}, 404), ({"key": "ü"}, 400), ({"key": ""}, 400)):
        assert call_api(api, "GET", "/queues/emails/jobs", query=query)[0] == status, query
    refused, answer = call_api(api, "GET", "/queues/emails/jobs", query={"key": "x/&y", "limit": "1", "from": SOON})
    assert (refused, answer["detail"]) == (
        400,
        "key and from, limit are both given: give key for one job, or from, limit for a page of them",
    )


SOON = "2027-01-04T00:00:00Z"


def test_job_is_cancelled_by_its_key(api):
    _, job = call_api(api, "POST", "/queues/emails/jobs", KEYED)
    move = (api, "PATCH", f"/queues/emails/jobs/{job['id']}", {"delay": 7200})
    (_, moved), repeated = (call_api(*move, headers={"idempotency-key": "k"}) for _ in range(2))
    assert repeated == (200, moved)
    del moved["moved_from"]
    cancelled = (200, {**moved, "state": "cancelled"})
    assert call_api(api, "DELETE", "/queues/emails/jobs", query={"key": "order 5"}) == cancelled
    _, job = call_api(api, "POST", "/queues/emails/jobs", {"payload": 1, "delay": 3000, "key": "late"})
    pk, sk = rows.state_key(JobId.parse(job["id"]).partition)
    api.DEPLOYMENT.table.write([{"pk": pk, "sk": sk, "fence": "9999"}])
    assert call_api(api, "DELETE", "/queues/emails/jobs", query={"key": "late"})[0] == 202
    for query, status in (({"key": "none"}, 404), ({"key": ""}, 400), ({}, 400), ({"id": "x"}, 400)):
        assert call_api(api, "DELETE", "/queues/emails/jobs", query=query)[0] == status, query


def test_jobs_are_cancelled_by_their_keys(api):
    _, job = call_api(api, "POST", "/queues/emails/jobs", KEYED)
    status, answer = call_api(api, "POST", "/queues/emails/cancellations", {"keys": ["none", "order 5", 7]})
    none, cancelled, wrong = answer["jobs"]
    assert (status, cancelled["id"], cancelled["state"]) == (200, job["id"], "cancelled")
    assert [each["error"]["code"] for each in (none, wrong)] == ["job_not_found", "invalid_job"]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"ids": ["x"], "keys": ["y"]}, "ids and keys are both given: give one of them"),
        ({}, "ids and keys are both missing: give one of them"),
        ({"keys": []}, "keys is []"),
        ({"keys": ["x"], "id": "y"}, "id is no field: there are ids, keys"),
        (["x"], "body is"),
    ],
)
def test_cancellations_take_ids_or_keys(api, body, detail):
    status, answer = call_api(api, "POST", "/queues/emails/cancellations", body)
    assert (status, answer["detail"].startswith(detail)) == (400, True), answer


# Faults of AWS


@pytest.fixture
def call(api, capsys):
    """Sends a request, and returns the status, the body, and how many faults were counted."""

    def call(method, path, body=None):
        status, answer = call_api(api, method, path, body)
        reply = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
        counted = [line[metrics.API_FAULTS] for line in reply if metrics.API_FAULTS in line]
        assert all(line["deployment"] == "d" for line in reply if metrics.API_FAULTS in line)
        return status, answer, sum(counted)

    return call


def fail_table(api, monkeypatch, error):
    wire = Wire()
    wire.around = failing(error)
    monkeypatch.setattr(api.DEPLOYMENT, "_table", lambda: wire.to("table", MemoryTable()))


def test_job_the_table_throttles_is_buffered(api, monkeypatch, capsys):
    fail_table(api, monkeypatch, Throttled("slow down"))
    status, answer = call_api(api, "POST", "/queues/emails/jobs", {"payload": 1, "delay": 3600})
    buffered = [str(delivery.message.job().id) for delivery in api.DEPLOYMENT.inbound.deliveries]
    assert (status, answer["state"], buffered) == (201, "accepted", [answer["id"]])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"deployment": "d", "queue": "emails", "Submitted": 1, "Buffered": 1} in lines


def test_jobs_that_workers_recorded_are_listed_by_state(monkeypatch):
    with import_api(monkeypatch, a_queue(track=True), a_queue(name="invoices")) as api:
        ids = [an_id(due=NOW + timedelta(seconds=at)) for at in range(3)]
        for id, state in zip(ids, (State.FAILED, State.SUCCEEDED, State.FAILED), strict=True):
            outcome = Outcome(state=state, attempts=3, started=NOW, ended=NOW, error="KeyError", kind="welcome")
            note_outcome(
                id, outcome, expires=api.DEPLOYMENT.clock.now() + timedelta(days=1), table=api.DEPLOYMENT.table
            )
        query = {"state": "failed", "kind": "welcome", "limit": "1"}
        status, page = call_api(api, "GET", "/queues/emails/jobs", query=query)
        [job] = page["jobs"]
        assert (status, job["state"], job["due"], job["attempts"], job["error"]) == (
            (200, "failed", instant.text(ids[2].due), 3, "KeyError")
        )
        _, rest = call_api(api, "GET", "/queues/emails/jobs", query=query | {"next": page["next"]})
        assert [job["due"] for job in rest["jobs"]] == [instant.text(ids[0].due)]
        _, every = call_api(api, "GET", "/queues/emails/jobs", query={"state": "attempted"})
        assert [job["state"] for job in every["jobs"]] == ["failed", "succeeded", "failed"]
        for queue, state, wrong in (
            ("emails", "parked", 'state is "parked": Input should be'),
            ("invoices", "failed", "track of queue invoices is false: it must be true"),
        ):
            status, reply = call_api(api, "GET", f"/queues/{queue}/jobs", query={"state": state})
            assert (status, wrong in reply["detail"]) == (400, True), reply["detail"]


def test_early_reschedule_is_no_fault_of_aws(call):
    # By this machine's clock.
    id = an_id(due=datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1))
    status, reply, faults = call("PATCH", f"/queues/emails/jobs/{id}", {"delay": 9000})
    assert (status, reply["code"], faults) == (503, "not_yet", 0)
    assert reply["detail"].startswith(f"job {id} is not in the table: it may still be on its way there")


def test_fault_of_aws_is_counted_and_not_quoted(api, call, monkeypatch):
    fail_table(api, monkeypatch, Unavailable("reading: InternalServerError: host 10.0.0.1"))
    status, reply, faults = call("GET", f"/queues/emails/jobs/{an_id()}")
    assert (status, reply["code"], faults) == (503, "unavailable", 1)
    assert "10.0.0.1" not in reply["detail"]
    status, reply, faults = call("POST", "/queues/emails/cancellations", {"ids": [str(an_id())]})
    assert (status, reply["jobs"][0]["error"]["status"], faults) == (200, 503, 1)


def test_throttling_and_a_deadline_are_no_faults(api, call, monkeypatch):
    fail_table(api, monkeypatch, Throttled("reading: slow down"))
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
    ("POST", "/queues/emails/jobs", {"jobs": [{"payload": 1, "key": str(each), "delay": 3600} for each in range(9)]}),
    ("PATCH", f"/queues/emails/jobs/{an_id()}", {"delay": 9000}),
    ("DELETE", f"/queues/emails/jobs/{an_id()}", None),
    ("POST", "/queues/emails/cancellations", {"ids": [str(an_id()) for _ in range(40)]}),
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
        content = ANSWERS.get(request.headers.get("X-Amz-Target", b"").decode().rpartition(".")[2], {})
        return raw_answer(200, json.dumps(content).encode(), {"x-amzn-requestid": "1"})

    def made(service):
        client = clients.client(service, longest=api.LONGEST_REQUEST)
        client.meta.events.register("before-send", answered)
        return client

    monkeypatch.setattr(clients, "DEADLINE", clients.Deadline(monotonic=clock.monotonic))
    monkeypatch.setattr(CONTEXT, "get_remaining_time_in_millis", lambda: 20_000 - clock.monotonic() * 1000)
    table, sqs, s3 = DynamoTable(made("dynamodb"), "jobs", state="state"), made("sqs"), made("s3")
    monkeypatch.setattr(api.DEPLOYMENT, "_table", lambda: table)
    monkeypatch.setattr(type(api.DEPLOYMENT), "payloads", S3Payloads(lambda: s3, "b"))
    for name, value in {"clock": clock, "spread": map, "queue": lambda name: SqsQueue(sqs, name)}.items():
        monkeypatch.setattr(api.DEPLOYMENT, name, value)
    return clock


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
def test_requests_are_answered_in_time(api, slow, method, path, body):
    status, reply = call_api(api, method, path, body)
    assert slow.monotonic() <= 20
    assert status in (200, 201, 202, 404, 503)
    if status == 503 and path == "/queues/emails/jobs":
        assert JobId.parse(reply["id"]).queue == "emails"
