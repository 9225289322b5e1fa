"""Priorities: each in an SQS queue of its own, by both routes, back from its dead letters, and without its queue."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from typer.testing import CliRunner

from dueline import Client, NewJob, State
from dueline.cli.app import app
from dueline.config.names import Names
from tests.acceptance.conftest import IS_AWS, Aws, Figure, Scale
from tests.acceptance.early import PRIORITIES, Job, schedule
from tests.acceptance.faults import Faults
from tests.acceptance.inbox import Inbox, jobs_of, lateness
from tests.waiting import HANG_SECONDS, wait_until


def test_jobs_arrive_by_priority(http: httpx.Client, early: dict[str, Job], inbox: Callable[..., Inbox]) -> None:
    levels = {priority: inbox("levels", priority) for priority in PRIORITIES}
    for priority, level in levels.items():
        direct, by_the_table = schedule(http, "levels", priority=priority), early[f"priority {priority}"]
        assert (direct["route"], by_the_table["route"]) == ("direct", "table")
        level.wait_for(direct["id"], by_the_table["id"])
    one, two = ({each.id for each in levels[priority].landed} for priority in PRIORITIES)
    assert not one & two
    assert early["priority 1"]["id"] in one


def redriven(*args: str) -> int:
    answer = CliRunner().invoke(app, ["dead", *args, "--retry", "--yes", "--json"])
    assert answer.exit_code == 0, answer.output
    return int(json.loads(answer.stdout)["put_back"])


@contextmanager
def failing(sqs: Any, names: Names, queue: str) -> Iterator[None]:
    """Receive what comes in each level of a queue again and again, and delete nothing."""
    stop, urls = threading.Event(), [sqs.get_queue_url(QueueName=names.queue(queue, p))["QueueUrl"] for p in PRIORITIES]

    def receive(url: str) -> None:
        while not stop.is_set():
            sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1, VisibilityTimeout=0)

    threads = [threading.Thread(target=receive, args=(url,), daemon=True) for url in urls]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_redrive_keeps_the_level(
    client: Client,
    names: Names,
    aws: Aws,
    inboxes: Callable[..., Inbox],
    figure: Figure,
    of_scale: Scale,
    monkeypatch: Any,
) -> None:
    monkeypatch.setenv("DUELINE_NAME", names.deployment)
    levels = [inboxes("levels", priority) for priority in PRIORITIES]
    for level in levels:
        level.close()
    jobs = jobs_of(
        client.schedule_many("levels", [NewJob(payload=n, priority=n % 2 + 1) for n in range(of_scale(10, 50))])
    )
    with failing(aws("sqs"), names, "levels"):
        assert wait_until(lambda: client.queue("levels").dead >= len(jobs)), "not all of them became dead letters"
    moved = [0]
    # Each redrive ends with what SQS's estimate said there was.
    assert wait_until(lambda: moved.append(redriven("levels")) or sum(moved) >= len(jobs)), moved
    for number, level in enumerate(levels):
        level.open().wait_for(*(job.id for job in jobs[number::2]))
    misplaced = sum(bool(levels[1 - n % 2].of(job.id)) for n, job in enumerate(jobs))
    assert figure("dead letters in another level", misplaced) == 0


def test_jobs_of_a_missing_level_are_parked(
    client: Client,
    names: Names,
    aws: Aws,
    inboxes: Callable[..., Inbox],
    table_after: float,
    of_scale: Scale,
    monkeypatch: Any,
) -> None:
    monkeypatch.setenv("DUELINE_NAME", names.deployment)
    level = inboxes("levels", 2)
    level.close()
    with Faults(names, aws).level_gone("levels", 2):
        # What is sent to a queue while SQS deletes it, for a minute, may be taken, and lost with it.
        at = datetime.now(UTC) + timedelta(seconds=table_after + (75 if IS_AWS else 0))
        new = [NewJob(payload=n, at=at, priority=2) for n in range(of_scale(5, 50))]
        jobs = jobs_of(client.schedule_many("levels", new))

        def are_parked() -> bool:
            return all(client.get(job.id).state is State.PARKED for job in reversed(jobs))

        assert wait_until(are_parked, seconds=table_after + HANG_SECONDS), "not parked"
    moved = [0]
    assert wait_until(lambda: moved.append(redriven("--parked")) or sum(moved) >= len(jobs)), moved
    level.open().wait_for(*(job.id for job in jobs), seconds=2 * table_after + HANG_SECONDS)
    assert all(late >= 0 for late in lateness(jobs, level.landed))
