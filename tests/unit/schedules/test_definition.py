"""What a schedule may be, and what follows from it: its runs' jobs, and the row that keeps it."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dueline.core.job import Route
from dueline.errors import InvalidSchedule, Unavailable
from dueline.schedules.definition import CatchUp, Definition, Overlap
from dueline.schedules.head import Generation, head_row, jitter, occurrence, planning_job, read_head
from dueline.schedules.rule import LocalTimes
from tests.builders import EMAILS, NOW
from tests.schedule_system import A_MINUTE, a_definition, a_head, at

FULL = {
    "cron": "0 9 * * MON-FRI",
    "zone": "Europe/Berlin",
    "start": "2026-01-01T00:00:00.000Z",
    "end": "2027-01-01T00:00:00.000Z",
    "count": 100,
    "payload": '{"to":"all"}',
    "kind": "digest",
    "tenant": "acme",
    "priority": 2,
    "jitter": 600,
    "catch_up": "all",
    "overlap": "skip",
    "owner": "billing",
}


# Definition


def test_definition_round_trips_as_json():
    packs_small = {"every": 90, "payload": json.dumps(["the same again"] * 10_000)}
    for fields in (FULL, packs_small, {"cron": "* * * * *"}):
        definition = Definition.from_row(fields)
        assert definition.to_dict() == fields
        assert Definition.from_row(json.loads(json.dumps(definition.to_dict()))) == definition
    assert (Definition.from_dict(FULL).catch_up, Definition.from_dict(FULL).overlap) == (CatchUp.ALL, Overlap.SKIP)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"payload": json.dumps(random.Random(1).randbytes(10_000).hex())}, "at most 8192 are allowed"),
        ({"payload": json.dumps("a" * 300_000)}, "and 262144 before"),
        ({"kind": "A"}, "kind is 'A': it must have 1 to 64 of a-z, 0-9, ., _ and -"),
        ({"tenant": "a b"}, "tenant is 'a b'"),
        ({"priority": 6}, "priority is 6"),
        ({"jitter": -1}, "jitter is"),
        ({"jitter": 61}, "jitter is 61 s: it must be whole seconds, from 0 s to 60 s, the shortest time between two"),
        ({"jitter": 0.5}, "jitter is 0.5: it must be a number of whole seconds"),
        ({"catch_up": "some"}, "catch_up is 'some': it must be latest or none or all"),
        ({"overlap": ["skip"]}, "overlap is ['skip']: it must be allow or skip"),
        ({"owner": ""}, "owner is ''"),
        ({"owner": "a" * 201}, "it must have 1 to 200 characters"),
        ({"every": "6x"}, "every is '6x': it must be a number of whole seconds, or such as 15m"),
        ({"every": 10**15}, "every is 1000000000000000: it must be a number of whole seconds, or such as 15m, of"),
        (
            {"every": None, "cron": "0 9 * * *", "start": "2026-01-01T10:00:00Z", "end": "2026-01-02T09:00:00Z"},
            "start is 2026-01-01T10:00:00.000Z, end is 2026-01-02T09:00:00.000Z: the rule must have a run",
        ),
        (
            {"every": None, "cron": "0 0 1 1 *", "start": "9987-06-01T00:00:00Z"},
            "start is 9987-06-01T00:00:00.000Z: the rule must have a run, up to the year 9987",
        ),
        ({"start": "2026-01-01"}, "start is '2026-01-01': it must be an instant in ISO 8601 with a zone"),
        ({"colour": "red"}, "'colour' is no field of a schedule: there are cron, every, zone"),
    ],
)
def test_wrong_field_is_named(wrong, reason):
    fields = {name: value for name, value in ({"every": 60} | wrong).items() if value is not None}
    with pytest.raises(InvalidSchedule) as caught:
        Definition.from_dict(fields)
    assert reason in str(caught.value)


# Head


def test_head_round_trips_as_a_row():
    definition = Definition.from_dict(FULL)
    common = {"definition": a_definition(payload="null"), "partition": EMAILS, "retention": timedelta(days=3)}
    past = Generation(generation=1, **common, start=at(-5), planned_to=NOW, paused=True)
    head = a_head(definition=definition, generation=2, generations=(past,), planned_to=at(15), used_to=at(60))
    row = head_row(head)
    assert (row["pk"], row["sk"], row["generation"]) == ("emails#schedules", "digest", 2)
    assert row["planned_to"] == "2026-11-21T07:20:00.000Z"
    assert "ttl" not in row
    assert read_head(row) == head


@pytest.mark.parametrize(("used_to", "kept_from"), [(None, 0), (at(-5), 0), (at(525_600), 525_600)])
def test_deleted_head_expires_after_its_last_run(used_to, kept_from):
    head = a_head(deleted=True, used_to=used_to)
    assert head_row(head)["ttl"] == int((at(kept_from) + timedelta(days=45)).timestamp())
    assert read_head(head_row(head)) == head


def test_reading_a_row_computes_no_runs(monkeypatch):
    """One queue's rare rules, changed often, would take the planner's time from others."""
    head = a_head()
    for second in range(20):
        start = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
        definition = a_definition(cron="0 0 29 2 *", start=start, count=1000)
        head = replace(head, generation=second + 2, definition=definition, generations=head.next(start=NOW).generations)
    row, walks = head_row(head), []
    monkeypatch.setattr(LocalTimes, "after", lambda *call: walks.append(call) or iter([NOW]))
    assert read_head(row) == head
    assert walks == []


@pytest.mark.parametrize("broken", [{"packed": b"x"}, {"packed": "text"}, {"generation": "one"}, {"planned_to": ""}])
def test_unreadable_row_is_named_by_its_key(broken):
    with pytest.raises(Unavailable, match=r"row \('emails#schedules', 'digest'\) cannot be read"):
        read_head({**head_row(a_head()), **broken})


# Occurrences


def test_occurrence_has_a_stable_id():
    job = occurrence(a_head(), at(1))
    assert (job.id.route, job.id.due, job.expires) == (Route.TABLE, at(1), at(1) + timedelta(days=7))
    # Rows of this id may be in tables: it must never change.
    assert job.id.uid == "fa1cb412-4af7-549f-bf40-003b041f42fd"
    others = [{"queue": "texts"}, {"name": "other"}, {"generation": 2}]
    uids = {occurrence(a_head(**other), at(1)).id.uid for other in others} | {occurrence(a_head(), at(2)).id.uid}
    assert len(uids | {job.id.uid}) == 5


def test_all_runs_have_the_same_jitter():
    definition = a_definition(cron="0 * * * *", jitter=timedelta(minutes=10))
    parts = [jitter("emails", f"s{number}", definition) / timedelta(minutes=10) for number in range(200)]
    assert 0 <= min(parts) < 0.05
    assert 0.95 < max(parts) < 1
    assert jitter("emails", "s1", definition) == jitter("emails", "s1", definition)
    head = a_head(definition=definition)
    assert occurrence(head, at(55)).id.due - at(55) == jitter("emails", "digest", definition)


def test_planning_job_is_due_15_minutes_early():
    head = a_head(definition=a_definition(every=timedelta(hours=1), start=NOW))
    job = planning_job(head, NOW, now=NOW)
    assert (job.id.due, job.tenant, str(job.id.partition)) == (at(45), "emails", "dueline-planner#0")
    assert job.expires == at(45) + timedelta(days=7)
    later = planning_job(head, NOW, now=NOW + timedelta(days=30))
    assert (later.id, later.expires) == (job.id, NOW + timedelta(days=37))
    payload = {"queue": "emails", "schedule": "digest", "generation": 1, "from": "2026-11-21T07:05:00.000Z"}
    assert json.loads(job.payload) == payload
    assert planning_job(replace(head, generation=2), NOW, now=NOW).id != job.id
    ended = a_head(definition=a_definition(every=A_MINUTE, end=at(5)))
    assert planning_job(ended, at(4), now=NOW) is None
