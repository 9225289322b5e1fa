"""What the HTTP API takes and what it refuses, and what arrives of it."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.acceptance.early import TRACE, Job, schedule
from tests.acceptance.inbox import Inbox
from tests.waiting import wait_until

DAY = 86_400


def post(http: httpx.Client, body: Any, queue: str = "plain") -> httpx.Response:
    return http.post(f"/queues/{queue}/jobs", json=body)


def test_created_job_has_all_its_fields(http: httpx.Client) -> None:
    answer = post(http, {"payload": {"to": "ann"}, "at": "2030-01-01T09:00:00+01:00"})
    assert answer.status_code == 201
    job = answer.json()
    assert job.pop("id").startswith("plain.0.t.1893484800000.")
    due = "2030-01-01T08:00:00.000Z"
    assert job == {"queue": "plain", "due": due, "route": "table", "state": "scheduled", "created": True}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("", "JSON"),
        ("[" * 100_000, "JSON"),
        ("[]", "body is []"),
        ("{}", "payload is missing"),
        ('{"payload": 1, "at": "2999-01-01T00:00:00Z"}', "at is 2999"),
        ('{"payload": 1, "key": "naïve"}', "key is"),
        (f'{{"upload": "{"0" * 36}.5.{"0" * 64}"}}', "nothing was uploaded"),
    ],
)
def test_bad_request_names_what_is_wrong(http: httpx.Client, body: str, named: str) -> None:
    """Some of each kind, through the gateway; the unit tests have all fields."""
    answer = http.post("/queues/plain/jobs", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert named in answer.json()["detail"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
def test_what_is_not_there_is_not_found(http: httpx.Client, method: str) -> None:
    id = schedule(http, "plain", delay=3600)["id"]
    for path in ("/queues/plain/jobs/nonsense", f"/queues/flood/jobs/{id}", f"/queues/nobody/jobs/{id}"):
        answer = http.request(method, path, json={"delay": 1} if method == "PATCH" else None)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


def test_call_takes_500_jobs_and_not_501(http: httpx.Client) -> None:
    jobs = [{"payload": n, "delay": n % 2 * DAY} for n in range(500)]
    jobs[7] = {"payload": 7, "delay": -1}
    answer = post(http, {"jobs": jobs}, queue="flood")
    assert answer.status_code == 200
    results = answer.json()["jobs"]
    error = results.pop(7)["error"]
    assert (error["status"], "delay is -1" in error["detail"]) == (400, True)
    assert len({job["id"] for job in results}) == 499
    assert {job["route"] for job in results} == {"table", "direct"}
    assert post(http, {"jobs": [*jobs, {"payload": 1}]}).status_code == 400


@pytest.mark.parametrize("tenant", ["acme", None])
def test_message_group_is_the_tenant(http: httpx.Client, inbox: Callable[..., Inbox], tenant: str | None) -> None:
    id = schedule(http, "plain", **({"tenant": tenant} if tenant else {}))["id"]
    assert inbox("plain").wait_for(id).group == tenant


def test_look_up_follows_a_job_to_dispatched(
    http: httpx.Client, early: dict[str, Job], inbox: Callable[..., Inbox]
) -> None:
    job, states = early["traced"], list[str]()

    def is_dispatched() -> bool:
        states.append(http.get(f"/queues/plain/jobs/{job['id']}").json()["state"])
        return states[-1] == "dispatched"

    assert wait_until(is_dispatched), states
    way = ["unrecorded", "scheduled", "dispatched"]
    # It is looked up now and then: what lasts for less than that it may miss.
    assert list(dict.fromkeys(states)) == [state for state in way if state in states]
    assert inbox("plain").wait_for(job["id"]).body == "1"


def test_jobs_carry_their_requests_trace(
    http: httpx.Client, early: dict[str, Job], inbox: Callable[..., Inbox]
) -> None:
    direct, by_the_table = schedule(http, "plain", headers=TRACE), early["traced"]
    assert (direct["route"], by_the_table["route"]) == ("direct", "table")
    many = http.post("/queues/plain/jobs", json={"jobs": [{"payload": n} for n in range(2)]}, headers=TRACE)
    for job in (direct, by_the_table, *many.json()["jobs"]):
        attributes = inbox("plain").wait_for(job["id"]).attributes
        assert {name: attributes.get(name) for name in TRACE} == TRACE


def test_moved_job_keeps_its_tenant(http: httpx.Client, inbox: Callable[..., Inbox]) -> None:
    moved, old = inbox("moved"), schedule(http, "moved", delay=DAY, tenant="acme")
    path = f"/queues/moved/jobs/{old['id']}"
    assert wait_until(lambda: http.get(path).json()["state"] == "scheduled")
    answer = http.patch(path, json={"delay": 3})
    assert answer.status_code == 200, answer.text
    new = answer.json()
    assert new["id"] != old["id"]
    assert (new["queue"], new["route"], new["moved_from"]) == ("moved", "table", old["id"])
    # What is due so soon goes by the inbound queue, too: ingest may have moved and sent it before its caller did.
    assert new["state"] in ("scheduled", "dispatched")
    landed = moved.wait_for(new["id"])
    assert landed.visible >= landed.due
    assert landed.group == "acme"
    assert not moved.of(old["id"])
