"""Priorities: each in an SQS queue of its own, by both routes, and without its queue."""

import json
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from typer.testing import CliRunner

from dueline import NewJob, State
from dueline.cli.app import app
from tests.acceptance.conftest import IS_AWS
from tests.acceptance.early import PRIORITIES, schedule
from tests.acceptance.inbox import jobs_of, lateness
from tests.waiting import HANG_SECONDS, wait_until

# What a queue is made with; the rest of its attributes are counts, and names of its own.
OF_A_QUEUE = {"MessageRetentionPeriod", "Policy", "RedriveAllowPolicy", "RedrivePolicy", "SqsManagedSseEnabled"}
OF_A_QUEUE |= {"VisibilityTimeout"}


def test_jobs_arrive_by_priority(http, early, inbox):
    levels = {priority: inbox("levels", priority) for priority in PRIORITIES}
    for priority, level in levels.items():
        direct, by_the_table = schedule(http, "levels", priority=priority), early[f"priority {priority}"]
        assert (direct["route"], by_the_table["route"]) == ("direct", "table")
        level.wait_for(direct["id"], by_the_table["id"])
    one, two = ({each.id for each in levels[priority].landed} for priority in PRIORITIES)
    assert not one & two
    assert early["priority 1"]["id"] in one


@contextmanager
def level_gone(sqs, names):
    """Delete the SQS queue of the second priority, and all that is in it; make it again as that of the first is."""
    first, second = names.queue("levels"), names.queue("levels", 2)
    source = sqs.get_queue_attributes(QueueUrl=sqs.get_queue_url(QueueName=first)["QueueUrl"], AttributeNames=["All"])
    attributes = {name: value for name, value in source["Attributes"].items() if name in OF_A_QUEUE}
    if "Policy" in attributes:
        attributes["Policy"] = attributes["Policy"].replace(f':{first}"', f':{second}"')

    def is_made():
        try:
            with suppress(sqs.exceptions.QueueNameExists):
                sqs.create_queue(QueueName=second, Attributes=attributes)
        except sqs.exceptions.QueueDeletedRecently:
            # Not within a minute.
            return False
        return True

    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=second)["QueueUrl"])
    try:
        yield
    finally:
        assert wait_until(is_made, every=5)


def redriven(*args):
    answer = CliRunner().invoke(app, ["dead", *args, "--retry", "--yes", "--json"])
    assert answer.exit_code == 0, answer.output
    return int(json.loads(answer.stdout)["put_back"])


def test_jobs_of_a_missing_level_are_parked(client, names, aws, inboxes, table_after, of_scale, monkeypatch):
    monkeypatch.setenv("DUELINE_NAME", names.deployment)
    level = inboxes("levels", 2)
    level.close()
    with level_gone(aws("sqs"), names):
        # What is sent to a queue while SQS deletes it, for a minute, may be taken, and lost with it.
        at = datetime.now(UTC) + timedelta(seconds=table_after + (75 if IS_AWS else 0))
        new = [NewJob(payload=n, at=at, priority=2) for n in range(of_scale(5, 50))]
        jobs = jobs_of(client.schedule_many("levels", new))

        def are_parked():
            return all(client.get(job.id).state is State.PARKED for job in reversed(jobs))

        assert wait_until(are_parked, seconds=table_after + HANG_SECONDS), "not parked"
    moved = [0]
    assert wait_until(lambda: moved.append(redriven("--parked")) or sum(moved) >= len(jobs)), moved
    level.open().wait_for(*(job.id for job in jobs), seconds=2 * table_after + HANG_SECONDS)
    assert all(late >= 0 for late in lateness(jobs, level.landed))
