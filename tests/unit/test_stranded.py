"""What a deployment would strand, as preflight reports it, and what becomes of jobs that it overlooks."""

import re
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from dueline.core import rows
from dueline.core.job import MAX_PRIORITY, Partition, State, StoredJob
from dueline.core.request import Request
from dueline.errors import Unavailable
from dueline.operations import stranded
from dueline.operations.stranded import REMOVED, DeploymentShape, StrandedItems
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head, head_row
from dueline.schedules.rule import Rule
from dueline.testing import MemoryQueue, MemoryTable, VirtualClock
from tests.builders import NOW, a_job, a_message, a_queue
from tests.system import System

OLD = DeploymentShape(partitions=3, priorities=3, message_days=4)
A_YEAR = timedelta(days=365)


class Place:
    """A queue of three partitions and three levels."""

    def __init__(self):
        self.clock, self.table = VirtualClock(NOW), MemoryTable()
        self.levels = {
            number: MemoryQueue(name=f"p{number}", clock=self.clock, gone=number > 3)
            for number in range(1, MAX_PRIORITY + 1)
        }
        self.dead = MemoryQueue(name="dead", clock=self.clock)

    @property
    def strands(self):
        queue = a_queue(partitions=3, priorities=3)
        level = self.levels.__getitem__
        return StrandedItems(queue=queue, table=self.table, level=level, dead_letters=lambda: self.dead, now=NOW)

    def removed(self):
        return self.strands.lost(OLD, REMOVED)

    def waits(self, *, partition=0, number=1, due=A_YEAR, **more):
        jobs = [
            a_job(partition=Partition(queue="emails", number=partition), due=NOW + due, **more) for _ in range(number)
        ]
        for job in jobs:
            self.table.write([rows.job_row(job)])
        return jobs

    def by(self, **change):
        new = {"partitions": 3, "priorities": 3, "message_days": 4} | change
        return self.strands.lost(OLD, DeploymentShape(**new))


def test_a_queue_that_nothing_waits_in_may_go():
    place = Place()
    (job,) = place.waits()
    place.table.write([rows.cancellation_row(job.id, at=NOW)])
    assert place.removed() == []


def test_removed_queue_counts_its_jobs():
    place = Place()
    place.waits(number=2, due=timedelta(days=1))
    place.waits(partition=2)
    place.levels[2].send([a_message(), a_message(delay=5)])
    place.dead.send([a_message()])
    assert place.removed() == [
        "3 jobs",
        "2 messages in its SQS queues, which SQS deletes within 4 days",
        "1 message in its dead-letter queue, which SQS deletes within 14 days",
    ]


def test_dispatched_jobs_are_not_stranded():
    place = Place()
    place.waits(due=timedelta(hours=-1))
    end = rows.end_of("2026-11-21T07:05:00.000Z")
    place.table.write([{"pk": "emails#0", "sk": rows.STATE, "fence": "2026-11-21T07:05:00.000Z", "cursor": end}])
    assert place.removed() == []


def test_fewer_partitions_strand_jobs():
    place = Place()
    place.waits(partition=0, number=1100, due=timedelta(hours=2))
    assert place.by(partitions=1) == []
    place.waits(partition=2)
    assert place.by(partitions=1) == ["1 job in partitions from 1 on"]


def test_over_a_thousand_jobs_are_1000_or_more():
    place = Place()
    place.waits(partition=2, number=1001)
    (answer,) = place.by(partitions=2)
    assert answer == "1,000 or more jobs in partitions from 2 on"


def test_fewer_priorities_strand_jobs():
    place = Place()
    place.waits(priority=2)
    place.levels[2].send([a_message()])
    assert place.by(priorities=2) == []
    place.waits(priority=3)
    place.levels[3].send([a_message()])
    assert place.by(priorities=2) == [
        "1 job of priorities from 3 on",
        "1 message in the SQS queues of priorities from 3 on",
    ]


def test_jobs_beyond_those_read_may_be_stranded():
    place = Place()
    place.waits(number=1001)
    (answer,) = place.by(priorities=2)
    assert answer == "0 or more of its jobs of priorities from 3 on, of which the first 1,000 alone were read"


def test_shorter_retention_strands_messages():
    place = Place()
    place.levels[1].send([a_message(delay=60)])
    assert place.by(message_days=1) == []
    place.levels[3].send([a_message()])
    assert place.by(message_days=1) == ["1 message in its SQS queues, which would delete what is older than 1 days"]


def test_unread_state_is_an_error():
    place = Place()
    place.levels[3].gone = True
    assert place.by(priorities=2) == []

    class Leaving(MemoryTable):
        def read(self, keys, *, consistent=True):
            return super().read(keys[1:]).__class__(unread=frozenset(keys[:1]))

    strands = replace(place.strands, queue=a_queue(), table=Leaving())
    for new in (replace(OLD, priorities=2), REMOVED):
        with pytest.raises(Unavailable, match="states of queue emails could not be read"):
            strands.lost(OLD, new)


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


@pytest.mark.parametrize("change", [{"partitions": 2}, None], ids=["partitions", "removed"])
def test_schedules_count_live_paused_and_deleted(change):
    """Paused ones may be resumed; a deleted one has its history there, and its name, while its row is kept."""
    place = Place()
    planned(place, "live", partition=2)
    planned(place, "paused", partition=2, paused=True)
    planned(place, "deleted", partition=2, deleted=True)
    where = " in partitions from 2 on" if change else ""
    assert (place.by(**change) if change else place.removed()) == [f"3 schedules{where} (1 live, 1 paused, 1 deleted)"]
    place.clock.sleep(A_YEAR.total_seconds())
    strands = replace(place.strands, now=place.clock.now())
    assert strands.lost(OLD, replace(OLD, **change) if change else REMOVED) == [
        f"2 schedules{where} (1 live, 1 paused)"
    ]


def test_fewer_priorities_count_schedules():
    place = Place()
    planned(place, "urgent", priority=2)
    planned(place, "deleted", priority=3, deleted=True)
    assert place.by(priorities=2) == []
    planned(place, "slow", priority=3)
    planned(place, "resumed", priority=3, paused=True)
    assert place.by(priorities=2) == ["2 schedules of priorities from 3 on (1 live, 1 paused)"]


def test_all_pages_of_schedules_are_read(monkeypatch):
    monkeypatch.setattr(stranded, "_HEADS_A_PAGE", 2)
    place = Place()
    for number in range(5):
        planned(place, f"s{number}")
    assert place.removed() == ["5 schedules (5 live)"]


@pytest.mark.parametrize("change", [{"partitions": 1}, {"priorities": 1}])
def test_unreadable_rows_count_as_stranded(change):
    """Nobody knows of what cannot be read that a deployment would not strand it; nothing else is hidden by it."""
    place = Place()
    (job,) = place.waits(partition=2, priority=3)
    _, sk = rows.job_key(job.id)
    place.table.write([{**rows.job_row(job), "sk": sk.replace("#job", "0#job")}])
    place.table.write([{"pk": "emails#schedules", "sk": "digest", "ttl": "x"}])
    jobs, schedules = place.by(**change)
    assert re.fullmatch(r"2 (of its )?jobs .*, 1 of them in rows that cannot be read", jobs)
    assert re.fullmatch(r"1 schedule .* \(1 unreadable\)", schedules)


# Jobs that are scheduled by the old settings, after preflight has looked


OLD_AFTER = DeploymentShape(partitions=2, priorities=2, message_days=4)
GIVEN_UP = Partition(queue="emails", number=1)
AN_HOUR = 3600


@pytest.fixture
def system():
    return System(a_queue(partitions=2, priorities=2))


def given_up(system, *, partition=0, **change):
    """Let preflight look, then a client schedule by the old settings; return its job, once those are the new ones."""
    queue = system.settings["emails"]
    assert strands(system).lost(OLD_AFTER, replace(OLD_AFTER, **change)) == []
    requests = Request(payload={}, delay=AN_HOUR, priority=queue.priorities)
    jobs = (system.submit(requests)[0] for _ in range(100))
    job = next(each for each in jobs if isinstance(each, StoredJob) and each.id.partition.number == partition)
    system.settings["emails"] = replace(queue, **change)
    return job


def strands(system):
    level = partial(system.stores.level, "emails")
    dead_letters = partial(level, 5)
    queue, table, now = system.settings["emails"], system.table, system.clock.now()
    return StrandedItems(queue=queue, table=table, level=level, dead_letters=dead_letters, now=now)


def come_due(system):
    for seconds in (0, AN_HOUR):
        system.clock.sleep(seconds)
        system.tick()
        system.tick(GIVEN_UP)


def test_job_in_a_removed_partition_is_dispatched(system):
    come_due(system)
    job = given_up(system, partition=1, partitions=1)
    assert system.status_of(job.id).state is State.SCHEDULED
    come_due(system)
    assert job.id in system.arrived(priority=2)


def test_jobs_of_a_removed_level_stay(system):
    """`dueline doctor` reports it, by `queue_left`."""
    come_due(system)
    job = given_up(system, priorities=1)
    come_due(system)
    assert job.id in system.arrived(priority=2)
    assert strands(system).lost(OLD_AFTER, REMOVED) != []


def test_jobs_of_a_removed_queue_are_parked(system):
    come_due(system)
    assert strands(system).lost(OLD_AFTER, REMOVED) == []
    first, second = (system.schedule(delay) for delay in (AN_HOUR, 2 * AN_HOUR))
    del system.settings["emails"]
    come_due(system)
    assert first.id in system.arrived()
    system.stores.levels["emails", 1].gone = True
    come_due(system)
    assert second.id in system.parked()


def test_removed_partitions_jobs_keep_the_queue(system):
    come_due(system)
    assert strands(system).lost(OLD_AFTER, REMOVED) == []
    given_up(system, partition=1, partitions=1)
    system.table.write([rows.cancellation_row(each, at=NOW) for each in system.in_the_table()])
    (answer,) = strands(system).lost(OLD_AFTER, REMOVED)
    assert answer == "1 job"
