"""The client's schedules over real sockets: against the API's own function, and against scripted answers."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from urllib.parse import parse_qsl, urlsplit

import pytest

from dueline import (
    AsyncClient,
    Client,
    Forbidden,
    InvalidJob,
    InvalidSchedule,
    Patience,
    QueueNotFound,
    Run,
    ScheduleChanged,
    ScheduleNotFound,
    Unavailable,
)
from dueline.aws.direct_api import DirectApi
from dueline.aws.server_clock import ServiceClock
from tests.api_harness import forward_to_api
from tests.fake_api_server import DROPPED, json_reply

BERLIN = {"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin"}
START, END = datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 9, tzinfo=UTC)
NO_ZONE = START.replace(tzinfo=None)


@pytest.fixture
def api(api, api_server):
    """The fake server, with the API's function behind it."""
    api_server.respond = partial(forward_to_api, api)
    return api_server


@pytest.fixture
def schedules(api_server):
    return Client.connect(url=api_server.url).schedules("emails")


def impatient(api_server, *, attempts):
    client = Client(Client.connect(url=api_server.url)._api, patience=Patience(attempts=attempts))
    return client.schedules("emails")


def test_schedule_lives_and_is_deleted(api, schedules):
    made = schedules.put(
        "digest", **BERLIN, payload={"to": ["ann"]}, jitter=30, kind="k", tenant="t", owner="me", catch_up="none"
    )
    assert (made.queue, made.name, made.cron, made.zone, made.generation) == ("emails", "digest", *BERLIN.values(), 1)
    assert (made.payload, made.jitter, made.every) == ({"to": ["ann"]}, timedelta(seconds=30), None)
    assert (made.kind, made.tenant) == ("k", "t")
    assert [(run.local.hour, run.scheduled_for == run.local) for run in made.next] == [(9, True)] * 5
    assert [schedules.get("digest"), *schedules.list()] == [made] * 2

    paused = schedules.pause("digest", if_match=made.etag)
    assert (paused.paused, paused.next, paused.generation) == (True, (), 2)
    with pytest.raises(ScheduleChanged):
        schedules.put("digest", every=600, if_match=made.etag)
    assert schedules.resume("digest").next == made.next
    assert schedules.delete("digest").deleted
    with pytest.raises(ScheduleNotFound):
        schedules.get("digest")
    assert list(schedules.list()) == []


def test_retry_with_an_etag_survives_a_lost_response(api, schedules):
    made, answer = schedules.put("digest", every=600), api.respond

    def lose_one(request):
        api.respond = answer
        answer(request)
        return DROPPED

    api.respond = lose_one
    assert schedules.pause("digest", if_match=made.etag) == schedules.get("digest")


def test_rule_round_trips(api):
    """And payloads are written with the client's `default`."""
    schedules = Client.connect(url=api.url, default=str).schedules("emails")
    every, start, end = timedelta(hours=8), datetime(2035, 1, 1, tzinfo=UTC), datetime(2035, 1, 8, tzinfo=UTC)
    rest = {"start": start, "end": end, "count": 5, "overlap": "skip", "payload": {"on": START}}
    made = schedules.put("beat", every=every, priority=1, **rest)
    assert (made.every, made.start, made.end, made.count) == (every, start, end, 5)
    assert (made.overlap, made.payload) == ("skip", {"on": str(START)})
    assert schedules.put("beat", every=8 * 3600.0, **rest) == made
    assert schedules.put("beat", every="7h60m", jitter="0", **rest) == made
    schedules.run("beat", payload=[END])
    assert api.requests[-1].json == {"payload": [str(END)]}


def test_runs_and_backfills_are_idempotent_by_key(api, schedules):
    schedules.put("digest", every=86_400, payload=1)
    first = schedules.run("digest", payload=None, idempotency_key="k")
    assert schedules.run("digest", payload=None, idempotency_key="k") == first
    assert schedules.run("digest").id != first.id
    runs = schedules.backfill("digest", start=START, end=END)
    assert [run.scheduled_for for run in runs] == [START + timedelta(days=day) for day in range(7)]
    assert schedules.history("digest", most=3, before=END) == []
    with pytest.raises(InvalidSchedule, match="before"):
        schedules.history("digest", before=datetime.min.replace(tzinfo=timezone(timedelta(hours=5))))


def test_wrong_rules_and_queues_are_errors(api, schedules):
    for rule, named in (
        ({"cron": "61 * * * *"}, "cron"),
        ({"every": 60.5}, "every is 60.5"),
        ({"every": True}, "every"),
        ({"every": 60, "jitter": timedelta(seconds=0.1)}, "jitter is 0.1"),
    ):
        with pytest.raises(InvalidSchedule, match=named):
            schedules.put("digest", **rule)
    with pytest.raises(QueueNotFound):
        Client.connect(url=api.url).schedules("no-such").get("digest")


def test_a_list_is_fetched_a_page_at_a_time(api_server, schedules):
    async def in_asyncio():
        schedules = AsyncClient(Client.connect(url=api_server.url)).schedules("emails")
        return [each async for each in schedules.list()]

    pages = [json_reply({"schedules": [], "next": next}) for next in ("b", None)]
    api_server.script = pages * 2
    listing = schedules.list()
    assert api_server.requests == []
    assert list(listing) == asyncio.run(in_asyncio()) == []
    queries = [dict(parse_qsl(urlsplit(request.path).query)) for request in api_server.requests]
    assert queries == [{"limit": "100"}, {"limit": "100", "next": "b"}] * 2


def test_a_run_shows_how_far_it_has_come(api_server, schedules):
    run = {"id": "i", "generation": 2, "state": "failed", "attempts": 1, "error": "E", "lateness": 1.0}
    api_server.script = [json_reply({"runs": [run | {"scheduled_for": START.isoformat()}]})]
    assert schedules.history("digest") == [Run(**run, scheduled_for=START)]
    assert api_server.requests[0].path.endswith("/digest/history?limit=10")


@pytest.mark.parametrize("verb", ["run", "backfill"])
def test_retried_run_keeps_its_key(api_server, schedules, verb):
    """And its error has it."""
    made = {"id": "i", "scheduled_for": START.isoformat()}
    api_server.script = [DROPPED, json_reply({**made, "runs": [made]}), DROPPED]
    span = {"start": START, "end": END} if verb == "backfill" else {}
    getattr(schedules, verb)("digest", **span)
    with pytest.raises(Unavailable) as refusal:
        getattr(impatient(api_server, attempts=1), verb)("digest", **span)
    first, second, failed = (request.headers["idempotency-key"] for request in api_server.requests)
    assert first == second != failed == refusal.value.idempotency_key


@pytest.mark.parametrize(
    ("verb", "error", "named"),
    [
        (lambda them: them.put("a#b", every=60), InvalidSchedule, "name"),
        (lambda them: them.put("a", every=60, start=NO_ZONE), InvalidSchedule, "start is 2026-11-02"),
        (lambda them: them.put("a", every=60, payload={1j}), InvalidSchedule, "payload"),
        (lambda them: them.get("../../jobs"), InvalidSchedule, "name"),
        (lambda them: them.pause("a", if_match="a\nb"), InvalidSchedule, "if_match"),
        (lambda them: them.pause("a", if_match=7), InvalidSchedule, "if_match is 7"),
        (lambda them: them.run("a", idempotency_key="k\r\n"), InvalidJob, "idempotency_key"),
        (lambda them: them.backfill("a", start=START, end="x"), InvalidSchedule, "end"),
        (lambda them: them.history("a", before=5), InvalidSchedule, "before"),
    ],
)
def test_invalid_call_is_refused(api_server, schedules, verb, error, named):
    with pytest.raises(error, match=named):
        verb(schedules)
    assert api_server.requests == []


def test_unreadable_schedule_is_unavailable(api_server):
    api_server.respond = lambda _: json_reply({"schedule": 5})
    with pytest.raises(Unavailable, match="no schedule"):
        impatient(api_server, attempts=2).get("digest")
    assert len(api_server.requests) == 2


def test_direct_client_has_no_schedules():
    client = Client(DirectApi(lambda: None, clock=ServiceClock()))
    with pytest.raises(Forbidden, match="without direct=True"):
        client.schedules("emails")
