"""A schedule through the deployed template, from HTTP to a plain SQS consumer, and what docs/schedules.md shows."""

from datetime import UTC, datetime, timedelta

import pytest

from dueline import ScheduleNotFound
from dueline.core import instant
from tests.e2e.newcomer import code_of
from tests.waiting import wait_until

FIRST, THEN = (each.replace('"emails"', '"plain"') for each in code_of("docs/schedules.md", "python"))
PATH = "/queues/plain/schedules/beat"


def test_schedule_runs_on_time_and_pauses(http, inbox):
    plain = inbox("plain")
    start = (datetime.now(UTC) + timedelta(seconds=4)).replace(microsecond=0)
    answer = http.put(PATH, json={"every": 60, "start": start.isoformat(), "payload": {"beat": 1}})
    assert answer.status_code == 201, answer.text
    first = answer.json()["next"][0]["scheduled_for"]
    assert datetime.fromisoformat(first) == start

    def runs():
        return [landed.attributes.get("dueline-schedule", "") for landed in plain.landed]

    assert wait_until(lambda: f"beat@{first}" in runs())
    landed = next(landed for landed in plain.landed if landed.attributes.get("dueline-schedule") == f"beat@{first}")
    assert (landed.body, landed.due) == ('{"beat":1}', start)

    def history():
        """Return the run as the history shows it, once its planner has noted how far it came."""
        runs = http.get(f"{PATH}/history").json()["runs"]
        return [(each["id"], each["state"]) for each in runs if each["scheduled_for"] == first]

    assert wait_until(lambda: history() == [(landed.id, "dispatched")]), history()
    manual = http.post(f"{PATH}/run").json()
    assert wait_until(lambda: [each.body for each in plain.of(manual["id"])] == ['{"beat":1}'])

    paused = http.post(f"{PATH}/pause", headers={"If-Match": answer.headers["ETag"]})
    assert (paused.status_code, paused.json()["paused"], paused.json()["next"]) == (200, True, [])
    assert http.post(f"{PATH}/resume", headers={"If-Match": answer.headers["ETag"]}).status_code == 412
    assert http.delete(PATH).status_code == 200
    assert http.get(PATH).status_code == 404


def test_first_schedule_of_the_docs_goes_through(deployment, capsys, inbox):
    assert len([line for line in FIRST.splitlines() if line]) <= 8
    names = {}
    exec(FIRST.replace("connect()", f'connect("{deployment}")'), names)
    assert capsys.readouterr().out.count(" 09:00:00+0") == 5

    exec(THEN, names)
    changed, listing = capsys.readouterr().out.splitlines()
    assert (changed, listing) == (str(names["later"].effective_from), "['digest']")
    assert [run.scheduled_for.day for run in names["missed"]] == [2, 3, 4, 5, 6]
    with pytest.raises(ScheduleNotFound):
        names["schedules"].get("digest")
    plain = inbox("plain")
    runs = [names["once"], *names["missed"]]
    landed = plain.wait_for(*(run.id for run in runs))
    run = f"digest@{instant.text(names['once'].scheduled_for)}"
    assert (landed.body, landed.attributes["dueline-schedule"]) == ('{"to":"ann"}', run)
