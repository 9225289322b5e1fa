"""Many jobs at once: batches, lanes, streams, and asyncio."""

import asyncio
import inspect
import json
import subprocess
import sys
import threading
import uuid
from contextlib import aclosing
from contextvars import ContextVar

import pytest

from dueline import AsyncClient, AsyncSchedules, Client, Job, NewJob, Patience, Schedules, Unavailable
from dueline.client.http import HttpApi, HttpResponse
from dueline.core.clock import SystemClock
from dueline.core.retry import _THIS_LANE, CALL_ITEMS, LANES, LEAST_ITEMS, BatchSize, Calls, in_lanes
from dueline.testing import VirtualClock
from tests.builders import NOW, an_id
from tests.fake_api_server import job_json, problem
from tests.waiting import HANG_SECONDS, wait_until

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

    def send(self, method, path, body, *, headers, queue=None):
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
    api = HttpApi(lambda: gateway, clock=clock)
    return Client(api, clock=clock, jitter=lambda: 0.5, patience=Patience(**patience))


def numbered(count):
    return (NewJob(payload=n, key=str(n), delay=7200) for n in range(count))


def assert_all_scheduled_once(results, gateway, count):
    assert [result.id for result in results] == [gateway.jobs[str(n)]["id"] for n in range(count)]
    assert len(gateway.jobs) == count


# Calls that are too large


def test_too_large_calls_get_smaller():
    gateway = FakeGateway(lambda keys: BUSY if len(keys) > 30 else None)
    assert_all_scheduled_once(a_client(gateway).schedule_many("emails", numbered(2000)), gateway, 2000)


def test_partly_finished_calls_are_completed():
    observed = set()

    def a_third(keys):
        new = [key for key in keys if key not in observed]
        observed.update(new[: 1 + len(new) // 3])
        return {key: BUSY for key in keys if key not in observed}

    gateway = FakeGateway(a_third)
    assert_all_scheduled_once(a_client(gateway).schedule_many("emails", numbered(1000)), gateway, 1000)


# Patience


def test_patience_is_renewed_by_progress():
    gateway = FakeGateway(lambda keys: dict.fromkeys(keys[1:], BUSY))
    assert_all_scheduled_once(a_client(gateway, attempts=2).schedule_many("emails", numbered(60)), gateway, 60)


def test_failed_jobs_name_their_keys():
    gateway = FakeGateway(lambda _: BUSY)
    results = a_client(gateway, attempts=3).schedule_many("emails", numbered(80))
    assert [(type(each), each.key) for each in results] == [(Unavailable, str(n)) for n in range(80)]
    assert [len(keys) for keys in gateway.calls] == [80, 40, 20, 10, 10]


def test_untried_jobs_say_so():
    gateway = FakeGateway(lambda _: BUSY)
    results = a_client(gateway, attempts=1000, seconds=30).schedule_many("emails", numbered(5000))
    assert all(isinstance(each, Unavailable) for each in results)
    tried = {key for keys in gateway.calls for key in keys}
    assert {each.key for each in results if "not tried" in str(each)} == {str(n) for n in range(5000)} - tried
    # Once patience is over, a batch is requested once.
    assert len(gateway.calls) < 500


def test_smaller_call_has_its_own_patience():
    clock = VirtualClock(NOW)

    def out_of_time(keys):
        clock.sleep(29)
        return BUSY if len(keys) > LEAST_ITEMS else None

    gateway = FakeGateway(out_of_time)
    assert_all_scheduled_once(a_client(gateway, clock=clock).schedule_many("emails", numbered(100)), gateway, 100)


# Streams


def test_schedule_each_reads_few_jobs_ahead():
    received, held = [], []
    jobs = (received.append(job) or job for job in numbered(4000))
    for reported, result in enumerate(a_client(FakeGateway()).schedule_each("emails", jobs)):
        assert isinstance(result, Job)
        held.append(len(received) - reported)
    assert len(held) == 4000
    assert max(held) <= (2 * LANES + 2) * CALL_ITEMS


# The size of a call


def test_joint_failures_halve_the_size_once():
    size = BatchSize()
    for _ in range(LANES):
        size.note(CALL_ITEMS, failed=[Unavailable("")] * CALL_ITEMS, started=0.0)
    assert size.items == CALL_ITEMS // 2


def test_throttling_makes_no_call_smaller():
    refusals = [THROTTLED] * 3
    gateway = FakeGateway(lambda _: refusals.pop() if refusals else None)
    a_client(gateway).schedule_many("emails", numbered(100))
    assert list(map(len, gateway.calls)) == [100] * 4


# Calls in lanes


FOR_EVER = Patience(attempts=10**9, seconds=10 * HANG_SECONDS, first_wait=10 * HANG_SECONDS, longest_wait=3600.0)


@pytest.mark.parametrize("how", ["one", "each"])
def test_closing_awaits_no_retries(how):
    is_down, before = threading.Event(), set(threading.enumerate())
    calls = Calls(patience=FOR_EVER, clock=SystemClock(), jitter=lambda: 0.5)

    def fail(items=()):
        is_down.set()
        raise Unavailable("no")

    def call(number):
        if number > 0:
            return calls.run(fail) if how == "one" else calls.run_each(fail, [number], size=BatchSize(10))
        assert is_down.wait(HANG_SECONDS)
        return 0

    results = in_lanes(call, range(100))
    assert next(results) == 0
    ended = threading.Thread(target=results.close, daemon=True)
    ended.start()
    ended.join(HANG_SECONDS)
    assert not ended.is_alive()
    assert not [each for each in set(threading.enumerate()) - before if each.name.startswith("dueline-lane")]


def test_abandoned_lane_makes_no_further_request():
    requests = []
    calls = Calls(patience=Patience(), clock=VirtualClock(NOW), jitter=lambda: 0.5)

    def answer(items):
        requests.append(items)
        assert _THIS_LANE.ended.wait(HANG_SECONDS)
        return items

    def interrupted():
        yield [1] * 30
        assert wait_until(lambda: bool(requests), every=0.01)
        raise KeyboardInterrupt

    lanes = in_lanes(lambda items: calls.run_each(answer, items, size=BatchSize(10)), interrupted())
    with pytest.raises(KeyboardInterrupt):
        next(lanes)
    assert len(requests) == 1


def test_process_ends_with_unread_results():
    """A program that reads some results and ends, or fails, does not wait for the lanes of the rest."""
    program = "from dueline.core.retry import in_lanes; results = in_lanes(str, iter(range(100))); next(results)"
    done = subprocess.run([sys.executable, "-c", program], timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0


# The client for asyncio


@pytest.fixture
def client(api_server):
    return AsyncClient(Client.connect(url=api_server.url))


@pytest.mark.parametrize(("kind", "for_asyncio"), [(Client, AsyncClient), (Schedules, AsyncSchedules)])
def test_async_client_has_each_call(kind, for_asyncio):
    calls = {name: call for name, call in vars(kind).items() if inspect.isfunction(call) and name[0] != "_"}
    assert calls
    for name, call in calls.items():
        mine = vars(for_asyncio)[name]
        assert inspect.signature(mine).parameters.keys() == inspect.signature(call).parameters.keys()
        assert mine.__doc__


def test_async_schedule_each_streams_results(client, api_server):
    """A stream that is closed sends no more."""

    async def send_all():
        jobs = (NewJob(payload=n, key=str(n)) for n in range(1234))
        return [int(job.id[-12:]) async for job in client.schedule_each("emails", jobs)]

    async def send_one():
        jobs = (received.append(n) or NewJob(payload=n) for n in range(100_000))
        async with aclosing(client.schedule_each("emails", jobs)) as results:
            return await anext(results)

    received = []
    assert asyncio.run(send_all()) == list(range(1234))
    api_server.requests.clear()
    assert isinstance(asyncio.run(send_one()), Job)
    assert sum(len(request.json["jobs"]) for request in api_server.requests) <= len(received) < 100_000


def test_lanes_have_the_callers_context():
    """Of it, whatever instruments requests makes their trace."""
    trace = ContextVar("trace", default="none")
    trace.set("the caller's")
    assert set(in_lanes(lambda _: trace.get(), range(30))) == {"the caller's"}
