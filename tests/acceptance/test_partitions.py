"""Deployments raise and lower a queue's partitions while jobs are on their way."""

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from dueline import Client, Job, NewJob
from dueline.config.names import Names
from tests.acceptance import sandbox
from tests.acceptance.__main__ import DEPLOY
from tests.acceptance.conftest import Figure
from tests.acceptance.inbox import Inbox, jobs_of, lateness
from tests.waiting import HANG_SECONDS, wait_until

QUEUE = "moved"


def partition(id: str) -> int:
    return int(id.split(".")[1])


@contextmanager
def deploying(partitions: int, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Deploy the sandbox with so many partitions of a queue; the context ends when that is over."""
    settings = yaml.safe_load(sandbox.QUEUES.read_text())
    settings["queues"][QUEUE] = {"partitions": partitions}
    file, log = folder / f"{partitions}.yaml", folder / f"{partitions}.log"
    file.write_text(yaml.safe_dump(settings, sort_keys=False))
    with log.open("wb") as output:
        # A session of its own, so that Ctrl-C ends the run, and not the deployment half-way.
        command = [*DEPLOY, f"queues={file}"]
        process = subprocess.Popen(command, cwd=sandbox.ROOT, stdout=output, stderr=output, start_new_session=True)
        try:
            yield process
        finally:
            process.wait()
    assert process.returncode == 0, log.read_text()[-2000:]


@pytest.mark.aws_only("each deployment takes a synthesis: tests/template and the simulation hold it locally")
def test_partitions_change_with_jobs_in_flight(
    client: Client,
    http: httpx.Client,
    names: Names,
    inbox: Callable[..., Inbox],
    figure: Figure,
    table_after: float,
    tmp_path: Path,
) -> None:
    moved, jobs = inbox(QUEUE), list[Job]()

    def schedule(count: int, delay: float) -> None:
        """Schedule jobs one by one: those of one request share a partition."""
        for _ in range(count):
            jobs.extend(jobs_of(client.schedule_many(QUEUE, [NewJob(payload=1, delay=delay)])))

    def deploy(partitions: int) -> None:
        schedule(50, table_after)
        with deploying(partitions, tmp_path) as process:
            while process.poll() is None:
                schedule(1, 5)
                schedule(1, table_after)
                time.sleep(2)

    def arrive() -> None:
        if jobs:
            moved.wait_for(*(job.id for job in jobs), seconds=table_after + HANG_SECONDS)

    def takes_jobs(partitions: int) -> bool:
        """Use the HTTP API, which gives each job its partition; a client knows of new ones within a minute."""
        ids = [http.post(f"/queues/{QUEUE}/jobs", json={"payload": 1}).json()["id"] for _ in range(20)]
        return {partition(id) for id in ids} == set(range(partitions))

    for partitions in (4, 2, 4, 1):
        # What is in partitions that go would be stranded: `dueline preflight` says so before a deployment.
        arrive()
        deploy(partitions)
        assert wait_until(lambda partitions=partitions: takes_jobs(partitions)), f"not in each of {partitions}"
    arrive()
    came = Counter(each.id for each in moved.landed)
    assert figure("came twice", sum(came[job.id] > 1 for job in jobs)) == 0
    assert figure("early", sum(each < 0 for each in lateness(jobs, moved.landed))) == 0
