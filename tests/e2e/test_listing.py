"""What the HTTP API lists, cancels at once and tells of queues, through the deployed template."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from local.emulator import Emulator
from local.endpoints import Endpoints
from tests.e2e.inbox import wait_until

HOUR, DAY = 3600, 86_400
# Years that no other test schedules in.
FROM, TO = "2031-01-01T00:00:00Z", "2032-01-01T00:00:00Z"
QUEUE = "/queues/invoices"


@pytest.fixture(scope="module")
def jobs(http: httpx.Client) -> list[dict[str, Any]]:
    """Seven jobs in two partitions or one, in due order, in the table; the payload of each is its number."""
    first = datetime(2031, 6, 1, tzinfo=UTC)
    asked = [{"payload": {"n": n, "ü": 1.5}, "at": (first + timedelta(hours=n)).isoformat()} for n in range(7)]
    made: list[dict[str, Any]] = http.post(f"{QUEUE}/jobs", json={"jobs": asked}).json()["jobs"]
    assert wait_until(lambda: len(listed(http, limit=100)) >= 7)
    return made


def get(http: httpx.Client, **query: Any) -> httpx.Response:
    return http.get(f"{QUEUE}/jobs", params={"from": FROM, "to": TO, **query})


def listed(http: httpx.Client, **query: Any) -> list[dict[str, Any]]:
    answer = get(http, **query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["jobs"]
    return found


def test_what_is_scheduled_is_listed_in_due_order_with_its_payload(
    http: httpx.Client, jobs: list[dict[str, Any]]
) -> None:
    assert listed(http) == [
        {**job, "state": "scheduled", "priority": 1, "payload": {"n": n, "ü": 1.5}} for n, job in enumerate(jobs)
    ]


def test_pages_follow_on_one_another(http: httpx.Client, jobs: list[dict[str, Any]]) -> None:
    found, query = [], {"limit": "3"}
    for size in (3, 3, 1):
        page = get(http, **query).json()
        assert len(page["jobs"]) == size
        found += [job["id"] for job in page["jobs"]]
        query["next"] = page["next"]
    assert page["next"] is None
    assert found == [job["id"] for job in jobs]


def test_a_span_is_from_one_instant_to_just_before_another_in_any_zone(
    http: httpx.Client, jobs: list[dict[str, Any]]
) -> None:
    span = {"from": "2031-06-01T03:00:00+01:00", "to": "2031-06-01T04:00:00Z"}
    assert [job["id"] for job in listed(http, **span)] == [job["id"] for job in jobs[2:4]]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"from": "soon"}, "from is"),
        ({"to": "1999-01-01T00:00:00Z"}, "to is"),
        ({"limit": "101"}, "from 1 to 100"),
        ({"next": "x"}, "next is"),
        ({"when": "now"}, "there are from, to, limit, next"),
    ],
)
def test_a_bad_query_is_told_what_is_wrong(http: httpx.Client, query: dict[str, str], named: str) -> None:
    answer = get(http, **query)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert named in answer.json()["detail"]


def test_a_payload_that_is_no_json_is_told_as_text(
    http: httpx.Client, emulator: Emulator, endpoints: Endpoints
) -> None:
    due = datetime(2033, 1, 1, tzinfo=UTC)
    for n, body in enumerate(("not JSON", "NaN", "1e999", '{"a": 1}')):
        id = f"invoices.0.t.{int(due.timestamp() * 1000) + n}.00000000-0000-4000-8000-00000000000{n}"
        told = {"dueline-id": id, "dueline-due": due.isoformat(), "dueline-expires": "2033-02-01T00:00:00Z"}
        attributes: Any = {name: {"DataType": "String", "StringValue": value} for name, value in told.items()}
        sqs = emulator.client("sqs")
        sqs.send_message(QueueUrl=endpoints.inbound_url, MessageBody=body, MessageAttributes=attributes)
    span = {"from": "2033-01-01T00:00:00Z", "to": "2033-01-02T00:00:00Z"}
    assert wait_until(lambda: len(listed(http, **span)) == 4)
    *texts, json = listed(http, **span)
    assert [job["payload_text"] for job in texts] == ["not JSON", "NaN", "1e999"]
    assert json["payload"] == {"a": 1}


def test_a_page_of_the_largest_payloads_is_answered(http: httpx.Client) -> None:
    worst = "é" * (256 * 1024 // 6 - 1)
    jobs = [{"payload": worst, "at": f"2034-01-01T00:00:0{n}Z"} for n in range(5)]
    for job in jobs:
        assert http.post(f"{QUEUE}/jobs", json=job).status_code == 201
    span = {"from": "2034-01-01T00:00:00Z", "to": "2034-01-02T00:00:00Z"}
    assert wait_until(lambda: len(listed(http, **span)) == 4)
    assert [job["payload"] for job in listed(http, **span)] == [worst] * 4
    rest = get(http, **span, next=get(http, **span).json()["next"])
    assert rest.status_code == 200, rest.text
    assert (len(rest.json()["jobs"]), rest.json()["next"]) == (1, None)


# Many cancels at once


def cancel(http: httpx.Client, body: Any, queue: str = "invoices") -> httpx.Response:
    return http.post(f"/queues/{queue}/cancellations", json=body)


def cancel_all(http: httpx.Client, ids: list[str]) -> list[dict[str, Any]]:
    """Cancel all at once, and again while some are told to try again, as they are on a busy machine."""
    results: list[dict[str, Any]] = []

    def are_told() -> bool:
        answer = cancel(http, {"ids": ids})
        assert answer.status_code == 200, answer.text
        results[:] = answer.json()["jobs"]
        errors = [result["error"] for result in results if "error" in result]
        assert {error["status"] for error in errors} <= {429, 503}, errors
        return not errors

    assert wait_until(are_told)
    return results


def test_of_many_ids_each_has_a_result_or_an_error_in_order(http: httpx.Client) -> None:
    first, second = (
        http.post(f"{QUEUE}/jobs", json={"payload": 1, "delay": delay}).json()["id"] for delay in (DAY, HOUR)
    )
    direct = http.post(f"{QUEUE}/jobs", json={"payload": 1, "delay": 5}).json()["id"]
    other = http.post("/queues/emails/jobs", json={"payload": 1, "delay": DAY}).json()["id"]
    answer = cancel(http, {"ids": [second, "nonsense", direct, other, 5, first]})
    assert answer.status_code == 200
    results = answer.json()["jobs"]
    assert [result.get("state") for result in results] == [
        "cancelled",
        None,
        "cancel_requested",
        None,
        None,
        "cancelled",
    ]
    assert results[0] == http.get(f"{QUEUE}/jobs/{second}").json()
    errors = [result["error"] for result in results if "error" in result]
    assert [error["status"] for error in errors] == [404, 404, 400]
    assert "id is 5" in errors[2]["detail"]
    assert http.get(f"/queues/emails/jobs/{other}").json()["state"] in ("accepted", "scheduled")


def test_what_many_cancels_take_back_is_listed_no_more(http: httpx.Client) -> None:
    asked = [{"payload": n, "at": "2035-01-01T00:00:00Z"} for n in range(50)]
    ids = [job["id"] for job in http.post(f"{QUEUE}/jobs", json={"jobs": asked}).json()["jobs"]]
    span = {"from": "2035-01-01T00:00:00Z", "to": "2035-01-01T00:00:01Z"}
    assert wait_until(lambda: len(listed(http, **span, limit=100)) == 50)
    assert [(result["id"], result["state"]) for result in cancel_all(http, ids)] == [(id, "cancelled") for id in ids]
    assert get(http, **span).json() == {"jobs": [], "next": None}


def test_500_ids_fit_into_a_call(http: httpx.Client) -> None:
    answer = cancel(http, {"ids": ["nonsense"] * 500})
    assert answer.status_code == 200
    assert [result["error"]["status"] for result in answer.json()["jobs"]] == [404] * 500


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "ids is missing"),
        ({"ids": []}, "ids is []"),
        ({"ids": "x"}, "ids is"),
        ({"ids": ["x"] * 501}, "500"),
        ({"ids": ["x"], "more": 1}, "more is no field: there are ids"),
        ([], "body"),
    ],
)
def test_a_bad_list_of_ids_is_told_what_is_wrong(http: httpx.Client, body: Any, named: str) -> None:
    answer = cancel(http, body)
    assert answer.status_code == 400, answer.text
    assert named in answer.json()["detail"]


# Queues


def test_the_queues_are_told_with_their_settings(http: httpx.Client) -> None:
    same = {"retention": 7 * DAY, "precise": False, "track": False, "direct_horizon": 24}
    assert http.get("/queues").json() == {
        "queues": [
            {"queue": "emails", "partitions": 1, "taking": 1, **same, "priorities": 1},
            {"queue": "invoices", "partitions": 2, "taking": 2, **same, "priorities": 1},
            {"queue": "doomed", "partitions": 1, "taking": 1, **same, "priorities": 1},
            {"queue": "ranked", "partitions": 1, "taking": 1, **same, "priorities": 2, "track": True},
            {"queue": "archive", "partitions": 1, "taking": 1, **same, "priorities": 1},
            {"queue": "reminders", "partitions": 1, "taking": 1, **same, "priorities": 1, "track": True},
            {"queue": "webhooks", "partitions": 1, "taking": 1, **same, "priorities": 1},
            {"queue": "billing", "partitions": 1, "taking": 1, **same, "priorities": 1, "track": True},
            {"queue": "leaving", "partitions": 1, "taking": 1, **same, "priorities": 2},
        ]
    }


def test_a_queue_tells_how_it_is_doing(http: httpx.Client, jobs: list[dict[str, Any]]) -> None:
    def told() -> dict[str, Any]:
        answer: dict[str, Any] = http.get(QUEUE).json()
        return answer

    assert wait_until(lambda: told()["fence_age"] is not None)
    now = told()
    assert (now["queue"], now["partitions"], now["retention"], now["precise"]) == ("invoices", 2, 7 * DAY, False)
    assert now["scheduled"] >= len(jobs)
    assert now["more_scheduled"] is False
    assert now["next_due"] <= jobs[0]["due"]
    assert now["fence_age"] >= 0
    assert now["dead"] == 0

    def tells_what_is_held_back() -> bool:
        http.post(f"{QUEUE}/jobs", json={"payload": 1, "delay": 20})
        return bool(told()["delayed"])

    assert wait_until(tells_what_is_held_back)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/queues/nobody"), ("GET", "/queues/nobody/jobs"), ("POST", "/queues/nobody/cancellations")],
)
def test_an_unknown_queue_is_not_found(http: httpx.Client, method: str, path: str) -> None:
    answer = http.request(method, path, json={"ids": ["x"]})
    assert answer.status_code == 404
    assert "nobody" in answer.json()["detail"]
