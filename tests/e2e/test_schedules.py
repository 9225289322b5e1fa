"""A schedule through the deployed template, from HTTP to a plain SQS consumer."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx

from tests.e2e.inbox import Inbox, wait_until

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
    [landed] = [landed for landed in emails.landed if landed.run == f"beat@{first}"]
    assert (landed.payload, landed.due) == ('{"beat":1}', start)

    [run] = [each for each in http.get(f"{PATH}/history").json()["runs"] if each["nominal"] == first]
    assert (run["id"], run["state"]) == (landed.id, "dispatched")
    asked = http.post(f"{PATH}/run", json={"payload": "now"}).json()
    assert wait_until(lambda: [each.payload for each in emails.of(asked["id"])] == ['"now"'])

    paused = http.post(f"{PATH}/pause", headers={"If-Match": answer.headers["ETag"]})
    assert (paused.status_code, paused.json()["paused"], paused.json()["next"]) == (200, True, [])
    assert http.post(f"{PATH}/resume", headers={"If-Match": answer.headers["ETag"]}).status_code == 412
    assert http.delete(PATH).status_code == 200
    assert http.get(PATH).status_code == 404
