"""The client for asyncio, over real sockets."""

import asyncio
import inspect
import threading
from contextlib import aclosing

import pytest

from dueline import AsyncClient, Client, DuelineError, Job, NewJob, State
from dueline.errors import Unavailable
from tests.builders import an_id
from tests.fake_api_server import default_reply, job_json, json_reply
from tests.waiting import HANG_SECONDS


@pytest.fixture
def client(api_server):
    return AsyncClient(Client.connect(url=api_server.url))


def test_async_client_has_every_call_and_parameter():
    calls = {name: call for name, call in vars(Client).items() if inspect.isfunction(call) and name[0] != "_"}
    assert calls
    for name, call in calls.items():
        mine = vars(AsyncClient)[name]
        assert inspect.signature(mine).parameters.keys() == inspect.signature(call).parameters.keys()
        assert mine.__doc__


def test_calls_are_answered_as_the_client_answers_them(client):
    id = str(an_id())

    async def send_request():
        return (
            await client.schedule("emails", {"to": "ann"}, delay=5),
            await client.schedule_many("emails", [NewJob(payload=1), NewJob(payload=1, delay=-1)]),
            await client.cancel(id),
        )

    job, (first, second), state = asyncio.run(send_request())
    assert isinstance(job, Job)
    assert isinstance(first, Job)
    assert isinstance(second, DuelineError)
    assert state is State.CANCELLED


def test_the_event_loop_goes_on_meanwhile(client, api_server):
    matches = threading.Barrier(2, timeout=HANG_SECONDS)

    def together(request):
        matches.wait()
        return default_reply(request)

    api_server.respond = together

    async def send_request():
        return await asyncio.gather(client.get(str(an_id())), client.get(str(an_id())))

    assert len(asyncio.run(send_request())) == 2


def test_jobs_are_listed_page_by_page(client, api_server):
    ids = [an_id() for _ in range(3)]
    pages = {"": (ids[:2], "p-2"), "p-2": (ids[2:], None)}

    def listing(request):
        jobs, after = pages["p-2" if "next=" in request.path else ""]
        return json_reply({"jobs": [job_json(id, "scheduled") | {"payload": 1} for id in jobs], "next": after})

    api_server.respond = listing

    async def send_request():
        return [job.id async for job in client.jobs("emails")]

    assert asyncio.run(send_request()) == [str(id) for id in ids]


def test_async_schedule_each_streams_results(client):
    async def send_request():
        jobs = (NewJob(payload=n, key=str(n)) for n in range(1234))
        return [int(job.id[-12:]) async for job in client.schedule_each("emails", jobs)]

    assert asyncio.run(send_request()) == list(range(1234))


def test_closing_an_async_stream_early_leaves_the_rest_unsent(client, api_server):
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
