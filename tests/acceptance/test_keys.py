"""Keys: under one there is one job; and names of calls, whose repeats make one."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from dueline import Client, JobExists, KeyReused, State
from tests.acceptance.conftest import Figure, Scale, each_way
from tests.acceptance.inbox import Inbox

DAY = 24 * 3600
REPEATS = 4


@pytest.fixture
def key() -> str:
    return f"order {uuid.uuid4()}"


def post(http: httpx.Client, body: dict[str, Any], **headers: str) -> httpx.Response:
    return http.post("/queues/plain/jobs", json=body, headers=headers)


def test_repeated_call_makes_one_job(http: httpx.Client, key: str) -> None:
    header = {"Idempotency-Key": key}
    first = post(http, {"payload": 1, "delay": DAY}, **header)
    assert (first.status_code, first.json()["created"]) == (201, True)
    again = post(http, {"payload": 1, "delay": DAY}, **header)
    assert (again.status_code, again.json()) == (200, {**first.json(), "created": False})
    assert post(http, {"payload": 1, "delay": DAY, "idempotency_key": key}).json()["id"] == first.json()["id"]
    assert post(http, {"payload": 2, "delay": DAY}, **header).status_code == 422


def test_key_names_one_job_through_its_life(client: Client, key: str) -> None:
    """Scheduled, moved, scheduled again, cancelled by an earlier id, and scheduled once more."""
    first = client.schedule("plain", {"to": "ann"}, delay=DAY, key=key)
    moved = client.reschedule(first.id, delay=2 * DAY)
    again = client.schedule("plain", {"to": "ann"}, delay=DAY, key=key)
    assert (first.created, again.created, again.id) == (True, False, moved.id)
    for now in (client.get(first.id), client.get(moved.id), client.get(queue="plain", key=key)):
        assert (now.id, now.state) == (moved.id, State.SCHEDULED)
    last = client.reschedule(queue="plain", key=key, delay=3 * DAY)
    assert client.cancel(first.id) is State.CANCELLED
    assert {client.get(id).state for id in (first.id, moved.id, last.id)} == {State.CANCELLED}
    next_job = client.schedule("plain", {"to": "ann"}, delay=DAY, key=key)
    assert (next_job.created, next_job.state, client.get(queue="plain", key=key).id) == (
        True,
        State.SCHEDULED,
        next_job.id,
    )
    assert client.cancel(queue="plain", key=key) is State.CANCELLED


@each_way
@pytest.mark.parametrize("has_left", [False, True], ids=["waiting", "left"])
def test_key_of_a_job_is_kept_replaced_or_refused(client: Client, key: str, has_left: bool) -> None:
    schedule = partial(client.schedule, "plain", key=key)
    first = schedule(1, delay=0 if has_left else DAY)
    assert schedule(1, delay=DAY).id == first.id
    with pytest.raises(JobExists) as exists:
        schedule(1, delay=DAY, if_exists="fail")
    assert exists.value.job_id == first.id
    if not has_left:
        with pytest.raises(KeyReused):
            schedule(2, delay=DAY)
    second = schedule(2, delay=2 * DAY, if_exists="replace")
    assert second.id != first.id
    assert (second.created, second.moved_from) == ((True, None) if has_left else (False, first.id))
    assert client.get(queue="plain", key=key).id == second.id


def test_calls_at_once_under_one_key_make_one_job(
    client: Client, key: str, inbox: Callable[..., Inbox], figure: Figure, of_scale: Scale
) -> None:
    plain, numbers = inbox("plain"), range(of_scale(4, 100))

    def schedule(number: int) -> str:
        return client.schedule("plain", {key: number // REPEATS}, delay=3, key=f"{key} {number // REPEATS}").id

    with ThreadPoolExecutor(of_scale(2, 4)) as pool:
        ids = list(pool.map(schedule, range(len(numbers) * REPEATS)))
    several = sum(len(set(ids[number * REPEATS :][:REPEATS])) > 1 for number in numbers)
    assert figure("keys with several jobs, by their answers", several) == 0
    plain.wait_for(*ids)
    came = [each.body for each in {each.id: each for each in list(plain.landed)}.values() if key in each.body]
    assert figure("keys with several jobs, by what came", len(came) - len(numbers)) == 0
    for number in numbers:
        again = client.schedule("plain", "another payload", key=f"{key} {number}")
        assert (again.created, again.id) == (False, ids[number * REPEATS])
