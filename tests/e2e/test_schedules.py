"""A schedule through the deployed template, from HTTP to a plain SQS consumer, and what docs/schedules.md shows."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from dueline import ScheduleNotFound
from dueline.model import instant
from local.emulator import CREDENTIALS, REGION, Emulator
from local.endpoints import Endpoints
from tests.e2e.inbox import Inbox, wait_until

DOCS = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text()
FIRST, THEN = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
PATH = "/queues/emails/schedules/beat"


def test_a_schedule_that_begins_in_seconds_runs_then_and_says_which_run_it_is_and_a_paused_one_has_no_next(
    http: httpx.Client, inbox: Callable[[str], Inbox]
) -> None:
    emails = inbox("emails")
    start = (datetime.now(UTC) + timedelta(seconds=4)).replace(microsecond=0)
    answer = http.put(PATH, json={"every": 60, "start": start.isoformat(), "payload": {"beat": 1}})
    assert answer.status_code == 201, answer.text
    first = answer.json()["next"][0]["nominal"]
    assert datetime.fromisoformat(first) == start

    def runs() -> list[str]:
        return [landed.run for landed in emails.landed if landed.run]

    assert wait_until(lambda: f"beat@{first}" in runs())
    landed = next(landed for landed in emails.landed if landed.run == f"beat@{first}")
    assert (landed.payload, landed.due) == ('{"beat":1}', start)

    def told() -> list[tuple[str, str]]:
        """Return the run as the history tells it, once its planner has noted how far it came."""
        runs = http.get(f"{PATH}/history").json()["runs"]
        return [(each["id"], each["state"]) for each in runs if each["nominal"] == first]

    assert wait_until(lambda: told() == [(landed.id, "dispatched")]), told()
    asked = http.post(f"{PATH}/run", json={"payload": "now"}).json()
    assert wait_until(lambda: [each.payload for each in emails.of(asked["id"])] == ['"now"'])

    paused = http.post(f"{PATH}/pause", headers={"If-Match": answer.headers["ETag"]})
    assert (paused.status_code, paused.json()["paused"], paused.json()["next"]) == (200, True, [])
    assert http.post(f"{PATH}/resume", headers={"If-Match": answer.headers["ETag"]}).status_code == 412
    assert http.delete(PATH).status_code == 200
    assert http.get(PATH).status_code == 404


def test_what_queues_yaml_declares_is_there_once_its_queue_is_deployed(http: httpx.Client) -> None:
    told = http.get("/queues/reminders/schedules/yearly").json()
    assert (told["cron"], told["zone"], told["payload"]) == ("0 9 1 1 *", "Europe/Berlin", {"to": "all"})
    assert told["owner"] == "queues.yaml"


def test_the_first_schedule_of_the_docs_is_put_told_changed_run_paused_and_deleted(
    emulator: Emulator,
    endpoints: Endpoints,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    inbox: Callable[[str], Inbox],
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.endpoint)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(emulator.authority))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it would keep the credentials of earlier tests
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name.upper(), value)
    assert len([line for line in FIRST.splitlines() if line]) <= 8
    names: dict[str, Any] = {}
    exec(FIRST.replace("connect()", 'connect("e2e")'), names)
    assert capsys.readouterr().out.count(" 09:00:00+0") == 5

    exec(THEN, names)
    changed, listed = capsys.readouterr().out.splitlines()
    assert (changed, listed) == (str(names["later"].effective_from), "['digest']")
    assert [run.nominal.day for run in names["missed"]] == [2, 3, 4, 5, 6]
    with pytest.raises(ScheduleNotFound):
        names["schedules"].get("digest")
    emails = inbox("emails")
    asked = [names["once"], *names["missed"]]
    assert wait_until(lambda: all(emails.of(run.id) for run in asked))
    [landed, *_] = emails.of(names["once"].id)
    assert (landed.payload, landed.run) == ('{"to":"ann"}', f"digest@{instant.text(names['once'].nominal)}")
