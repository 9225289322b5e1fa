"""Ids that callers make: what is refused and why, and that a forged one does no harm."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dueline.core import instant, rows
from dueline.core.cancel import cancelled_among
from dueline.core.idempotency import checked_id
from dueline.core.job import JobId, Partition, Route, State
from dueline.core.request import FURTHEST, Request
from dueline.errors import DuelineError, InvalidJob
from tests.api_harness import call_api, import_api
from tests.builders import NOW, RETENTION, a_queue, an_id
from tests.system import System

MS = timedelta(milliseconds=1)
QUEUE = a_queue(partitions=2)


def an_id_in(seconds, route=Route.TABLE, **more):
    return an_id(due=NOW + timedelta(seconds=seconds), route=route, **more)


@pytest.mark.parametrize(
    "id",
    [
        an_id_in(3600),
        an_id_in(3600, partition=Partition(queue="emails", number=1)),
        an_id_in(1),
        an_id_in(-1),
        an_id_in(900, Route.DIRECT),
        an_id_in(-1, Route.DIRECT),
        an_id(due=NOW - RETENTION + MS),
        an_id(due=NOW + FURTHEST),
    ],
    ids=str,
)
def test_valid_id_is_accepted(id):
    assert checked_id(str(id), queue=QUEUE, now=NOW) == id


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (str(an_id_in(60, partition=Partition(queue="bills", number=0))), "it is of queue 'bills', and the job is for"),
        (str(an_id_in(60, partition=Partition(queue="emails", number=2))), "partition 2 takes no jobs, .* has 0 to 1"),
        (str(an_id_in(900.001, Route.DIRECT)), "by route d SQS can hold it for 900 s: give it route t"),
        (str(an_id(due=NOW - RETENTION)), "was due at 2026-11-14T07:05:00.000Z, and is past its retention of 7 days"),
        (str(an_id(due=NOW + FURTHEST + timedelta(minutes=2))), "the latest is 2036-11-21T07:05:00.000Z, in 10 years"),
        (str(an_id_in(60)).upper(), "it must be of the form {queue}.{partition}"),
        (str(an_id_in(60, uid="0" * 32)), "it must be of the form"),
        ("emails.00.t.0.00000000-0000-4000-8000-000000000000", "it must be of the form"),
        ("", "id is '': it must be of the form"),
    ],
)
def test_bad_id_is_refused_with_the_reason(text, reason):
    with pytest.raises(InvalidJob, match=reason):
        checked_id(text, queue=QUEUE, now=NOW)


# Over HTTP


@pytest.fixture
def api(monkeypatch):
    with import_api(monkeypatch, QUEUE) as api:
        yield api


def in_an_hour():
    return str(an_id(due=instant.round_up(datetime.now(UTC) + timedelta(hours=1))))


def test_repeated_id_is_the_same_job(api):
    id = in_an_hour()
    answer = [call_api(api, "POST", "/queues/emails/jobs", {"payload": 1, "id": id}) for _ in range(2)]
    assert [(status, job["id"], job["due"]) for status, job in answer] == [
        (201, id, instant.text(JobId.parse(id).due))
    ] * 2


@pytest.mark.parametrize(
    ("beside", "reason"),
    [
        ({"at": "2030-01-01T00:00:00Z"}, "id and at are both given: give one of them"),
        ({"delay": 0}, "id and delay are both given"),
        ({"key": "k"}, "id and key are both given"),
    ],
)
def test_id_excludes_a_time_and_a_key(api, beside, reason):
    status, answer = call_api(api, "POST", "/queues/emails/jobs", {"payload": 1, "id": in_an_hour(), **beside})
    assert (status, answer["code"]) == (400, "invalid_job")
    assert reason in answer["detail"]


# A forged id does no harm

QUEUES = (a_queue(partitions=2), a_queue(name="bills", partitions=2))
PARTITIONS = [Partition(queue=queue.name, number=number) for queue in QUEUES for number in range(queue.partitions)]
UIDS = [f"00000000-0000-4000-8000-{n:012x}" for n in range(2)]
IDS = st.builds(
    JobId,
    partition=st.just(PARTITIONS[0])
    | st.sampled_from([*PARTITIONS, Partition(queue="emails", number=2), Partition(queue="email", number=0)]),
    route=st.sampled_from(Route),
    due=st.sampled_from([NOW + timedelta(seconds=seconds) for seconds in (-1, 60, 3600)]),
    uid=st.sampled_from(UIDS),
)
FORGED = st.one_of(
    IDS.map(str),
    st.builds(
        lambda text, at, put: f"{text[:at]}{put}{text[at + 1 :]}", IDS.map(str), st.integers(0, 60), st.text(max_size=3)
    ),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), FORGED), st.tuples(st.just("cancel"), IDS), st.tuples(st.just("tick"), st.none())
    ),
    max_size=8,
)


class Forgery:
    """A deployment whose queue `emails` has a producer who sends whatever ids: what is reported and written."""

    def __init__(self):
        self.system = System(*QUEUES)
        self.promised, self.queried, self.sent = set(), set(), 0

    def rows(self):
        tables = [self.system.table.page(partition, after="", until="~").rows for partition in PARTITIONS]
        return {(row["pk"], row["sk"]): row for rows in tables for row in rows}

    def submit(self, text):
        before = self.rows()
        self.sent += 1
        (result,) = self.system.submit(Request(payload=self.sent, id=text))
        self.system.ingest()
        after = self.rows()
        # Rows are added, and none is changed: not even its own, whose payload was another one.
        assert {key: after.get(key) for key in before} == before
        if isinstance(result, DuelineError):
            assert after == before
            return
        id = JobId.parse(text)
        assert id.queue == "emails"
        assert after.keys() - before.keys() <= {key(id) for key in (rows.job_key, rows.handled_key, rows.parked_key)}

    def cancel(self, id):
        # What the API refuses before it looks: other queues' ids and partitions that never were.
        if id.partition in PARTITIONS:
            self.queried.add(id)
            self.promised |= {id} if self.system.cancel(id) is State.CANCELLED else set()

    def tick(self, _):
        for partition in PARTITIONS:
            self.system.tick(partition)
        self.system.clock.sleep(300)


@settings(max_examples=75, deadline=None)
@given(STEPS)
def test_forged_ids_touch_no_rows_of_others(steps):
    forgery = Forgery()
    for name, options_to in [*steps, *[("tick", None)] * 13]:
        getattr(forgery, name)(options_to)
    system = forgery.system
    arrived = system.arrived()
    assert not forgery.promised & set(arrived)
    assert not {id for id in forgery.promised if system.look_up(id) is not State.CANCELLED}
    assert cancelled_among(arrived, table=system.table) <= forgery.queried
    assert system.arrived("bills") == []
