"""Arguments of wrong types and lengths: each call names the field and what is allowed, and makes no request."""

import asyncio
import inspect
from datetime import UTC, datetime

import pytest

from dueline import AsyncClient, Client
from dueline.aws.direct_api import DirectApi
from dueline.aws.server_clock import ServiceClock
from dueline.client.http import HttpApi
from dueline.errors import InvalidJob, JobNotFound, QueueNotFound
from dueline.testing import VirtualClock
from tests.builders import NOW, an_id

HUGE = 10**5000
NO_TEXTS = [b"k", 1, True, ["k"], object(), HUGE]
NO_KEYS = [*NO_TEXTS, "", "a\n", "\x00", "é", "\ud800", "x" * 256]
NO_QUEUES = [*NO_TEXTS, "", "E", "a/b", "../x", "a?b", "emails\n", "x" * 61]
ID = str(an_id())
NO_IDS = [*NO_TEXTS, "", "emails", "emails.0.t.1.nothing", f"{ID}/../x", f"{ID}\n"]
BAD = {
    "key": NO_KEYS,
    "idempotency_key": NO_KEYS,
    "if_exists": [None, "x", *NO_TEXTS],
    "kind": ["", "A", "a\n", "x" * 65, *NO_TEXTS],
    "tenant": ["", "a b", *NO_TEXTS],
    "priority": [None, "1", 0, 6, True, HUGE],
    "delay": ["1", float("nan"), True, HUGE],
    "at": [1, HUGE],
    "id": NO_TEXTS,
}
MOVES = ["get", "cancel", "reschedule"]
BY_KEY = {"queue": "emails", "key": "k"}
# Times that are none, with what is said of them.
NO_TIMES = [
    ({}, "at and delay are both missing"),
    ({"at": NOW, "delay": 5}, "give one of them"),
    ({"at": datetime(2027, 1, 4)}, "at is 2027-01-04T00:00:00, which has no time zone"),  # noqa: DTZ001
    ({"at": "2027-01-04T09:00:00Z"}, "at is '2027-01-04T09:00:00Z': it must be a datetime"),
    ({"at": datetime.max.replace(tzinfo=UTC)}, "at is 9999-12-31T23:59:59.999999+00:00: it must be from 1970"),
    ({"delay": -1}, "delay is -1"),
]
UNCLEAR = [{}, {"queue": "emails"}, {"key": "k"}, {"id": ID, "key": "k"}, {"id": ID, **BY_KEY}]


def calls():
    """Yield each call: its method, its arguments, and the field that its error names."""
    for field, values in BAD.items():
        time = {} if field in ("at", "delay") else {"delay": 60}
        yield from (("schedule", ("emails", 1), {**time, field: value}, field) for value in values)
    for name in MOVES:
        time = {"delay": 60} if name == "reschedule" else {}
        yield from ((name, (), {"queue": "emails", "key": value, **time}, "key") for value in NO_KEYS)
        yield from ((name, (), {"queue": value, "key": "k", **time}, "queue") for value in NO_QUEUES)
        yield from ((name, (value,), time, "not of the form of an id") for value in NO_IDS)
        yield from ((name, (), {**which, **time}, "give an id") for which in UNCLEAR)
    yield from (
        ("reschedule", (), {**BY_KEY, field: value}, field) for field in ("at", "delay") for value in BAD[field]
    )
    yield from (("reschedule", (ID,), time, said) for time, said in NO_TIMES)
    yield from (("schedule", ("emails", 1), time, said) for time, said in NO_TIMES if time)
    for name, more in {"schedule": [1], "schedule_many": [[]], "pause": [], "resume": [], "set_rate": [None]}.items():
        yield from ((name, (value, *more), {}, "no queue is named") for value in [None, *NO_QUEUES])
    yield "schedule", ("emails", "x" * (10 * 1024 * 1024 + 1)), {}, "payload has 10485763 bytes: at most 10485760"
    for some in ({}, {"ids": [], "queue": "emails"}, {"keys": []}, {"queue": "emails"}):
        yield "cancel_many", (), some, "give ids, or a queue and keys"
    yield from (("set_rate", ("emails", value), {}, "rate") for value in ["", "x", *NO_TEXTS])
    for value in ["k", b"k", 1, object()]:
        yield "schedule_many", ("emails", value), {}, "jobs"
        yield "cancel_many", (value,), {}, "ids"
        yield "cancel_many", (), {"queue": "emails", "keys": value}, "keys"


def requested():
    raise AssertionError("a request is made")


APIS = DirectApi(requested, clock=ServiceClock()), HttpApi(requested, clock=VirtualClock(NOW))


@pytest.mark.parametrize("client", [Client, lambda api: AsyncClient(Client(api))], ids=["Client", "AsyncClient"])
@pytest.mark.parametrize("api", APIS, ids=["direct", "HTTP"])
def test_bad_argument_is_named_before_a_request(api, client):
    async def error_of(name, args, options):
        try:
            answer = getattr(client(api), name)(*args, **options)
            return await answer if inspect.isawaitable(answer) else answer
        except (InvalidJob, JobNotFound, QueueNotFound) as error:
            return error

    async def errors():
        return [(call, await error_of(*call[:3])) for call in calls()]

    for (name, _, _, field), error in asyncio.run(errors()):
        assert isinstance(error, InvalidJob | JobNotFound | QueueNotFound), (name, field, error)
        assert field in str(error), (name, field, error)
        assert len(str(error)) < 500, (name, field)
