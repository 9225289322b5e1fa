"""Keys: under one there is one job."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from dueline import JobExists, KeyReused
from tests.acceptance.conftest import each_way

DAY = 24 * 3600
REPEATS = 4


@pytest.fixture
def key():
    return f"order {uuid.uuid4()}"


@each_way
@pytest.mark.parametrize("has_left", [False, True], ids=["waiting", "left"])
def test_key_of_a_job_is_kept_replaced_or_refused(client, key, has_left):
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


def test_calls_at_once_under_one_key_make_one_job(client, key, inbox, figure, of_scale):
    plain, numbers = inbox("plain"), range(of_scale(4, 100))

    def schedule(number):
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
