"""Idempotency keys: under one there is one job."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from dueline import Client, KeyReused
from tests.acceptance.conftest import Figure
from tests.acceptance.inbox import Inbox

DAY = 24 * 3600
REPEATS = 4


@pytest.fixture
def key() -> str:
    return f"order {uuid.uuid4()}"


def post(http: httpx.Client, body: dict[str, Any], **headers: str) -> httpx.Response:
    return http.post("/queues/plain/jobs", json=body, headers=headers)


def test_header_is_the_key_as_well(http: httpx.Client, key: str) -> None:
    header = {"Idempotency-Key": key}
    first = post(http, {"payload": 1, "delay": DAY}, **header)
    assert post(http, {"payload": 1, "delay": DAY}, **header).json()["id"] == first.json()["id"]
    assert post(http, {"payload": 1, "delay": DAY, "key": key}).json()["id"] == first.json()["id"]
    assert post(http, {"payload": 1, "delay": DAY, "key": key}, **header).json()["id"] == first.json()["id"]


def test_each_of_many_jobs_has_its_own_key(http: httpx.Client, key: str) -> None:
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
def test_bad_key_is_400_and_named(http: httpx.Client, headers: dict[str, str], wrong: Any) -> None:
    answer = post(http, {"payload": 1, "key": wrong}, **headers)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("key is ")


def test_calls_at_once_under_one_key_make_one_job(
    client: Client, key: str, inbox: Callable[..., Inbox], figure: Figure, of_scale: Callable[[int, int], int]
) -> None:
    plain, numbers = inbox("plain"), range(of_scale(4, 100))

    def schedule(number: int) -> str:
        return client.schedule("plain", {key: number // REPEATS}, delay=3, key=f"{key} {number // REPEATS}").id

    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(schedule, range(len(numbers) * REPEATS)))
    several = sum(len(set(ids[number * REPEATS :][:REPEATS])) > 1 for number in numbers)
    assert figure("keys with several jobs, by their answers", several) == 0
    plain.wait_for(*ids)
    came = [each.body for each in {each.id: each for each in list(plain.landed)}.values() if key in each.body]
    assert figure("keys with several jobs, by what came", len(came) - len(numbers)) == 0
    for number in numbers:
        with pytest.raises(KeyReused):
            client.schedule("plain", "another payload", key=f"{key} {number}")
