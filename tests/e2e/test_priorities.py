"""Jobs of each priority, by both routes, in the SQS queue of their priority and in no other."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from dueline.config.names import Names
from local.emulator import Emulator
from local.endpoints import Endpoints
from tests.e2e.early import PRIORITIES, Job, schedule
from tests.e2e.inbox import Inbox, wait_until


@pytest.fixture(scope="module")
def levels(emulator: Emulator, endpoints: Endpoints) -> Iterator[dict[int, Inbox]]:
    """The inbox of each level of the queue, found as a worker finds it."""
    name = Names("e2e").queue_parameter("ranked")
    told = json.loads(emulator.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])
    assert told["urls"][0] == told["url"]
    opened = {priority: Inbox(emulator, url) for priority, url in zip(PRIORITIES, told["urls"], strict=True)}
    yield opened
    for inbox in opened.values():
        inbox.close()


def test_jobs_of_both_priorities_by_both_routes_arrive_in_the_queue_of_their_priority(
    http: httpx.Client, early: dict[str, Job], levels: dict[int, Inbox]
) -> None:
    at_once = {priority: schedule(http, "ranked", payload=1, priority=priority) for priority in PRIORITIES}
    by_the_table = {priority: early[f"priority {priority}"] for priority in PRIORITIES}
    assert {job["route"] for job in at_once.values()} == {"direct"}
    assert {job["route"] for job in by_the_table.values()} == {"table"}
    expected = {priority: {at_once[priority]["id"], by_the_table[priority]["id"]} for priority in PRIORITIES}

    def landed() -> dict[int, set[str]]:
        return {priority: {each.id for each in inbox.landed} for priority, inbox in levels.items()}

    assert wait_until(lambda: landed() == expected), landed()


def test_a_priority_that_the_queue_does_not_have_is_refused(http: httpx.Client) -> None:
    answer = http.post("/queues/ranked/jobs", json={"payload": 1, "priority": 3})
    assert answer.status_code == 400
    assert "priority is 3: it must be from 1 to 2" in answer.json()["detail"]


def test_a_queue_of_levels_tells_each_and_their_sum(http: httpx.Client) -> None:
    def told() -> dict[str, Any]:
        """Tell how the queue is with jobs of each level held back, anew for a machine on which they were soon due."""
        for priority in (1, 2, 2):
            schedule(http, "ranked", payload=1, delay=20, priority=priority)
        answer: dict[str, Any] = http.get("/queues/ranked").json()
        return answer

    def tells_each() -> bool:
        queue = told()
        assert [level["priority"] for level in queue["levels"]] == list(PRIORITIES)
        assert queue["delayed"] == sum(level["delayed"] for level in queue["levels"])
        return all(level["delayed"] >= level["priority"] for level in queue["levels"])

    assert told()["priorities"] == 2
    assert wait_until(tells_each)
