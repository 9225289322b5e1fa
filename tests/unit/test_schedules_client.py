"""The client's schedules over real sockets: against the API's own function, and against answers that it is told."""

import asyncio
import inspect
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import parse_qsl, urlsplit

import pytest

from dueline import (
    AsyncClient,
    AsyncSchedules,
    Client,
    Forbidden,
    InvalidJob,
    InvalidSchedule,
    Patience,
    QueueNotFound,
    Run,
    ScheduleChanged,
    ScheduleNotFound,
    Schedules,
    Unavailable,
)
from dueline.aws.direct_api import DirectApi
from dueline.config.settings import ApiSettings
from dueline.worker.declaring import Declaring
from dueline.worker.scheduled import ScheduledInCode
from tests.builders import a_queue
from tests.called import imported, over
from tests.gate import DROPPED, open_gate, told

BERLIN = {"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin"}
START, END = datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 9, tzinfo=UTC)


@pytest.fixture
def gate():
    with open_gate() as opened:
        yield opened


@pytest.fixture
def api(gate, monkeypatch):
    """The gate, behind which the API's function is."""

    with imported(monkeypatch, a_queue()) as api:
        gate.api = partial(over, api)
        yield gate


@pytest.fixture
def schedules(gate):
    return Client.connect(url=gate.url).schedules("emails")


def test_a_schedule_is_put_found_listed_paused_resumed_and_deleted(api, schedules):
    made = schedules.put(
        "digest", **BERLIN, payload={"to": ["ann"]}, jitter=30, tenant="t", owner="me", catch_up="none"
    )
    assert (made.queue, made.name, made.cron, made.zone, made.generation) == ("emails", "digest", *BERLIN.values(), 1)
    assert (made.payload, made.jitter, made.tenant, made.every) == ({"to": ["ann"]}, timedelta(seconds=30), "t", None)
    assert [(run.local.hour, run.nominal == run.local) for run in made.next] == [(9, True)] * 5
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


def test_all_that_a_rule_may_have_goes_there_and_comes_back(api, schedules):
    every, start, end = timedelta(hours=8), datetime(2035, 1, 1, tzinfo=UTC), datetime(2035, 1, 8, tzinfo=UTC)
    rest = {"start": start, "end": end, "count": 5, "overlap": "skip", "description": "d"}
    made = schedules.put("beat", every=every, priority=1, **rest)
    assert (made.every, made.start, made.end, made.count) == (every, start, end, 5)
    assert (made.overlap, made.description, made.payload) == ("skip", "d", None)
    assert schedules.put("beat", every=8 * 3600.0, **rest) == made


def test_it_runs_on_demand_and_for_what_has_passed_once_a_key_and_tells_its_history(api, schedules):
    schedules.put("digest", every=86_400, payload=1)
    first = schedules.run("digest", payload=None, key="k")
    assert schedules.run("digest", payload=None, key="k") == first
    assert schedules.run("digest").id != first.id
    bodies = [asked.json for asked in api.asked if asked.path.endswith("/run")]
    assert bodies == [{"payload": None}, {"payload": None}, {}]
    runs = schedules.backfill("digest", start=START, end=END)
    assert [run.nominal for run in runs] == [START + timedelta(days=day) for day in range(7)]
    assert schedules.history("digest", most=3, before=END) == []


def test_what_a_rule_would_do_is_shown_and_what_is_wrong_is_told_by_the_field(api, schedules):
    [run] = schedules.preview(**BERLIN, after=START, most=1)
    assert run.local.isoformat() == "2026-11-02T09:00:00+01:00"
    with pytest.raises(InvalidSchedule, match="cron"):
        schedules.put("digest", cron="61 * * * *")
    with pytest.raises(QueueNotFound):
        Client.connect(url=api.url).schedules("no-such").get("digest")


def test_a_list_is_fetched_a_page_at_a_time(gate, schedules):
    gate.script = [told({"schedules": [], "next": "b"}), told({"schedules": [], "next": None})]
    listed = schedules.list()
    assert gate.asked == []
    assert list(listed) == []
    queries = [dict(parse_qsl(urlsplit(asked.path).query)) for asked in gate.asked]
    assert queries == [{"limit": "100"}, {"limit": "100", "next": "b"}]


def test_a_run_tells_how_far_it_has_come(gate, schedules):
    at = START.isoformat()
    run = {"id": "i", "nominal": at, "generation": 2, "state": "failed", "attempts": 1, "error": "E", "lateness": 1}
    gate.script = [told({"runs": [run]})]
    assert schedules.history("digest") == [
        Run(id="i", nominal=START, generation=2, state="failed", attempts=1, error="E", lateness=1.0)
    ]
    assert gate.asked[0].path.endswith("/digest/history?limit=10")


@pytest.mark.parametrize("ask", ["run", "backfill"])
def test_what_is_asked_again_after_a_lost_answer_goes_under_the_same_key(gate, schedules, ask):
    made = {"id": "i", "nominal": START.isoformat()}
    gate.script = [DROPPED, told({**made, "runs": [made]})]
    span = {"start": START, "end": END} if ask == "backfill" else {}
    getattr(schedules, ask)("digest", **span)
    first, second = ({name.lower(): value for name, value in asked.headers.items()} for asked in gate.asked)
    assert first["idempotency-key"] == second["idempotency-key"] != ""


def test_with_only_new_a_schedule_that_is_there_is_left_alone_even_an_identical_one(api, schedules):
    made = schedules.put("digest", every=600, payload=1, only_new=True)
    for payload in (1, 2):
        with pytest.raises(ScheduleChanged, match="there already"):
            schedules.put("digest", every=600, payload=payload, only_new=True)
    assert schedules.get("digest") == made
    with pytest.raises(InvalidSchedule, match="if_match"):
        schedules.put("other", every=600, only_new=True, if_match=made.etag)


@pytest.mark.parametrize("by_others", [False, True])
def test_one_that_is_only_created_is_its_own_success_after_a_lost_answer_and_not_another_s(api, schedules, by_others):
    ask = api.api

    def lose(asked):
        api.api = ask
        ask(asked)
        if by_others:
            ask(replace(asked, body=b'{"every":3600}', headers={}))
        return DROPPED

    api.api = lose
    if by_others:
        with pytest.raises(ScheduleChanged, match="there already"):
            schedules.put("digest", every=600, only_new=True)
    else:
        assert schedules.put("digest", every=600, only_new=True) == schedules.get("digest")
    seconds, generation = (3600, 2) if by_others else (600, 1)
    found = schedules.get("digest")
    assert (found.every, found.generation) == (timedelta(seconds=seconds), generation)


def test_what_may_have_run_all_the_same_names_the_key_to_ask_again_with(gate):
    gate.script = [DROPPED]
    client = Client(Client.connect(url=gate.url)._api, patience=Patience(attempts=1))
    with pytest.raises(Unavailable) as refusal:
        client.schedules("emails").run("digest")
    assert (
        refusal.value.key == {name.lower(): value for name, value in gate.asked[0].headers.items()}["idempotency-key"]
    )


def test_a_worker_declares_by_it_what_is_in_its_code_and_deletes_what_is_there_no_more(api, schedules):
    schedules.put("old", every=60, owner="svc")
    schedules.put("by-hand", every=60)
    code = ScheduledInCode()
    given = {"cron": None, "every": timedelta(hours=1), "zone": "UTC", "payload": 1, "start": None, "end": None}
    given |= {"count": None, "tenant": None, "priority": 1, "jitter": 0.0, "catch_up": "all", "overlap": "skip"}
    code.add("emails", "hourly", {**given, "description": None})
    declaring = Declaring(
        scheduled=[("emails", code.of("emails"))],
        schedules=Client.connect(url=api.url).schedules,
        owner="svc",
        prune=True,
        report=lambda _: None,
        jitter=lambda: 0.0,
    )
    for _ in range(2):
        with declaring.declared():
            pass
    assert [(each.name, each.owner, each.generation) for each in schedules.list()] == [
        ("by-hand", None, 1),
        ("hourly", "svc", 1),
    ]


@pytest.mark.parametrize(
    ("ask", "error", "named"),
    [
        (lambda them: them.put("a#b", every=60), InvalidSchedule, "name"),
        (lambda them: them.put("a", every=60.5), InvalidSchedule, "every is 60.5"),
        (lambda them: them.put("a", every=True), InvalidSchedule, "every"),
        (lambda them: them.put("a", every=60, jitter=timedelta(seconds=0.1)), InvalidSchedule, "jitter is 0.1 s:"),
        (
            lambda them: them.put("a", every=60, start=START.replace(tzinfo=None)),
            InvalidSchedule,
            "start is 2026-11-02",
        ),
        (lambda them: them.put("a", every=60, payload={1j}), InvalidSchedule, "payload"),
        (lambda them: them.get("../../jobs"), InvalidSchedule, "name"),
        (lambda them: them.pause("a", if_match="a\nb"), InvalidSchedule, "if_match"),
        (lambda them: them.run("a", key="k\r\n"), InvalidJob, "key"),
        (lambda them: them.backfill("a", start=START, end="x"), InvalidSchedule, "end"),
        (lambda them: them.history("a", before=5), InvalidSchedule, "before"),
    ],
)
def test_what_cannot_be_asked_is_told_before_any_request(gate, schedules, ask, error, named):
    with pytest.raises(error, match=named):
        ask(schedules)
    assert gate.asked == []


def test_an_answer_that_holds_no_schedule_is_tried_again_and_in_the_end_unavailable(gate):
    gate.api = lambda _: told({"schedule": 5})
    client = Client(Client.connect(url=gate.url)._api, patience=Patience(attempts=2))
    with pytest.raises(Unavailable, match="no schedule"):
        client.schedules("emails").get("digest")
    assert len(gate.asked) == 2


def test_a_direct_client_says_how_to_reach_schedules():
    settings = ApiSettings(deployment="d", queue_urls="u/", payloads="p", direct_horizon=890, lookahead=240)
    client = Client(DirectApi(lambda: None, lambda: None, settings=settings))
    with pytest.raises(Forbidden, match="without direct=True"):
        client.schedules("emails")


def test_under_asyncio_there_is_each_call_with_the_same_parameters(gate):
    calls = {name: call for name, call in vars(Schedules).items() if inspect.isfunction(call) and name[0] != "_"}
    for name, call_ in calls.items():
        mine = vars(AsyncSchedules)[name]
        assert inspect.signature(mine).parameters.keys() == inspect.signature(call_).parameters.keys()
        assert mine.__doc__
    gate.script = [told({"next": []}), told({"schedules": [], "next": None})]

    async def ask():
        schedules = AsyncClient(Client.connect(url=gate.url)).schedules("emails")
        return await schedules.preview(every=60), [each async for each in schedules.list()]

    assert asyncio.run(ask()) == ([], [])
    assert json.loads(gate.asked[0].body) == {"every": 60, "zone": "UTC", "limit": 5}
