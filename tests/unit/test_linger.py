"""Calls of threads and tasks that travel as one request. An API that is held shows what came while it was."""

import asyncio
import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from datetime import timedelta
from functools import partial

import pytest

from dueline import AsyncClient, Client, InvalidJob, Job, Patience, QueueNotFound, State, Unavailable
from dueline.client.http import MOST_BYTES, HttpApi, HttpResponse
from dueline.core.clock import SystemClock
from dueline.core.trace import TraceContext
from tests.builders import an_id
from tests.fake_api_server import ApiRequest, default_reply, json_reply, problem, problem_reply
from tests.forking import run_in_fork
from tests.waiting import HANG_SECONDS, wait_until

# A test that waits for that long waits for something else.
LONG = 2 * HANG_SECONDS
QUICK = Patience(attempts=3, first_wait=0.0)
CALLERS = 8


class HeldApi:
    """An API that answers a queue's first request, and any that `holds` says, only once it is let go."""

    def __init__(self, *, holds=lambda request, before: before == 0):
        self.requests_received = []
        self.answer = default_reply
        self._holds = holds
        self._open = threading.Event()
        self._lock = threading.Lock()

    def send(self, method, path, body, *, headers, queue=None):
        if path == "/queues":
            return HttpResponse(request=path, status=200, headers={}, body=b"{}")
        request = ApiRequest(method=method, path=path, headers=dict(headers), body=(body or "").encode())
        with self._lock:
            before = sum(each.path == path for each in self.requests_received)
            self.requests_received.append(request)
        if self._holds(request, before):
            assert self._open.wait(HANG_SECONDS)
        reply = self.answer(request)
        return HttpResponse(request=f"{method} {path}", status=reply.status, headers=reply.headers, body=reply.body)

    def let_go(self):
        self._open.set()

    @property
    def batches(self):
        return [
            sorted(job["payload"] for job in request.json.get("jobs", [request.json]))
            for request in self.requests_received
        ]


def a_client(api, *, linger=LONG, patience=QUICK):
    http = HttpApi(lambda: api, clock=SystemClock(), new_uuid=iter(map(str, range(10**6))).__next__)
    return Client(http, patience=patience, linger=linger)


def waiting(client, what="_scheduling"):
    """Return how many calls wait to leave."""
    batches = getattr(client, what).pending().by_key.values()
    return sum(len(each.calls) for batch in list(batches) for each in batch if not each.leaves.is_set())


@pytest.fixture(autouse=True)
def _any_linger(monkeypatch):
    monkeypatch.setattr("dueline.client.coalescing.LONGEST_SECONDS", LONG)


@pytest.fixture
def api():
    return HeldApi()


@pytest.fixture
def client(api):
    return a_client(api)


@pytest.fixture
def threads():
    with ThreadPoolExecutor(600) as pool:
        yield pool


def one_under_way(client, api, threads, *more):
    """Schedule 0, which the API holds, and then more while it is under way; return their futures, all waiting."""
    first = threads.submit(client.schedule, "emails", 0)
    assert wait_until(lambda: bool(api.requests_received), every=0.001)
    futures = [threads.submit(client.schedule, "emails", payload) for payload in more]
    assert wait_until(lambda: waiting(client) == len(more) or len(api.requests_received) > 1, every=0.001)
    return first, futures


def test_calls_wait_no_longer_than_the_linger(api, threads):
    client = a_client(api, linger=0.01)
    first, others = one_under_way(client, api, threads, 1, 2)
    assert all(isinstance(each.result(HANG_SECONDS), Job) for each in others)
    assert not first.done()
    api.let_go()
    assert isinstance(first.result(), Job)


def test_a_job_that_is_no_good_fails_alone(api, client, threads):
    def all_but_2(request):
        if "jobs" not in request.json:
            return default_reply(request)
        wrong = {"error": problem(400, "invalid_job", "priority is 5")}
        good = zip(request.json["jobs"], json.loads(default_reply(request).body)["jobs"], strict=True)
        return json_reply({"jobs": [wrong if job["payload"] == 2 else each for job, each in good]})

    api.answer = all_but_2
    _, others = one_under_way(client, api, threads, 1, 2, 3)
    with pytest.raises(InvalidJob, match="delay is -1"):
        client.schedule("emails", 4, delay=-1)
    api.let_go()
    one, two, three = (each.exception() for each in others)
    assert (one, type(two), str(two), three) == (None, InvalidJob, "priority is 5", None)
    assert api.batches == [[0], [1, 2, 3]]


def test_refused_shared_request_is_split(api, client, threads):
    api.answer = lambda request: (
        problem_reply(400, "invalid_job", "body") if "jobs" in request.json else default_reply(request)
    )
    _, others = one_under_way(client, api, threads, 1, 2)
    api.let_go()
    assert all(isinstance(each.result(), Job) for each in others)
    assert sorted(api.batches) == [[0], [1], [1, 2], [2]]


@pytest.mark.parametrize(
    ("status", "code", "kind", "tries"),
    [(404, "queue_not_found", QueueNotFound, 1), (503, "unavailable", Unavailable, 3)],
)
def test_failed_shared_request_is_retried(api, client, threads, status, code, kind, tries):
    first, others = one_under_way(client, api, threads, 1, 2)
    api.answer = lambda _: problem_reply(status, code)
    api.let_go()
    errors = [each.exception() for each in (first, *others)]
    assert [type(error) for error in errors] == [kind] * 3
    assert len({id(error) for error in errors}) == 3
    assert len({error.idempotency_key for error in errors}) == 3
    assert sorted(n for batch in api.batches for n in batch) == sorted([0, 1, 2] * tries)


def test_unforeseen_error_reaches_each_caller(api, client, threads):
    api.answer = lambda request: 1 / 0 if "jobs" in request.json else default_reply(request)
    _, others = one_under_way(client, api, threads, 1, 2)
    api.let_go()
    assert [type(each.exception()) for each in others] == [ZeroDivisionError] * 2
    assert client._scheduling.pending().by_key == {}


@pytest.mark.usefixtures("interruptible")
def test_interrupted_waiting_call_harms_no_other(api, client, threads):
    main = threading.get_ident()
    first, others = one_under_way(client, api, threads, 1, 2)

    def interrupt():
        assert wait_until(lambda: waiting(client) == 3, every=0.001)
        signal.pthread_kill(main, signal.SIGINT)

    threads.submit(interrupt)
    with pytest.raises(KeyboardInterrupt):
        client.schedule("emails", 3)
    api.let_go()
    assert all(isinstance(each.result(), Job) for each in (first, *others))
    assert sorted(n for batch in api.batches for n in batch) == [0, 1, 2]


def test_interrupted_first_call_of_a_batch_strands_no_other(api, client, threads, monkeypatch):
    """A signal comes as it passes its batch on to be sent, which another call has joined by then."""
    first, _ = one_under_way(client, api, threads)
    pending, joined = client._scheduling.pending(), []

    def interrupted(*_):
        joined.append(threads.submit(client.schedule, "emails", 2))
        assert wait_until(lambda: waiting(client) == 2, every=0.001)
        raise KeyboardInterrupt

    monkeypatch.setattr(pending.senders, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.schedule("emails", 1)
    monkeypatch.undo()
    api.let_go()
    assert all(isinstance(each.result(HANG_SECONDS), Job) for each in (first, *joined))
    assert wait_until(lambda: pending.by_key == {})


def test_queues_wait_for_nobody_but_themselves(api, client, threads):
    first, _ = one_under_way(client, api, threads)
    api._holds = lambda *_: False
    assert isinstance(client.schedule("invoices", 1), Job)
    assert not first.done()
    api.let_go()


def test_jobs_of_one_trace_travel_together(threads, monkeypatch):
    of_thread = threading.local()
    monkeypatch.setattr("dueline.otel.current", lambda: getattr(of_thread, "trace", None))
    api = HeldApi(holds=lambda request, before: request.json.get("payload") in (10, 20))
    client = a_client(api)

    def schedule(n):
        of_thread.trace = TraceContext(parent=f"00-{n // 10:032x}-{n // 10:016x}-01")
        return client.schedule("emails", n)

    jobs = [threads.submit(schedule, n) for n in (10, 20)]
    assert wait_until(lambda: len(api.requests_received) == 2, every=0.001)
    jobs += [threads.submit(schedule, n) for n in (11, 21, 12, 22)]
    assert wait_until(lambda: waiting(client) == 4 or len(api.requests_received) > 2, every=0.001)
    api.let_go()
    assert all(isinstance(each.result(), Job) for each in jobs)
    traces = [int(request.headers["traceparent"][3:35]) for request in api.requests_received]
    assert sorted(zip(traces, api.batches, strict=True)) == [(1, [10]), (1, [11, 12]), (2, [20]), (2, [21, 22])]
    assert client._scheduling.pending().by_key == {}


def test_tasks_requests_are_sent_in_their_context():
    """Of it, whatever instruments requests makes their trace."""
    trace, sent_in = ContextVar("trace", default="none"), []
    api = HeldApi(holds=lambda *_: False)
    api.answer = lambda request: (sent_in.append(trace.get()), default_reply(request))[1]

    async def schedule():
        trace.set("the task's")
        await AsyncClient(a_client(api)).schedule("emails", 1)

    asyncio.run(schedule())
    assert sent_in == ["the task's"]


def test_cancels_by_key_travel_apart_from_those_by_id(threads):
    api = HeldApi(holds=lambda request, _: request.method == "DELETE")
    client = a_client(api)
    first = threads.submit(client.cancel, str(an_id()))
    assert wait_until(lambda: bool(api.requests_received), every=0.001)
    ids, keys = [str(an_id()), str(an_id())], ["a", "b"]
    others = [threads.submit(client.cancel, id) for id in ids]
    others += [threads.submit(partial(client.cancel, queue="emails", key=key)) for key in keys]
    assert wait_until(lambda: waiting(client, "_cancelling") == 3, every=0.001)
    api.let_go()
    assert [each.result() for each in (first, *others)] == [State.CANCELLED] * 5
    assert sorted(ids) in [sorted(request.json.get("ids", ())) for request in api.requests_received if request.body]


# Tasks of an event loop


def in_a_loop(scenario, api, **options):
    """Run a scenario with a client of which one call is under way, and the task of that."""
    client = AsyncClient(a_client(api, **options))

    async def run():
        first = asyncio.create_task(client.schedule("emails", 0))
        await until(lambda: bool(api.requests_received))
        return await asyncio.wait_for(scenario(client, first), HANG_SECONDS)

    return asyncio.run(run())


async def until(matches):
    while not matches():
        await asyncio.sleep(0.001)


def test_full_batch_of_500_tasks_does_not_wait(api):
    async def scenario(client, first):
        tasks = [asyncio.create_task(client.schedule("emails", n)) for n in range(1, 511)]
        await until(lambda: len(api.requests_received) == 2 and waiting(client.client) == 10)
        assert not first.done()
        api.let_go()
        return await asyncio.gather(first, *tasks)

    jobs = in_a_loop(scenario, api)
    assert len({job.id for job in jobs}) == 511
    assert [len(batch) for batch in api.batches] == [1, 500, 10]


@pytest.mark.parametrize("size", [MOST_BYTES // 4, MOST_BYTES // 4 * 3])
def test_what_has_5_mb_together_does_not_wait(api, size):
    async def scenario(client, first):
        tasks = [asyncio.create_task(client.schedule("emails", "x" * size)) for _ in range(4)]
        await until(lambda: len(api.requests_received) >= 2)
        api.let_go()
        return await asyncio.gather(first, *tasks)

    in_a_loop(scenario, api)
    assert all(len(request.body) < MOST_BYTES + 1000 for request in api.requests_received)
    assert sum(map(len, api.batches)) == 5


def test_cancelled_waiting_task_harms_no_other(api):
    async def scenario(client, first):
        gone, *tasks = [asyncio.create_task(client.schedule("emails", n)) for n in (1, 2, 3)]
        await until(lambda: waiting(client.client) == 3)
        gone.cancel()
        await asyncio.wait([gone])
        api.let_go()
        return await asyncio.gather(first, *tasks)

    assert len(in_a_loop(scenario, api)) == 3
    assert [len(batch) for batch in api.batches] == [1, 2]


def test_failed_request_of_tasks_is_retried(api, monkeypatch):
    monkeypatch.setattr(SystemClock, "sleep", None)
    failures = [problem_reply(503, "unavailable"), problem_reply(503, "unavailable")]
    api.answer = lambda request: failures.pop() if "jobs" in request.json and failures else default_reply(request)

    async def scenario(client, first):
        tasks = [asyncio.create_task(client.schedule("emails", n)) for n in (1, 2)]
        await until(lambda: waiting(client.client) == 2)
        api.let_go()
        return await asyncio.gather(first, *tasks)

    assert all(isinstance(job, Job) for job in in_a_loop(scenario, api))


# What a client is shown, and forks


def test_without_a_linger_nothing_is_shared(threads):
    api = HeldApi(holds=lambda *_: True)
    client = a_client(api, linger=None)
    jobs = [threads.submit(client.schedule, "emails", n) for n in range(4)]
    assert wait_until(lambda: len(api.requests_received) == 4, every=0.001)
    api.let_go()
    assert all(isinstance(each.result(), Job) for each in jobs)


@pytest.mark.parametrize("wrong", [-0.001, float("nan"), 2 * LONG, True, "5", timedelta(days=1)], ids=str)
def test_a_linger_that_makes_no_sense_is_refused(wrong):
    for connect in (Client.connect, AsyncClient.connect):
        with pytest.raises(ValueError, match=r"linger is .*: it must be from 0 to .* seconds, or a timedelta, or None"):
            connect(url="http://127.0.0.1:1", linger=wrong)


def test_forked_child_awaits_no_parents_request(threads):
    api = HeldApi(holds=lambda request, before: request.json.get("payload") == 0)
    client = a_client(api)
    first, others = one_under_way(client, api, threads, 1, 2)
    assert run_in_fork(lambda: (client.schedule("emails", 3), asyncio.run(AsyncClient(client).schedule("emails", 4))))
    api.let_go()
    assert all(isinstance(each.result(), Job) for each in (first, *others))
