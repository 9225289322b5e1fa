"""What the HTTP API takes and what it refuses, through the deployed template."""

from typing import Any

import httpx
import pytest

DAY = 86_400


def post(http: httpx.Client, body: Any, queue: str = "emails") -> httpx.Response:
    return http.post(f"/queues/{queue}/jobs", json=body)


def test_a_job_is_created_with_its_id_queue_due_route_and_state(http: httpx.Client) -> None:
    answer = post(http, {"payload": {"to": "ann"}, "at": "2030-01-01T09:00:00+01:00"})
    assert answer.status_code == 201
    job = answer.json()
    assert job["id"].startswith("emails.0.t.1893484800000.")
    assert job | {"id": ""} == {
        "id": "",
        "queue": "emails",
        "due": "2030-01-01T08:00:00.000Z",
        "route": "table",
        "state": "scheduled",
    }


@pytest.mark.parametrize("payload", [None, 0, "", [], {}, {"nested": [1, "ü", "\x01"]}])
def test_a_payload_is_any_json(http: httpx.Client, payload: Any) -> None:
    assert post(http, {"payload": payload, "delay": DAY}).status_code == 201


def test_a_past_time_is_now(http: httpx.Client) -> None:
    job = post(http, {"payload": 1, "at": "1999-12-31T23:59:59Z"}).json()
    assert (job["route"], job["state"]) == ("direct", "dispatched")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "payload is missing"),
        ([], "body"),
        ("text", "body"),
        ({"payload": 1, "at": "2030-01-01T09:00:00"}, "zone"),
        ({"payload": 1, "at": "2030-01-01"}, "zone"),
        ({"payload": 1, "at": "soon"}, "at is"),
        ({"payload": 1, "at": 1893484800}, "at is"),
        ({"payload": 1, "at": "1969-12-31T23:59:59Z"}, "1970-01-01"),
        ({"payload": 1, "at": "2999-01-01T00:00:00Z"}, "at is"),
        ({"payload": 1, "at": "0001-01-01T00:00:00+23:59"}, "at is"),
        ({"payload": 1, "at": "9999-12-31T23:59:59-23:59"}, "at is"),
        ({"payload": 1, "delay": -1}, "delay is -1"),
        ({"payload": 1, "delay": "5"}, "delay is"),
        ({"payload": 1, "delay": True}, "delay is"),
        ({"payload": 1, "delay": 10**400}, "delay is"),
        ({"payload": 1, "delay": 11 * 366 * DAY}, "delay is"),
        ({"payload": 1, "delay": 1, "at": "2030-01-01T09:00:00Z"}, "at and delay"),
        ({"payload": 1, "when": "now"}, "when"),
        ({"jobs": []}, "jobs is []"),
        ({"jobs": 5}, "jobs is 5"),
        ({"jobs": [{"payload": 1}], "payload": 1}, "payload is no field"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(http: httpx.Client, body: Any, named: str) -> None:
    answer = post(http, body)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert named in answer.json()["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"payload": NaN}', b'{"payload": 1e999}', b"[" * 100_000])
def test_broken_json_is_a_bad_request(http: httpx.Client, body: bytes) -> None:
    answer = http.post("/queues/emails/jobs", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert "JSON" in answer.json()["detail"]


@pytest.mark.parametrize("more", [0, 1])
def test_a_payload_of_256_kib_and_one_of_a_byte_more_are_taken(http: httpx.Client, more: int) -> None:
    payload = "x" * (256 * 1024 - 2 + more)
    assert post(http, {"payload": payload, "delay": DAY}).status_code == 201


def test_an_unknown_queue_is_not_found(http: httpx.Client) -> None:
    answer = post(http, {"payload": 1}, queue="nobody")
    assert answer.status_code == 404
    assert "nobody" in answer.json()["detail"]


def test_of_many_jobs_each_has_a_result_or_an_error_in_order(http: httpx.Client) -> None:
    answer = post(http, {"jobs": [{"payload": 1, "delay": DAY}, {"payload": 2, "delay": -1}, {"payload": 3}]})
    assert answer.status_code == 200
    first, second, third = answer.json()["jobs"]
    assert first["route"] == "table"
    assert second["error"]["status"] == 400
    assert "delay is -1" in second["error"]["detail"]
    assert third["route"] == "direct"


def test_500_jobs_fit_into_a_call_and_501_do_not(http: httpx.Client) -> None:
    jobs = [{"payload": n, "delay": n % 2 * DAY} for n in range(500)]
    answer = post(http, {"jobs": jobs}, queue="invoices")
    assert answer.status_code == 200
    assert len({job["id"] for job in answer.json()["jobs"]}) == 500
    assert post(http, {"jobs": [*jobs, {"payload": 1}]}).status_code == 400
