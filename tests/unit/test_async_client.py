"""The client for asyncio, over real sockets."""

import asyncio
import inspect
import threading
from contextlib import aclosing

import pytest

from dueline import AsyncClient, Client, DuelineError, Job, NewJob, QueueNotFound, State
from tests.builders import an_id
from tests.gate import a_job_told, an_api, open_gate, told
from tests.waiting import HANG_SECONDS


@pytest.fixture
def gate():
    with open_gate() as opened:
        yield opened


@pytest.fixture
def client(gate):
    return AsyncClient(Client.connect(url=gate.url))


def test_it_has_every_call_of_the_client_with_the_same_parameters():
    calls = {name: call for name, call in vars(Client).items() if inspect.isfunction(call) and name[0] != "_"}
    assert calls
    for name, call in calls.items():
        mine = vars(AsyncClient)[name]
        assert inspect.signature(mine).parameters.keys() == inspect.signature(call).parameters.keys()
        assert mine.__doc__


def test_calls_are_answered_as_the_client_answers_them(client):
    id = str(an_id())

    async def ask():
        return (
            await client.schedule("emails", {"to": "ann"}, delay=5),
            await client.schedule_many("emails", [NewJob(payload=1), NewJob(payload=1, delay=-1)]),
            await client.cancel(id),
        )

    job, (first, second), state = asyncio.run(ask())
    assert isinstance(job, Job)
    assert isinstance(first, Job)
    assert isinstance(second, DuelineError)
    assert state is State.CANCELLED


def test_an_error_is_raised_where_it_is_awaited(client):
    with pytest.raises(QueueNotFound):
        asyncio.run(client.schedule("no/queue", 1))


def test_the_event_loop_goes_on_meanwhile(client, gate):
    met = threading.Barrier(2, timeout=HANG_SECONDS)

    def together(asked):
        met.wait()
        return an_api(asked)

    gate.api = together

    async def ask():
        return await asyncio.gather(client.get(str(an_id())), client.get(str(an_id())))

    assert len(asyncio.run(ask())) == 2


def test_jobs_are_listed_page_by_page(client, gate):
    ids = [an_id() for _ in range(3)]
    pages = {"": (ids[:2], "p-2"), "p-2": (ids[2:], None)}

    def listed(asked):
        jobs, after = pages["p-2" if "next=" in asked.path else ""]
        return told({"jobs": [a_job_told(id, "scheduled") | {"payload": 1} for id in jobs], "next": after})

    gate.api = listed

    async def ask():
        return [job.id async for job in client.jobs("emails")]

    assert asyncio.run(ask()) == [str(id) for id in ids]


def test_a_stream_of_jobs_is_scheduled_as_the_client_schedules_it(client):
    async def ask():
        jobs = (NewJob(payload=n, key=str(n)) for n in range(1234))
        return [int(job.id[-12:]) async for job in client.schedule_each("emails", jobs)]

    assert asyncio.run(ask()) == list(range(1234))


def test_whoever_leaves_a_stream_early_leaves_the_rest_unsent_and_holds_nothing_up(client, gate):
    taken = []

    def jobs():
        for n in range(100_000):
            taken.append(n)
            yield NewJob(payload=n)

    async def ask():
        async with aclosing(client.schedule_each("emails", jobs())) as results:
            return await anext(results)

    assert isinstance(asyncio.run(ask()), Job)
    sent = sum(len(asked.json["jobs"]) for asked in gate.asked)
    assert sent <= len(taken) < 100_000
