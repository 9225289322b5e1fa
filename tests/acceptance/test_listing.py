"""What the HTTP API lists, cancels at once and shows of queues, through the deployed template."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.acceptance.early import schedule
from tests.waiting import wait_until

HOUR, DAY = 3600, 86_400
# Years that no other test schedules in.
FROM, TO = "2031-01-01T00:00:00Z", "2032-01-01T00:00:00Z"
QUEUE = "/queues/flood"


@pytest.fixture(scope="module")
def jobs(http: httpx.Client) -> list[dict[str, Any]]:
    """Seven jobs in two partitions or one, in due order, in the table; the payload of each is its number."""
    first = datetime(2031, 6, 1, tzinfo=UTC)
    bodies = [{"payload": {"n": n, "ü": 1.5}, "at": (first + timedelta(hours=n)).isoformat()} for n in range(7)]
    made = http.post(f"{QUEUE}/jobs", json={"jobs": bodies}).json()["jobs"]
    assert wait_until(lambda: len(list_jobs(http, limit=100)) >= 7)
    return list(made)


def get(http: httpx.Client, **query: Any) -> httpx.Response:
    return http.get(f"{QUEUE}/jobs", params={"from": FROM, "to": TO, **query})


def list_jobs(http: httpx.Client, **query: Any) -> list[dict[str, Any]]:
    answer = get(http, **query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["jobs"])


def test_jobs_are_listed_in_due_order_by_pages(http: httpx.Client, jobs: list[dict[str, Any]]) -> None:
    rows, query = list[dict[str, Any]](), {"limit": "3"}
    for size in (3, 3, 1):
        page = get(http, **query).json()
        assert len(page["jobs"]) == size
        rows += page["jobs"]
        query["next"] = page["next"]
    assert page["next"] is None
    assert rows == [
        {name: value for name, value in job.items() if name != "created"}
        | {"state": "scheduled", "priority": 1, "payload": {"n": n, "ü": 1.5}}
        for n, job in enumerate(jobs)
    ]


def test_page_of_the_largest_payloads_is_answered(http: httpx.Client) -> None:
    worst = "é" * (256 * 1024 // 6 - 1)
    jobs = [{"payload": worst, "at": f"2034-01-01T00:00:0{n}Z"} for n in range(5)]
    for job in jobs:
        assert http.post(f"{QUEUE}/jobs", json=job).status_code == 201
    span = {"from": "2034-01-01T00:00:00Z", "to": "2034-01-02T00:00:00Z"}
    assert wait_until(lambda: len(list_jobs(http, **span)) == 4)
    assert [job["payload"] for job in list_jobs(http, **span)] == [worst] * 4
    rest = get(http, **span, next=get(http, **span).json()["next"])
    assert rest.status_code == 200, rest.text
    assert (len(rest.json()["jobs"]), rest.json()["next"]) == (1, None)


def test_each_cancel_has_a_result_or_an_error(http: httpx.Client) -> None:
    first, second, direct = (schedule(http, "flood", delay=delay)["id"] for delay in (DAY, HOUR, 5))
    other = schedule(http, "plain", delay=DAY)["id"]
    answer = http.post(f"{QUEUE}/cancellations", json={"ids": [second, "nonsense", direct, other, 5, first]})
    assert answer.status_code == 200
    results = answer.json()["jobs"]
    states = ["cancelled", None, "cancel_requested", None, None, "cancelled"]
    assert [result.get("state") for result in results] == states
    assert results[0] == http.get(f"{QUEUE}/jobs/{second}").json()
    errors = [result["error"] for result in results if "error" in result]
    assert [error["status"] for error in errors] == [404, 404, 400]
    assert "id is 5" in errors[2]["detail"]
    assert http.get(f"/queues/plain/jobs/{other}").json()["state"] in ("unrecorded", "scheduled")


def test_queues_are_listed_with_their_settings(http: httpx.Client, table_after: float) -> None:
    queues = {each.pop("queue"): each for each in http.get("/queues").json()["queues"]}
    horizon = queues["plain"].pop("direct_horizon")
    assert 0 < horizon < table_after
    assert list(queues) == ["plain", "plain-vip", "precise", "moved", "flood", "levels"]
    settings = {"partitions": 1, "taking": 1, "retention": 7 * DAY, "precise": False, "track": False, "priorities": 1}
    assert queues["plain"] == settings
    assert queues["levels"] == {**settings, "priorities": 2, "direct_horizon": horizon}
    assert queues["flood"] == {**settings, "partitions": 4, "taking": 4, "direct_horizon": horizon}


def test_queue_shows_how_it_is_doing(http: httpx.Client, jobs: list[dict[str, Any]]) -> None:
    assert wait_until(lambda: http.get(QUEUE).json()["fence_age"] is not None)
    now = http.get(QUEUE).json()
    assert now["scheduled"] >= len(jobs)
    assert now["next_due"] <= jobs[0]["due"]
    assert (now["queue"], now["partitions"], now["more_scheduled"], now["dead"]) == ("flood", 4, False, 0)

    def shows_delayed_jobs() -> bool:
        http.post(f"{QUEUE}/jobs", json={"payload": 1, "delay": 20})
        return bool(http.get(QUEUE).json()["delayed"])

    assert wait_until(shows_delayed_jobs)
