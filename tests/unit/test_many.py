"""Many jobs at once: batches, lanes, streams, and asyncio."""

import asyncio
import inspect
import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from contextvars import ContextVar
from unittest.mock import Mock

import pytest

from dueline import AsyncClient, AsyncSchedules, Client, Job, NewJob, Patience, Schedules, Unavailable
from dueline.client.http import HttpApi, HttpResponse
from dueline.core.clock import SystemClock
from dueline.core.retry import _THIS_LANE, CALL_ITEMS, LANES, LEAST_ITEMS, BatchSize, Calls, in_lanes
from dueline.core.threads import Threads, in_thread
from dueline.testing import VirtualClock
from tests.builders import NOW, an_id
from tests.fake_api_server import default_reply, job_json, problem
from tests.forking import run_in_fork
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
    assert_all_scheduled_once(a_client(gateway).schedule_many("emails", numbered(1000)), gateway, 1000)


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
    clock = VirtualClock(NOW)
    results = a_client(gateway, clock=clock, attempts=1000, seconds=30).schedule_many("emails", numbered(5000))
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
    received = 0

    def jobs():
        nonlocal received
        for job in numbered(4000):
            received += 1
            yield job

    held = []
    for reported, result in enumerate(a_client(FakeGateway()).schedule_each("emails", jobs())):
        assert isinstance(result, Job)
        held.append(received - reported)
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


class Outage:
    """Calls that fail, all of them; `started_at` once there were some."""

    def __init__(self):
        self.started = threading.Event()
        self.count = 0

    def __call__(self, items):
        self.count += 1
        self.started.set()
        raise Unavailable("no")


def lanes_in(outage, *, how):
    """Yield a first result, and then those of an outage."""
    calls = Calls(patience=FOR_EVER, clock=SystemClock(), jitter=lambda: 0.5)
    size = BatchSize(10)

    def call(number):
        if number == 0:
            assert outage.started.wait(HANG_SECONDS)
            return 0
        if how == "one":
            return calls.run(lambda: outage([number]))
        return calls.run_each(outage, [number], size=size)

    return in_lanes(call, range(100))


def read_on(results):
    """Read all results, of which there may be some that were there already."""
    with pytest.raises(RuntimeError, match="a forked one cannot read on"):
        list(results)


@pytest.mark.parametrize("do", [read_on, Generator.close])
def test_forked_results_hang_nobody(do):
    are_forked = threading.Event()
    results = in_lanes(lambda number: number == 0 or are_forked.wait(HANG_SECONDS), range(100))
    assert next(results)
    is_ended = run_in_fork(lambda: do(results))
    are_forked.set()
    assert is_ended
    assert list(results) == [True] * 99


@pytest.mark.parametrize("how", ["one", "each"])
def test_closing_awaits_no_retries(how):
    outage, before = Outage(), set(threading.enumerate())
    results = lanes_in(outage, how=how)
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


@pytest.mark.parametrize("run", [Threads(8).spread, in_lanes], ids=["a pool", "lanes"])
def test_no_thread_to_be_had_is_unavailable(monkeypatch, run):
    """No call is made then, nor later; and calls in the threads that there are go on."""
    requests = []
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
    with pytest.raises(Unavailable, match="no thread can be started: can't start new thread"):
        list(run(requests.append, [-1, -2]))
    monkeypatch.undo()
    assert list(run(abs, [-1, -2])) == [1, 2]
    assert requests == []


@pytest.mark.parametrize("started", [1, LANES - 1])
def test_few_threads_make_all_calls(monkeypatch, started):
    """Where one more thread cannot be started, each call is made all the same, and once."""
    start, requests, left = threading.Thread.start, [], list(range(started))

    def start_some(thread):
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        start(thread)

    def call(item):
        requests.append(item)
        return -item

    monkeypatch.setattr(threading.Thread, "start", start_some)
    assert list(in_lanes(call, range(40))) == [-item for item in range(40)]
    assert sorted(requests) == list(range(40))


def test_call_without_a_thread_never_starts(monkeypatch):
    started_at = []

    async def call():
        asyncio.get_running_loop().set_default_executor(executor)
        with monkeypatch.context() as without_threads:
            without_threads.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
            with pytest.raises(Unavailable, match="no thread can be started"):
                await in_thread(started_at.append, 1)
        assert await in_thread(abs, -1) == 1

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(call())
    assert started_at == []


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


def test_the_event_loop_goes_on_meanwhile(client, api_server):
    matches = threading.Barrier(2, timeout=HANG_SECONDS)

    def together(request):
        matches.wait()
        return default_reply(request)

    api_server.respond = together

    async def send_request():
        return await asyncio.gather(client.get(str(an_id())), client.get(str(an_id())))

    assert len(asyncio.run(send_request())) == 2


def test_async_schedule_each_streams_results(client):
    async def send_request():
        jobs = (NewJob(payload=n, key=str(n)) for n in range(1234))
        return [int(job.id[-12:]) async for job in client.schedule_each("emails", jobs)]

    assert asyncio.run(send_request()) == list(range(1234))


def test_closed_async_stream_sends_no_more(client, api_server):
    received = []

    def jobs():
        for n in range(100_000):
            received.append(n)
            yield NewJob(payload=n)

    async def send_request():
        async with aclosing(client.schedule_each("emails", jobs())) as results:
            return await anext(results)

    assert isinstance(asyncio.run(send_request()), Job)
    sent = sum(len(request.json["jobs"]) for request in api_server.requests)
    assert sent <= len(received) < 100_000


@pytest.mark.parametrize("linger", [None, 0.01])
def test_call_without_a_thread_is_unavailable(api_server, monkeypatch, linger):
    """Whichever of its threads cannot be started: the call says so, and no job is there twice."""
    start = threading.Thread.start
    for refused in range(5):
        client, started = AsyncClient(Client.connect(url=api_server.url, linger=linger)), []

        def start_all_but_one(thread, started=started, refused=refused):
            if thread.name.startswith(("asyncio_", "dueline-")):
                started.append(thread.name)
                if len(started) == refused + 1:
                    raise RuntimeError("can't start new thread")
            start(thread)

        async def schedule(client=client):
            try:
                return await client.schedule("emails", 1, key="1")
            except Unavailable:
                assert isinstance(await client.schedule("emails", 1, key="1"), Job)

        monkeypatch.setattr(threading.Thread, "start", start_all_but_one)
        if asyncio.run(schedule()):
            break
    # A request that no thread could send for several callers is tried again, as any that is Unavailable.
    assert refused == 1


def test_lanes_have_the_callers_context():
    """Of it, whatever instruments requests makes their trace."""
    trace = ContextVar("trace", default="none")
    trace.set("the caller's")
    assert set(in_lanes(lambda _: trace.get(), range(30))) == {"the caller's"}
