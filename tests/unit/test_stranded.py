"""A deployment strands no job: what the guard finds, and what its function answers to a stack."""

import importlib
import sys
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from dueline.config.settings import StrandSettings
from dueline.errors import Unavailable
from dueline.lookup import stranded
from dueline.lookup.stranded import Shape, Strands
from dueline.memory import MemoryQueue, MemoryTable, VirtualClock
from dueline.model import rows
from dueline.model.job import MAX_PRIORITY, Partition
from dueline.model.schedule_rows import OF_QUEUES_YAML
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head, head_row
from dueline.schedules.occurrence import occurrence
from dueline.schedules.rule import Rule
from tests.builders import NOBODY, NOW, a_job, a_message, a_queue
from tests.gate import Reply, open_gate

OLD = Shape(partitions=3, priorities=3, message_days=4)
A_YEAR = timedelta(days=365)


class Place:
    """A queue of three partitions and three levels."""

    def __init__(self):
        self.clock, self.table = VirtualClock(NOW), MemoryTable()
        self.levels = {
            number: MemoryQueue(name=f"p{number}", clock=self.clock, gone=number > 3)
            for number in range(1, MAX_PRIORITY + 1)
        }

    @property
    def strands(self):
        queue = a_queue(partitions=3, priorities=3)
        return Strands(queue=queue, table=self.table, level=self.levels.__getitem__, now=NOW)

    def waits(self, *, partition=0, number=1, due=A_YEAR, **more):
        jobs = [
            a_job(partition=Partition(queue="emails", number=partition), due=NOW + due, **more) for _ in range(number)
        ]
        for job in jobs:
            self.table.write([rows.job_row(job)])
        return jobs

    def by(self, **change):
        new = {"partitions": 3, "priorities": 3, "message_days": 4} | change
        return self.strands.by_change(OLD, Shape(**new))


def test_a_queue_that_nothing_waits_in_may_go():
    place = Place()
    (job,) = place.waits()
    place.table.write([rows.cancellation_row(job.id, at=NOW)])
    assert place.strands.by_deletion() == []


def test_jobs_and_messages_of_a_queue_that_goes_are_counted():
    place = Place()
    place.waits(number=2, due=timedelta(days=1))
    place.waits(partition=2)
    place.levels[2].send([a_message(), a_message(delay=5)])
    assert place.strands.by_deletion() == [
        "3 jobs, due until 2027-11-21T07:05:00.000Z at the latest",
        "2 messages in its SQS queues",
    ]


def test_what_a_tick_has_handed_over_is_not_stranded():
    place = Place()
    place.waits(due=timedelta(hours=-1))
    end = rows.end_of("2026-11-21T07:05:00.000Z")
    place.table.write([{"pk": "emails#0", "sk": rows.STATE, "fence": "2026-11-21T07:05:00.000Z", "cursor": end}])
    assert place.strands.by_deletion() == []


def test_fewer_partitions_strand_what_is_in_those_that_go_though_thousands_wait_before_in_others():
    place = Place()
    place.waits(partition=0, number=1100, due=timedelta(hours=2))
    assert place.by(partitions=1) == []
    place.waits(partition=2)
    assert place.by(partitions=1) == ["1 job in partitions from 1 on, due until 2027-11-21T07:05:00.000Z at the latest"]


def test_over_a_thousand_jobs_are_1000_or_more():
    place = Place()
    place.waits(partition=2, number=1001)
    (told,) = place.by(partitions=2)
    assert told.startswith("1,000 or more jobs in partitions from 2 on, due until 2027-11-21")


def test_fewer_levels_strand_jobs_of_their_priorities_and_messages_in_their_queues():
    place = Place()
    place.waits(priority=2)
    place.levels[2].send([a_message()])
    assert place.by(priorities=2) == []
    place.waits(priority=3)
    place.levels[3].send([a_message()])
    assert place.by(priorities=2) == [
        "1 job of priorities from 3 on, due until 2027-11-21T07:05:00.000Z at the latest",
        "1 message in the SQS queues of priorities from 3 on",
    ]


def test_of_more_jobs_than_are_read_some_may_have_a_priority_that_goes():
    place = Place()
    place.waits(number=1001)
    (told,) = place.by(priorities=2)
    assert told == "0 or more of its jobs of priorities from 3 on, of which the first 1,000 alone were read"


def test_messages_that_sqs_would_keep_for_fewer_days_may_be_lost_but_not_those_that_are_delayed():
    place = Place()
    place.levels[1].send([a_message(delay=60)])
    assert place.by(message_days=1) == []
    place.levels[3].send([a_message()])
    assert place.by(message_days=1) == ["1 message in its SQS queues, which may be older than 1 days"]


def test_more_of_everything_strands_nothing():
    place = Place()
    place.waits(partition=2, priority=3)
    place.levels[3].send([a_message()])
    assert place.by(partitions=4, priorities=4, message_days=5) == []


def test_a_level_that_is_gone_holds_nothing_and_an_unread_state_is_no_answer():
    place = Place()
    place.levels[3].gone = True
    assert place.by(priorities=2) == []

    class Leaving(MemoryTable):
        def read(self, keys, *, consistent=True):
            return super().read(keys[1:]).__class__(unread=frozenset(keys[:1]))

    strands = Strands(queue=a_queue(), table=Leaving(), level=place.levels.__getitem__, now=NOW)
    with pytest.raises(Unavailable, match="1 states of queue emails could not be read"):
        strands.by_change(OLD, replace(OLD, priorities=2))
    # One of each hundred of all that there may have been.
    with pytest.raises(Unavailable, match="4 states of queue emails could not be read"):
        strands.by_deletion()


def planned(place, name, *, at=timedelta(days=1), paused=False, deleted=False, partition=0, **definition):
    """Let a schedule be there, whose next run is far enough for no job of it to be."""
    rule = Rule(cron=f"{(NOW + at):%M %H %d %m} *")
    head = Head(
        queue="emails",
        name=name,
        definition=Definition(rule=rule, **definition),
        generation=1,
        start=NOW,
        paused=paused,
        deleted=deleted,
        partition=Partition(queue="emails", number=partition),
        planned_to=NOW,
        retention=timedelta(days=7),
    )
    place.table.write([head_row(head)])
    return head


def test_a_schedule_that_goes_on_to_make_jobs_keeps_its_queue_though_none_is_there_yet():
    place = Place()
    planned(place, "paused", paused=True)
    planned(place, "deleted", deleted=True)
    planned(place, "declared", owner=OF_QUEUES_YAML)
    assert place.strands.by_deletion() == []
    planned(place, "daily")
    assert place.strands.by_deletion() == ["1 schedule"]


def test_what_queues_yaml_declares_goes_with_the_stack_and_so_do_its_runs():
    place = Place()
    run = occurrence(planned(place, "declared", owner=OF_QUEUES_YAML), NOW + timedelta(minutes=9))
    place.table.write([rows.job_row(run)])
    assert place.strands.by_deletion() == []
    place.table.write([rows.job_row(occurrence(planned(place, "daily"), NOW + timedelta(minutes=9)))])
    told, schedules = place.strands.by_deletion()
    assert (told.partition(",")[0], schedules) == ("1 job", "1 schedule")


def test_the_runs_of_what_queues_yaml_declares_are_stranded_by_no_change_of_levels_and_those_of_others_are():
    place = Place()
    declared = planned(place, "declared", priority=3, owner=OF_QUEUES_YAML)
    place.table.write([rows.job_row(occurrence(declared, NOW + timedelta(minutes=9)))])
    assert place.by(priorities=2) == []
    other = planned(place, "daily", priority=3)
    place.table.write([rows.job_row(occurrence(other, NOW + timedelta(minutes=9)))])
    told, schedules = place.by(priorities=2)
    assert (told.partition(",")[0], schedules) == (
        "1 job of priorities from 3 on",
        "1 schedule of priorities from 3 on",
    )


def test_fewer_levels_strand_the_runs_to_come_of_schedules_also_of_those_that_are_resumed_one_day():
    place = Place()
    planned(place, "urgent", priority=2)
    planned(place, "declared", priority=3, owner=OF_QUEUES_YAML)
    assert place.by(priorities=2) == []
    planned(place, "slow", priority=3)
    planned(place, "resumed", priority=3, paused=True)
    assert place.by(priorities=2) == ["2 schedules of priorities from 3 on"]


def test_fewer_partitions_strand_the_schedules_whose_runs_are_there():
    place = Place()
    planned(place, "here", partition=1)
    planned(place, "paused", partition=2, paused=True)
    assert place.by(partitions=2) == []
    planned(place, "there", partition=2, owner=OF_QUEUES_YAML)
    assert place.by(partitions=2) == ["1 schedule in partitions from 2 on"]


def test_all_pages_of_schedules_are_read(monkeypatch):
    monkeypatch.setattr(stranded, "_HEADS_A_PAGE", 2)
    place = Place()
    for number in range(5):
        planned(place, f"s{number}")
    assert place.strands.by_deletion() == ["5 schedules"]


# The function


@pytest.fixture
def stack(monkeypatch):
    """Asks as a stack in a status does; returns what it was answered."""
    settings = StrandSettings(deployment="d", queue_urls="http://localhost/")
    for name, value in {**settings.to_env(), **NOBODY}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delitem(sys.modules, "functions.strand", raising=False)
    module, place = importlib.import_module("functions.strand"), Place()
    deployed = SimpleNamespace(
        table=place.table, clock=place.clock, spread=map, team_queue=lambda _, priority: place.levels[priority]
    )
    monkeypatch.setattr(module, "DEPLOYED", deployed)
    with open_gate() as gate:
        gate.api = lambda _: Reply()

        def ask(kind, *, when, status, strand="no", **new):
            answer = status if callable(status) else lambda _: status
            monkeypatch.setattr(module, "STACKS", SimpleNamespace(status=answer))
            old = {"Queue": "emails", "Partitions": "3", "Priorities": "3", "MessageRetentionDays": "4", "When": when}
            now = old | new | {"Strand": strand}
            event = {"StackId": "s", "RequestId": "r", "LogicalResourceId": "StrandAfter1"}
            event |= {"ResponseURL": f"{gate.url}/answer", "RequestType": kind, "ResourceProperties": now}
            module.handler.__wrapped__(event | ({"OldResourceProperties": old} if kind == "Update" else {}), None)
            return gate.asked[-1].json

        ask.place = place
        yield ask
    sys.modules.pop("functions.strand", None)


def test_a_stack_is_refused_what_would_strand_a_job_with_the_count_the_time_and_what_to_do(stack):
    stack.place.waits(partition=2)
    told = stack("Update", when="before", status="UPDATE_IN_PROGRESS", Partitions="2")
    assert (told["Status"], told["PhysicalResourceId"]) == ("FAILED", "emails/before")
    assert told["Reason"] == (
        "queue emails: this would strand 1 job in partitions from 2 on, due until 2027-11-21T07:05:00.000Z at the"
        " latest. Put queues.yaml back, or let them be worked off first, or deploy with --context strand=yes."
    )
    told = stack("Delete", when="after", status="DELETE_IN_PROGRESS")
    assert told["Status"] == "FAILED"
    assert "detach the queue's policies, and delete the stack again" in told["Reason"]
    assert told["Reason"].endswith("delete it with --retain-resources StrandAfter1.")


def test_what_takes_nothing_away_such_as_the_way_back_from_a_refusal_needs_no_answer_of_aws(stack):
    def denied(_):
        raise Unavailable("AccessDenied: cloudformation:DescribeStacks")

    stack.place.waits(partition=2)
    for change in ({}, {"Partitions": "4"}, {"Priorities": "4", "MessageRetentionDays": "14"}):
        assert stack("Update", when="before", status=denied, **change)["Status"] == "SUCCESS"
    with pytest.raises(Unavailable):
        stack("Update", when="before", status=denied, Partitions="2")


@pytest.mark.parametrize(
    "asked",
    [
        {"kind": "Create", "when": "before", "status": "CREATE_IN_PROGRESS"},
        {"kind": "Update", "when": "after", "status": "UPDATE_IN_PROGRESS", "Partitions": "2"},
        {"kind": "Update", "when": "before", "status": "UPDATE_IN_PROGRESS", "Partitions": "2", "strand": "yes"},
        {"kind": "Update", "when": "before", "status": "UPDATE_ROLLBACK_IN_PROGRESS", "Partitions": "2"},
        {"kind": "Delete", "when": "before", "status": "DELETE_IN_PROGRESS"},
        {"kind": "Delete", "when": "after", "status": "DELETE_IN_PROGRESS", "strand": "yes"},
        {"kind": "Delete", "when": "after", "status": "ROLLBACK_IN_PROGRESS"},
        {"kind": "Delete", "when": "after", "status": "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"},
    ],
)
def test_a_new_queue_a_rollback_and_who_says_so_are_never_refused(stack, asked):
    stack.place.waits(partition=2)
    assert stack(**asked)["Status"] == "SUCCESS"
