"""Idempotency keys over HTTP."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.e2e.inbox import wait_until

DAY = 24 * 3600


@pytest.fixture
def key() -> str:
    return f"order {uuid.uuid4()}"


def post(http: httpx.Client, body: dict[str, Any], **headers: str) -> httpx.Response:
    return http.post("/queues/emails/jobs", json=body, headers=headers)


def answered(http: httpx.Client, body: dict[str, Any]) -> httpx.Response:
    """Ask until there was time to answer, as all callers must: a busy machine's function may be out of it, 503."""
    answers: list[httpx.Response] = []
    assert wait_until(lambda: answers.append(post(http, body)) or answers[-1].status_code != 503)
    return answers[-1]


@pytest.mark.parametrize(
    ("delay", "states"), [(DAY, ("scheduled", {"scheduled"})), (1, ("dispatched", {"dispatched"}))]
)
def test_a_repeat_is_told_of_the_first_job_and_its_state(
    http: httpx.Client, key: str, delay: float, states: tuple[str, set[str]]
) -> None:
    first = post(http, {"payload": 1, "delay": delay, "key": key})
    second = answered(http, {"payload": 1, "delay": delay + 1, "key": key})
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["state"] == states[0]
    assert second.json()["state"] in states[1]
    assert {**second.json(), "state": ""} == {**first.json(), "state": ""}


def test_the_header_is_the_key_as_well(http: httpx.Client, key: str) -> None:
    header = {"Idempotency-Key": key}
    first = post(http, {"payload": 1, "delay": DAY}, **header)
    assert post(http, {"payload": 1, "delay": DAY}, **header).json()["id"] == first.json()["id"]
    assert post(http, {"payload": 1, "delay": DAY, "key": key}).json()["id"] == first.json()["id"]
    assert post(http, {"payload": 1, "delay": DAY, "key": key}, **header).json()["id"] == first.json()["id"]


def test_a_key_with_another_payload_is_422_and_names_the_job_that_has_it(http: httpx.Client, key: str) -> None:
    first = post(http, {"payload": 1, "delay": DAY, "key": key}).json()
    answer = post(http, {"payload": 2, "delay": DAY, "key": key})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert key in answer.json()["detail"]
    assert first["id"] in answer.json()["detail"]


def test_the_header_is_for_one_job_and_each_of_many_may_have_its_key(http: httpx.Client, key: str) -> None:
    jobs = [{"payload": 1, "delay": DAY, "key": f"{key} {number // 2}"} for number in range(10)]
    answer = post(http, {"jobs": jobs}, **{"Idempotency-Key": key})
    assert answer.status_code == 400
    assert "Idempotency-Key" in answer.json()["detail"]
    answers = post(http, {"jobs": jobs}).json()["jobs"]
    assert len({each["id"] for each in answers}) == 5
    assert [each["id"] for each in post(http, {"jobs": jobs}).json()["jobs"]] == [each["id"] for each in answers]


@pytest.mark.parametrize(
    ("headers", "wrong"), [({}, "x" * 256), ({}, 5), ({"Idempotency-Key": "another"}, "one"), ({}, "naïve")]
)
def test_a_key_that_is_no_good_is_400_and_named(http: httpx.Client, headers: dict[str, str], wrong: Any) -> None:
    answer = post(http, {"payload": 1, "key": wrong}, **headers)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("key is ")


def test_of_calls_at_once_under_one_key_all_are_told_one_job(http: httpx.Client, key: str) -> None:
    def told(_: int) -> Any:
        """Return the job of a call. One that was out of time names the id that its own job would have had."""
        return answered(http, job).json()["id"]

    job = {"payload": 1, "delay": DAY, "key": key}
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(told, range(16)))) == 1
