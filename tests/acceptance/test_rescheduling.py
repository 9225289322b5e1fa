"""Rescheduling over HTTP: one call, and an honest answer."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.acceptance.early import schedule
from tests.acceptance.inbox import Inbox
from tests.waiting import wait_until

DAY = 24 * 3600


def path_of(job: dict[str, Any]) -> str:
    return f"/queues/{job['queue']}/jobs/{job['id']}"


def scheduled(http: httpx.Client, **more: Any) -> dict[str, Any]:
    """Return a job that is in the table."""
    job = schedule(http, "moved", delay=DAY, **more)
    assert wait_until(lambda: http.get(path_of(job)).json()["state"] == "scheduled")
    return job


def test_moved_job_keeps_its_tenant(http: httpx.Client, inbox: Callable[..., Inbox]) -> None:
    moved, old = inbox("moved"), scheduled(http, tenant="acme")
    answer = http.patch(path_of(old), json={"delay": 3})
    assert answer.status_code == 200, answer.text
    new = answer.json()
    assert new["id"] != old["id"]
    assert (new["queue"], new["route"]) == ("moved", "table")
    # What is due so soon goes by the inbound queue, too: ingest may have moved and sent it before its caller did.
    assert new["state"] in ("scheduled", "dispatched")
    landed = moved.wait_for(new["id"])
    assert landed.visible >= landed.due
    assert landed.group == "acme"
    assert not moved.of(old["id"])


def test_move_can_be_repeated_and_changed_by_the_old_id(http: httpx.Client) -> None:
    old = scheduled(http)
    there = {"at": "2027-05-01T09:00:00+02:00"}
    new = http.patch(path_of(old), json=there).json()
    assert new["due"] == "2027-05-01T07:00:00.000Z"
    shown = http.get(path_of(old)).json()
    assert (shown["id"], shown["moved_from"], shown["state"]) == (new["id"], old["id"], "scheduled")
    assert http.patch(path_of(old), json=there).json()["id"] == new["id"]
    elsewhere = http.patch(path_of(old), json={"delay": DAY})
    assert (elsewhere.status_code, elsewhere.json()["moved_from"]) == (200, old["id"])
    assert http.get(path_of(new)).json()["id"] == elsewhere.json()["id"] != new["id"]


@pytest.mark.parametrize("cancelled", [True, False], ids=["cancelled", "left"])
def test_move_of_a_finished_job_is_409(http: httpx.Client, cancelled: bool) -> None:
    job = scheduled(http) if cancelled else schedule(http, "moved", delay=0)
    if cancelled:
        assert http.delete(path_of(job)).status_code == 200
    answer = http.patch(path_of(job), json={"delay": DAY})
    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    assert ("was cancelled" if cancelled else "has left for its queue") in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, "at and delay are both missing"),
        ({"at": "2027-05-01T09:00:00Z", "delay": 1}, "at and delay are both given"),
        ({"delay": -1}, "delay is -1"),
        ({"at": "tomorrow"}, 'at is "tomorrow"'),
        ({"payload": 2, "delay": 1}, "payload is no field: there are at, delay"),
        ([], "body is []"),
    ],
)
def test_bad_move_is_400_and_names_the_field(http: httpx.Client, body: Any, wrong: str) -> None:
    job = schedule(http, "moved", delay=DAY)
    answer = http.patch(path_of(job), json=body)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(wrong)
