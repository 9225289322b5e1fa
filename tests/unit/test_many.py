"""Many jobs at once, against an API that takes only so much."""

import json
import threading
import uuid

import pytest

from dueline import Client, Job, NewJob, Patience, Unavailable
from dueline.client.http import HttpApi, HttpResponse
from dueline.core.retry import CALL_ITEMS, LANES, LEAST_ITEMS, BatchSize
from dueline.testing import VirtualClock
from tests.builders import NOW, an_id
from tests.fake_api_server import job_json, problem

BUSY = problem(503, "unavailable", "busy")
THROTTLED = problem(429, "throttled", "slow down")


class FakeGateway:
    """An API that schedules a job a key, and answers a call as `answer` says of its keys: an error of all, or of some.

    A call that it refuses as a whole was carried out all the same: its answer is lost.
    """

    def __init__(self, answer=lambda _: None):
        self.calls = []
        self.jobs = {}
        self._answer = answer
        self._lock = threading.Lock()

    def send(self, method, path, body, *, headers):
        if path == "/queues":
            return _reply(200, {})
        request = json.loads(body)
        keys = [job["key"] for job in request.get("jobs", [request])]
        with self._lock:
            self.calls.append(keys)
            reported = self._answer(keys)
            failed = reported if isinstance(reported, dict) and "status" not in reported else {}
            for key in keys:
                if key not in failed:
                    self.jobs.setdefault(key, job_json(an_id(uid=str(uuid.uuid4()), due=NOW)))
        if reported and not failed:
            return _reply(reported["status"], reported)
        jobs = [{"error": failed[key]} if key in failed else self.jobs[key] for key in keys]
        return _reply(200, {"jobs": jobs} if "jobs" in request else jobs[0])


def _reply(status, content):
    return HttpResponse(request="POST", status=status, headers={}, body=json.dumps(content).encode())


def a_client(gateway, *, clock=None, **patience):
    clock = clock or VirtualClock(NOW)
    api = HttpApi(gateway, clock=clock, new_uuid=lambda: str(uuid.uuid4()))
    return Client(api, clock=clock, jitter=lambda: 0.5, patience=Patience(**patience))


def numbered(count):
    return (NewJob(payload=n, key=str(n), delay=7200) for n in range(count))


def assert_all_scheduled_once(results, gateway, count):
    assert [result.id for result in results] == [gateway.jobs[str(n)]["id"] for n in range(count)]
    assert len(gateway.jobs) == count


# Calls that are too large


@pytest.mark.parametrize("fits", [30, 70, 250])
def test_many_pass_an_api_that_fails_large_calls(fits):
    gateway = FakeGateway(lambda keys: BUSY if len(keys) > fits else None)
    assert_all_scheduled_once(a_client(gateway).schedule_many("emails", numbered(5000)), gateway, 5000)


def test_many_pass_an_api_that_finishes_parts_of_calls():
    observed = set()

    def a_third(keys):
        new = [key for key in keys if key not in observed]
        observed.update(new[: 1 + len(new) // 3])
        return {key: BUSY for key in keys if key not in observed}

    gateway = FakeGateway(a_third)
    assert_all_scheduled_once(a_client(gateway).schedule_many("emails", numbered(3000)), gateway, 3000)


# Patience


def test_patience_is_renewed_by_progress():
    gateway = FakeGateway(lambda keys: dict.fromkeys(keys[1:], BUSY))
    assert_all_scheduled_once(a_client(gateway, attempts=2).schedule_many("emails", numbered(60)), gateway, 60)


def test_jobs_have_errors_with_keys_once_patience_is_over():
    gateway = FakeGateway(lambda _: BUSY)
    results = a_client(gateway, attempts=3).schedule_many("emails", numbered(80))
    assert [(type(each), each.key) for each in results] == [(Unavailable, str(n)) for n in range(80)]
    assert [len(keys) for keys in gateway.calls] == [80, 40, 20, 10, 10]


def test_what_was_not_tried_any_more_says_so():
    gateway = FakeGateway(lambda _: BUSY)
    clock = VirtualClock(NOW)
    results = a_client(gateway, clock=clock, attempts=1000, seconds=30).schedule_many("emails", numbered(5000))
    assert all(isinstance(each, Unavailable) for each in results)
    tried = {key for keys in gateway.calls for key in keys}
    assert {each.key for each in results if "not tried" in str(each)} == {str(n) for n in range(5000)} - tried
    # Once patience is over, a batch is requested once.
    assert len(gateway.calls) < 500


def test_jobs_that_fail_to_the_end_do_not_hold_up_the_others():
    gateway = FakeGateway(lambda keys: {key: BUSY for key in keys if key.endswith("7")})
    results = a_client(gateway, attempts=3).schedule_many("emails", numbered(1000))
    assert {n for n, each in enumerate(results) if not isinstance(each, Job)} == set(range(7, 1000, 10))


def test_a_call_that_gets_smaller_has_patience_of_its_own():
    clock = VirtualClock(NOW)

    def out_of_time(keys):
        clock.sleep(29)
        return BUSY if len(keys) > LEAST_ITEMS else None

    gateway = FakeGateway(out_of_time)
    assert_all_scheduled_once(a_client(gateway, clock=clock).schedule_many("emails", numbered(100)), gateway, 100)


# Streams


def test_schedule_each_reads_few_jobs_ahead():
    received = 0

    def jobs():
        nonlocal received
        for job in numbered(20_000):
            received += 1
            yield job

    held = []
    for reported, result in enumerate(a_client(FakeGateway()).schedule_each("emails", jobs())):
        assert isinstance(result, Job)
        held.append(received - reported)
    assert len(held) == 20_000
    assert max(held) <= (2 * LANES + 2) * CALL_ITEMS


# The size of a call


def noted(size, *request, error, finished=0):
    for count in request:
        size.note(count, failed=[error] * (count - finished), started=0.0)
    return size.items


def test_calls_that_fail_together_halve_the_size_once():
    assert noted(BatchSize(), *[CALL_ITEMS] * LANES, error=Unavailable("")) == CALL_ITEMS // 2


def test_a_size_is_halved_down_to_a_least():
    size = BatchSize()
    for _ in range(9):
        noted(size, size.items, error=Unavailable(""))
    assert size.items == LEAST_ITEMS
    assert noted(BatchSize(1), 1, error=Unavailable("")) == 1


def test_the_apis_throttle_counts_calls_and_makes_none_smaller():
    refusals = [THROTTLED] * 3
    gateway = FakeGateway(lambda _: refusals.pop() if refusals else None)
    a_client(gateway).schedule_many("emails", numbered(100))
    assert list(map(len, gateway.calls)) == [100] * 4
