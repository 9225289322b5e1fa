"""The client over real sockets, against an API that answers as its script says."""

import hashlib
import json
import logging
import math
import traceback
import uuid
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from urllib.parse import parse_qs, urlsplit

import pytest

from dueline import Client, Control, Job, NewJob, Patience, Rate, Route, ScheduledJob, State, errors
from dueline.aws.api_transport import connect
from dueline.client.http import HttpApi
from dueline.core import instant
from dueline.core.job import JobId, Partition
from dueline.core.overview import Overview
from dueline.core.ports import Depth
from dueline.core.queue_settings import QueueSettings
from dueline.core.retry import LANES
from dueline.errors import DuelineError, InvalidJob, JobNotFound, KeyReused, QueueNotFound, Unavailable
from dueline.testing import VirtualClock
from tests.builders import NOW, an_id
from tests.fake_api_server import (
    CUT_OFF,
    DROPPED,
    NO_HTTP,
    Reply,
    default_reply,
    job_json,
    json_reply,
    problem,
    problem_reply,
)

SECRET = "the-secret-of-a-payload"  # noqa: S105
BUSY = problem_reply(503, "unavailable")
HOUR = timedelta(hours=1)
TRANSIENT = {
    "busy": BUSY,
    "dropped": DROPPED,
    "cut off": CUT_OFF,
    "no HTTP": NO_HTTP,
    "no JSON": Reply(status=201, body=b"<html>"),
    "no object": json_reply([], 201),
    "no job": json_reply({"id": 5}, 201),
    "no jobs": json_reply({"jobs": []}),
}
# What API Gateway refuses itself has no code; tests/unit/test_errors.py has the errors by their codes.
ERRORS = {
    (403, None): errors.Forbidden,
    (404, None): errors.DeploymentNotFound,
    (413, None): errors.PayloadTooLarge,
    (429, None): errors.Throttled,
    (500, None): errors.Unavailable,
    (400, "of a later version"): errors.InvalidJob,
    (302, None): errors.DuelineError,
}


class Sleepless(VirtualClock):
    """A clock that remembers how long it was made to wait."""

    def __init__(self):
        super().__init__(NOW)
        self.waits = []

    def sleep(self, seconds):
        self.waits.append(seconds)
        super().sleep(seconds)


@pytest.fixture
def clock():
    return Sleepless()


@pytest.fixture
def client(api_server, clock):
    return a_client(api_server, clock)


def a_client(api_server, clock, *, jitter=lambda: 0.5, **patience):
    http = connect("dueline", url=api_server.url, session=None, lanes=LANES)
    api = HttpApi(lambda: http, clock=clock)
    return Client(api, clock=clock, jitter=jitter, patience=Patience(**patience))


def test_payload_is_written_with_the_default(api_server):
    client = Client.connect(url=api_server.url, default=str)
    client.schedule("emails", {"on": NOW})
    client.schedule_many("emails", [NewJob(payload=NOW)] * 2)
    first, many = (request.json for request in api_server.requests)
    assert [job["payload"] for job in (first, *many["jobs"])] == [{"on": str(NOW)}, str(NOW), str(NOW)]
    for default in (None, lambda value: {1}):
        with pytest.raises(InvalidJob, match=r"payload is not JSON|payload nests too deep"):
            Client.connect(url=api_server.url, default=default).schedule("emails", {"on": NOW})
    with pytest.raises(InvalidJob, match="payload is not JSON"):
        Client.connect(url=api_server.url, default=lambda _: next(iter(()))).schedule("emails", object())


def calls(api_server):
    return [(request.method, request.path) for request in api_server.requests]


def queries(api_server):
    return [parse_qs(urlsplit(request.path).query) for request in api_server.requests]


def in_batches(api_server):
    return [[job["key"] for job in request.json.get("jobs", [request.json])] for request in api_server.requests]


def numbers(results):
    return [int(result.id[-12:]) for result in results]


# Schedule


def test_job_is_posted_and_returned(client, api_server):
    job = client.schedule("emails", {"to": "ann", "é": [1, None]}, delay=3600, key="k-7")
    id = str(an_id(uid=job.id[-36:], due=NOW))
    assert job == Job(id=id, queue="emails", due=NOW, route=Route.TABLE, state="accepted")
    assert calls(api_server) == [("POST", "/queues/emails/jobs")]
    posted = api_server.requests[0].json
    assert posted.pop("idempotency_key")
    assert posted == {"payload": {"to": "ann", "é": [1, None]}, "delay": 3600, "key": "k-7"}


REPLACING = {"kind": "welcome", "tenant": "acme", "priority": 2, "key": "k", "if_exists": "replace"}


@pytest.mark.parametrize(
    ("options", "posted"),
    [
        ({}, {}),
        ({"delay": 0}, {"delay": 0}),
        ({"delay": 1.5}, {"delay": 1.5}),
        ({"delay": timedelta(minutes=2)}, {"delay": 120.0}),
        ({"at": datetime(2027, 1, 4, 9, tzinfo=timezone(HOUR))}, {"at": "2027-01-04T08:00:00.000Z"}),
        ({"at": datetime(2027, 1, 4, microsecond=1, tzinfo=UTC)}, {"at": "2027-01-04T00:00:00.001Z"}),
        ({"priority": 1, "key": "k", "if_exists": "keep"}, {"key": "k"}),
        (REPLACING, REPLACING),
    ],
)
def test_options_are_posted_unchanged(client, api_server, options, posted):
    client.schedule("emails", None, idempotency_key="c", **options)
    assert api_server.requests[0].json == {"payload": None, "idempotency_key": "c", **posted}


@pytest.mark.parametrize("wrong", [NewJob(payload=1, tenant=uuid.UUID(int=0)), {"payload": 1}, None], ids=type)
def test_schedule_many_survives_a_wrong_type(client, api_server, wrong):
    first, error, last = client.schedule_many("emails", [NewJob(payload=1), wrong, NewJob(payload=2)])
    assert (type(first), type(error), type(last)) == (Job, InvalidJob, Job)


# Look up and cancel


ATTEMPTS = {"attempts": 2, "started": "2026-11-21T07:05:00.000Z"}
ENDED = {**ATTEMPTS, "ended": "2026-11-21T07:05:01.500Z", "error": "TimeoutError", "kind": "welcome"}


def test_tracked_jobs_are_listed_by_state(client, api_server):
    ids = [an_id(), an_id()]
    api_server.script = [
        json_reply({"jobs": [job_json(ids[0], "failed") | ENDED], "next": "p-2"}),
        json_reply({"jobs": [], "next": None}),
        json_reply({"jobs": [job_json(ids[1], "running") | ATTEMPTS], "next": None}),
    ]
    [failed] = client.tracked_jobs("emails", state=State.FAILED, kind="welcome", start=NOW)
    assert (failed.id, failed.attempts, failed.started, failed.error) == (str(ids[0]), 2, NOW, "TimeoutError")
    assert (failed.ended, failed.kind) == (NOW + timedelta(seconds=1.5), "welcome")
    [running] = client.tracked_jobs("emails")
    assert (running.state, running.attempts, running.ended, running.error) == (State.RUNNING, 2, None, None)
    first = {"limit": ["100"], "state": ["failed"], "kind": ["welcome"], "from": ["2026-11-21T07:05:00.000Z"]}
    assert queries(api_server) == [first, first | {"next": ["p-2"]}, {"limit": ["100"], "state": ["attempted"]}]
    with pytest.raises(InvalidJob, match="state is scheduled: it must be one of running, dispatched"):
        client.tracked_jobs("emails", state=State.SCHEDULED)


def test_cancel_many_sends_large_batches(client, api_server):
    ids = [str(an_id()) for _ in range(1040)]
    results = client.cancel_many(iter(["no id", *ids]))
    assert [type(result) for result in results] == [JobNotFound, *[State] * 1040]
    assert sorted(id for request in api_server.requests for id in request.json["ids"]) == sorted(ids)
    # They get smaller where answers are slow, as on a busy machine.
    assert len(api_server.requests) < len(ids) / 10


def test_cancel_many_groups_by_queue(client, api_server):
    ids = [str(an_id(partition=Partition(queue=queue, number=0))) for queue in "aabbbac"]
    of_a = [job_json(JobId.parse(id)) for id in ids[:2]]
    api_server.script = [json_reply({"jobs": [*of_a, {"error": problem(404, "job_not_found")}]})]
    *first, sixth, last = client.cancel_many(ids)
    assert (first, last) == ([State.ACCEPTED] * 2 + [State.CANCELLED] * 3, State.CANCELLED)
    assert type(sixth) is JobNotFound
    assert calls(api_server) == [
        ("POST", "/queues/a/cancellations"),
        ("POST", "/queues/b/cancellations"),
        ("DELETE", f"/queues/c/jobs/{ids[-1]}"),
    ]
    assert [request.json["ids"] for request in api_server.requests[:2]] == [[*ids[:2], ids[5]], ids[2:5]]


# By key


def test_jobs_are_found_and_cancelled_by_key(client, api_server):
    client.get(queue="emails", key="order 5/7&8=")
    assert client.cancel(queue="emails", key="order 5") is State.CANCELLED
    first, error, last = client.cancel_many(queue="emails", keys=["a", "", "b"])
    assert (first, type(error), last) == (State.CANCELLED, InvalidJob, State.CANCELLED)
    assert calls(api_server) == [
        ("GET", "/queues/emails/jobs?key=order%205%2F7%268%3D"),
        ("DELETE", "/queues/emails/jobs?key=order%205"),
        ("POST", "/queues/emails/cancellations"),
    ]
    assert api_server.requests[-1].json == {"keys": ["a", "b"]}


def test_look_up_of_what_waits_has_its_payload(client, api_server):
    waits = {**job_json(an_id(), "scheduled"), "payload": None, "key": "k", "kind": "welcome", "moved_from": "old"}
    api_server.script = [json_reply(waits), json_reply(waits | {"payload_text": "<xml>"})]
    job, not_json = (client.get(str(an_id())) for _ in range(2))
    assert isinstance(job, ScheduledJob)
    assert (job.payload, job.key, job.kind, job.moved_from) == (None, "k", "welcome", "old")
    assert (not_json.payload, not_json.payload_text) == (None, "<xml>")
    assert "xml" not in repr(not_json)


# Reschedule


def test_job_is_moved_under_one_key(client, api_server):
    moved = client.reschedule(id := str(an_id()), at=NOW + timedelta(microseconds=1))
    at = "2026-11-21T07:05:00.001Z"
    assert (instant.text(moved.due), moved.state) == (at, State.SCHEDULED)
    api_server.script = [BUSY, DROPPED]
    client.reschedule(id, delay=90)
    assert calls(api_server) == [("PATCH", f"/queues/emails/jobs/{id}")] * 4
    assert [request.json for request in api_server.requests] == [{"at": at}, *[{"delay": 90}] * 3]
    another, first, second, third = [request.headers["idempotency-key"] for request in api_server.requests]
    assert first == second == third != another


# List


def a_page(ids, after=None, **more):
    return json_reply({"jobs": [job_json(id, "scheduled") | {"payload": {"n": 1}} | more for id in ids], "next": after})


def test_jobs_are_listed_lazily_by_page(client, api_server):
    ids = [an_id() for _ in range(3)]
    # An empty page is not the last one.
    api_server.script = [a_page(ids[:2], "p-2"), BUSY, a_page([], "p-3"), a_page(ids[2:])]
    jobs = client.jobs("emails", start=NOW, end=NOW + timedelta(days=1))
    assert api_server.requests == []
    assert [next(jobs).id, next(jobs).id] == [str(id) for id in ids[:2]]
    assert len(api_server.requests) == 1
    assert [(job.id, job.state, job.payload) for job in jobs] == [(str(ids[2]), State.SCHEDULED, {"n": 1})]
    assert {urlsplit(path).path for _, path in calls(api_server)} == {"/queues/emails/jobs"}
    first = {"from": ["2026-11-21T07:05:00.000Z"], "to": ["2026-11-22T07:05:00.000Z"], "limit": ["100"]}
    assert queries(api_server) == [first, *(first | {"next": [page]} for page in ("p-2", "p-2", "p-3"))]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"start": "now"}, "start is 'now': it must be a datetime"),
        ({"start": datetime(2027, 1, 4)}, "start is 2027-01-04T00:00:00: it must have a time zone"),  # noqa: DTZ001
        ({"start": datetime.min.replace(tzinfo=timezone(HOUR))}, "start is 0001-01-01T00:00:00.01:00: it"),
        ({"kind": "A"}, "kind is 'A': it must have 1 to 64 of"),
    ],
)
def test_invalid_listing_is_refused(client, api_server, options, named):
    with pytest.raises(InvalidJob, match=named):
        client.jobs("emails", **options)
    with pytest.raises(QueueNotFound):
        client.jobs("no/queue")
    assert api_server.requests == []


# Queues


SETTINGS = {"partitions": 4, "retention": 604800, "precise": True, "priorities": 2}
RATE = "/queues/emails/rate"


def test_queues_are_reported_with_their_settings(client, api_server):
    api_server.queues_reply = None
    queue = {"queue": "emails", **SETTINGS, "track": True, "of a later version": 5}
    api_server.script = [json_reply({"queues": [queue]})]
    assert client.queues() == [
        QueueSettings(name="emails", partitions=4, retention=timedelta(days=7), precise=True, priorities=2, track=True)
    ]
    assert api_server.requests[0].path == "/queues"


@pytest.mark.parametrize(("next_due", "fence_age"), [("2026-11-21T07:05:00.000Z", 3.5), (None, None)])
def test_a_queue_reports_how_it_is_doing(client, api_server, next_due, fence_age):
    depth = {"waiting": 1, "in_flight": 2, "delayed": 3}
    doing = {"scheduled": 7, "more_scheduled": False, "next_due": next_due, "fence_age": fence_age, "dead": 4}
    doing |= {**depth, "paused": True, "rate": "50/s", "levels": [{"priority": 1, **depth}]}
    api_server.script = [json_reply({"queue": "emails", **SETTINGS, **doing})]
    assert client.queue("emails") == Overview(
        scheduled=7,
        more_scheduled=False,
        next_due=NOW if next_due else None,
        fence_age=fence_age,
        levels=(Depth(**depth),),
        dead=4,
        control=Control(paused=True, rate=Rate(jobs=50)),
    )
    assert api_server.requests[0].path == "/queues/emails"


CONTROLS = {
    "pause": (lambda client: client.pause("emails"), "POST", "/queues/emails/pause", b""),
    "resume": (lambda client: client.resume("emails"), "POST", "/queues/emails/resume", b""),
    "a rate": (lambda client: client.set_rate("emails", Rate(jobs=90, seconds=60)), "PUT", RATE, b'{"rate": "90/m"}'),
    "a text": (lambda client: client.set_rate("emails", "90/m"), "PUT", RATE, b'{"rate": "90/m"}'),
    "no limit": (lambda client: client.set_rate("emails", None), "PUT", RATE, b'{"rate": null}'),
}


@pytest.mark.parametrize(("call", "method", "path", "body"), CONTROLS.values(), ids=list(CONTROLS))
def test_controls_return_the_state_of_the_queue(client, api_server, call, method, path, body):
    api_server.script = [BUSY, json_reply({"queue": "emails", "paused": True, "rate": "90/m"})]
    assert call(client) == Control(paused=True, rate=Rate(jobs=90, seconds=60))
    assert calls(api_server) == [(method, path)] * 2
    assert [request.body for request in api_server.requests] == [body] * 2
    api_server.script = [json_reply({"queue": "emails", "paused": False, "rate": None})]
    assert call(client) == Control()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"jobs": 5, "next": None, "queues": [5]},
        {"queues": None},
        {"queues": [{"queue": "emails", **SETTINGS, "retention": 10**20}]},
    ],
    ids=str,
)
def test_an_empty_answer_is_tried_again(api_server, clock, answer):
    api_server.queues_reply, api_server.respond = None, lambda _: json_reply(answer)
    client = a_client(api_server, clock, attempts=2)
    for call in (client.queues, lambda: client.queue("emails"), lambda: list(client.jobs("emails"))):
        api_server.requests.clear()
        with pytest.raises(Unavailable, match="holds no"):
            call()
        assert len(api_server.requests) == 2


# Schedule many


def test_requests_have_5_mb_at_most(client, api_server):
    quotes = '"' * 100_000
    jobs = [NewJob(payload=quotes, key=str(n)) for n in range(40)]
    assert numbers(client.schedule_many("emails", jobs)) == list(range(40))
    assert sorted(len(batch) for batch in in_batches(api_server)) == [4, 12, 12, 12]


def an_api_with_uploads(api_server):
    """Answer as the API and S3 do: what is put there is kept under the id of its upload."""

    def answer(request):
        if request.path.endswith("/uploads"):
            headers = {"content-length": str(request.json["bytes"]), "x-amz-checksum-sha256": "sum"}
            opened = {"upload": "u-1", "url": f"{api_server.url}/s3/u-1?signature", "method": "PUT", "headers": headers}
            return json_reply(opened | {"expires": "2026-11-21T07:20:00.000Z"}, 201)
        return Reply(status=200) if request.method == "PUT" else default_reply(request)

    return answer


def test_large_payload_is_uploaded_first(client, api_server):
    api_server.respond = an_api_with_uploads(api_server)
    text = json.dumps("x" * 6_000_000).encode()
    client.schedule("emails", "x" * 6_000_000, delay=5, idempotency_key="5", tenant="acme")
    opened, sent, scheduled = api_server.requests
    assert opened.path == "/queues/emails/uploads"
    assert opened.json == {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    assert (sent.method, sent.path, sent.body) == ("PUT", "/s3/u-1?signature", text)
    assert sent.headers["x-amz-checksum-sha256"] == "sum"
    assert "authorization" not in sent.headers
    assert scheduled.json == {"upload": "u-1", "delay": 5, "idempotency_key": "5", "tenant": "acme"}


TO_THE_API, TO_S3 = (BUSY, DROPPED, json_reply({})), (DROPPED, Reply(status=403), Reply(status=500))


@pytest.mark.parametrize(("step", "failure"), [*product(["/uploads", "/jobs"], TO_THE_API), *product(["/s3/"], TO_S3)])
def test_failed_upload_keeps_its_key(client, api_server, step, failure):
    good, failed = an_api_with_uploads(api_server), []

    def once_not(request):
        if step in request.path and not failed:
            failed.append(request)
            return failure
        return good(request)

    api_server.respond = once_not
    client.schedule("emails", "x" * 6_000_000, idempotency_key="5")
    # All is sent again, and nothing is scheduled before its payload is there.
    assert sum(step in request.path for request in api_server.requests) == 2
    assert sum(request.path.endswith("/jobs") for request in api_server.requests) == (2 if step == "/jobs" else 1)
    assert api_server.requests[-1].json == {"upload": "u-1", "idempotency_key": "5"}


def test_each_job_has_a_result_or_an_error(client, api_server):
    """Only temporary failures are tried again."""
    jobs = [NewJob(payload=1, key=str(n), delay=-1 if n == 2 else 5) for n in range(6)]
    first, last = (job_json(an_id(uid=f"00000000-0000-4000-8000-{n:012}")) for n in (0, 5))
    reused = problem(422, "key_reused", "other payload", id="some id")
    failed = [{"error": each} for each in (problem(503, "unavailable"), reused, problem(429, "throttled"))]
    api_server.script = [json_reply({"jobs": [first, *failed, last]})]
    results = client.schedule_many("emails", jobs)
    assert numbers([*results[:2], *results[4:]]) == [0, 1, 4, 5]
    assert isinstance(results[2], InvalidJob)
    error = results[3]
    assert (type(error), str(error), error.job_id, error.key) == (KeyReused, "other payload", "some id", "3")
    assert in_batches(api_server) == [["0", "1", "3", "4", "5"], ["1", "4"]]


# Try again


@pytest.mark.parametrize("failure", TRANSIENT.values(), ids=TRANSIENT)
def test_retry_sends_the_same_body(client, api_server, clock, failure):
    for call in (lambda: client.schedule("emails", 1), lambda: client.schedule_many("emails", [NewJob(payload=1)] * 3)):
        api_server.script = [failure, failure]
        call()
    first, second = ({request.body for request in api_server.requests[at : at + 3]} for at in (0, 3))
    assert (len(first), len(second), len(api_server.requests), len(clock.waits)) == (1, 1, 6, 4)


def test_waits_double_at_random_up_to_a_limit(api_server, clock):
    api_server.respond = lambda _: BUSY
    draws = iter([1.0, 0.5, 0.0, 1.0, 1.0])
    client = a_client(
        api_server, clock, jitter=lambda: next(draws), attempts=6, first_wait=1, longest_wait=9, seconds=100
    )
    with pytest.raises(Unavailable):
        client.get(str(an_id()))
    assert clock.waits == [1, 1, 0, 8, 9]


@pytest.mark.parametrize(("retry_after", "wait"), [("3", 3.05), ("0", 0.05), ("soon", 0.05), ("-5", 0.05), ("", 0.05)])
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_waited_with_jitter_on_top(client, api_server, clock, status, retry_after, wait):
    api_server.script = [json_reply({}, status, retry_after=retry_after)]
    client.schedule("emails", 1)
    assert clock.waits == [pytest.approx(wait)]


def test_a_wait_past_the_deadline_is_not_started(api_server, clock):
    api_server.script = [problem_reply(503, "unavailable", retry_after="31")]
    with pytest.raises(Unavailable) as raised:
        a_client(api_server, clock, seconds=30).schedule("emails", 1, key="k")
    assert (clock.waits, len(api_server.requests)) == ([], 1)
    assert (raised.value.retry_after, raised.value.key) == (31, "k")


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"seconds": -1}, {"first_wait": math.nan}, {"longest_wait": -0.1}])
def test_invalid_patience_is_refused(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} is"):
        Patience(**wrong)


# Errors


@pytest.mark.parametrize(("status", "code"), ERRORS)
def test_each_failed_answer_has_its_error(api_server, clock, status, code):
    content = {"message": "why"} if code is None else problem(status, code, "why", id="an id")
    api_server.respond = lambda _: json_reply(content, status)
    with pytest.raises(DuelineError) as raised:
        a_client(api_server, clock, attempts=2).schedule("emails", 1, key="k")
    error = raised.value
    assert len(api_server.requests) == (2 if isinstance(error, errors.RETRYABLE) else 1)
    assert type(error) is ERRORS[status, code]
    assert str(error) == ("POST /queues/emails/jobs: why" if code is None else "why")
    assert (error.job_id, error.key) == (None if code is None else "an id", "k")


@pytest.mark.parametrize(
    "answer",
    [
        *(201, 302, 400, 403, 404, 413, 418, 422, 429, 500, 503),
        DROPPED,
        CUT_OFF,
        json_reply([SECRET]),
        json_reply({"id": SECRET, "queue": SECRET, "due": SECRET, "route": SECRET, "state": SECRET}),
        json_reply({"jobs": [{"id": "", "queue": "", "due": SECRET, "route": "", "state": SECRET}]}),
    ],
)
def test_no_payload_is_in_errors_or_logs(api_server, clock, caplog, answer):
    """What is given as a status comes with the body of the request."""
    caplog.set_level(logging.DEBUG)
    api_server.respond = lambda request: (
        answer if isinstance(answer, Reply) else Reply(status=answer, body=request.body)
    )
    client = a_client(api_server, clock, attempts=2)
    with pytest.raises(DuelineError) as raised:
        client.schedule("emails", {"to": SECRET})
    (error,) = client.schedule_many("emails", [NewJob(payload=SECRET)])
    assert isinstance(error, DuelineError)
    for each in (raised.value, error):
        assert SECRET not in "".join(traceback.format_exception(each)) + repr(each)
    assert api_server.requests
    assert SECRET not in caplog.text


@pytest.mark.parametrize("payload", [{SECRET}, {SECRET: {1}}, {(SECRET,): 1}, [SECRET, math.nan]])
def test_a_payload_that_is_refused_is_not_quoted(client, payload):
    with pytest.raises(InvalidJob) as raised:
        client.schedule("emails", payload)
    assert SECRET not in "".join(traceback.format_exception(raised.value))


def test_local_run_gets_unsigned_requests(api_server):
    Client.connect(url=f"{api_server.url}/stage/").schedule("emails", 1)
    assert "authorization" not in api_server.requests[0].headers
    assert api_server.requests[0].path == "/stage/queues/emails/jobs"
