"""Schedules over HTTP: requests, answers and refusals."""

import json

import pytest

from dueline.core import instant
from tests.api_harness import call_api

WEEKDAYS = {"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin", "payload": {"to": "all"}}
DIGEST = "/queues/emails/schedules/digest"
CALLER = "arn:aws:iam::123456789012:user/ann"


def request(api, method, path, sent=None, *, headers=None, query=None):
    return call_api(api, method, path, sent, caller=CALLER, headers=headers, query=query)


def answer_of(api, method, path, sent=None, **options):
    return request(api, method, path, sent, **options)[1]


def test_etag_guards_a_change(api):
    tags = []

    def put(every, **headers):
        status, answer = request(api, "PUT", DIGEST, {"every": every}, headers=headers)
        tags.append(api.last["headers"].get("ETag"))
        return status, answer.get("code")

    assert put(60, **{"if-match": "*"}) == (412, "schedule_changed")
    assert put(60) == (201, None)
    assert put(120, **{"if-match": tags[1]}) == (200, None)
    assert put(180, **{"if-match": tags[1]}) == (412, "schedule_changed")
    assert put(180, **{"if-match": "*"}) == (200, None)
    assert put(240, **{"if-match": "é" * 10_000}) == (412, "schedule_changed")
    assert len(api.last["body"]) < 2000
    assert len({tags[1], tags[2], tags[4]}) == 3
    assert answer_of(api, "DELETE", DIGEST)["deleted"]
    assert request(api, "POST", f"{DIGEST}/pause")[0] == 404
    assert put(120) == (201, None)


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ({}, ["neither cron nor every is given"]),
        ({"every": "9999999999999w"}, ['every is "9999999999999w"', "10 years at most"]),
        ({"every": 60.5}, ["every is 60.5", "valid integer"]),
        ({"every": 60, "catch_up": None}, ["catch_up is null", "valid string"]),
        ({"every": 60, "when": 1}, ["when is no field", "there are cron, every"]),
        ([1], ["body is [1]"]),
        (None, ["body is not JSON"]),
        ({"every": 60, "payload": json.loads("[" * 201 + "]" * 201)}, ["payload nests 201 levels deep"]),
    ],
)
def test_wrong_schedule_names_what_is_allowed(api, body, parts):
    status, problem = request(api, "PUT", DIGEST, body)
    assert (status, problem["code"]) == (400, "invalid_schedule")
    assert [part for part in parts if part not in problem["detail"]] == [], problem["detail"]
    assert request(api, "GET", DIGEST)[0] == 404


@pytest.mark.parametrize(("method", "path"), [("PUT", DIGEST), ("POST", f"{DIGEST}/pause"), ("GET", "/queues")])
def test_path_with_a_line_feed_is_no_route(api, method, path):
    request(api, "PUT", DIGEST, {"every": 60})
    status, problem = request(api, method, f"{path}\n", {"every": 60})
    assert (status, problem["code"]) == (404, "route_not_found")
    assert answer_of(api, "GET", DIGEST)["generation"] == 1


def test_wrong_name_and_unknown_queue_are_refused(api):
    # Clients shorten a path with the last two: DELETE /queues/emails/schedules/.. would reach another route.
    for name in ("a%23b", ".", ".."):
        assert answer_of(api, "PUT", f"/queues/emails/schedules/{name}", WEEKDAYS)["code"] == "invalid_schedule"
    status, problem = request(api, "PUT", "/queues/dueline-planner/schedules/digest", WEEKDAYS)
    assert (status, problem["code"]) == (404, "queue_not_found")


def test_schedules_are_listed_by_page(api):
    for name in ("c", "a", "b"):
        request(api, "PUT", f"/queues/emails/schedules/{name}", {"every": 60})
    path = "/queues/emails/schedules"
    first = answer_of(api, "GET", path, query={"limit": "2"})
    rest = answer_of(api, "GET", path, query={"limit": "2", "next": first["next"]})
    assert [each["schedule"] for each in first["schedules"] + rest["schedules"]] == ["a", "b", "c"]
    assert (first["next"], rest["next"]) == ("b", None)
    status, problem = request(api, "GET", path, query={"limit": "0"})
    assert (status, problem["code"]) == (400, "invalid_schedule")
    assert problem["detail"] == 'limit is "0": Input should be greater than or equal to 1'


def test_caller_of_a_change_is_logged(api, caplog):
    caplog.set_level("INFO")
    request(api, "PUT", DIGEST, WEEKDAYS)
    request(api, "PUT", DIGEST, WEEKDAYS)
    for method, path in (("POST", f"{DIGEST}/pause"), ("POST", f"{DIGEST}/resume"), ("DELETE", DIGEST)):
        request(api, method, path)
    line, *others = [each for each in caplog.records if each.message.startswith("schedule ")]
    assert [each.message for each in others] == ["schedule paused", "schedule resumed", "schedule deleted"]
    assert (line.message, line.queue, line.schedule, line.generation) == ("schedule put", "emails", "digest", 1)
    assert {each.caller for each in (line, *others)} == {CALLER}
    assert "all" not in caplog.text


def sent(api):
    """Return the payloads of what was sent to the queue, with the run that each is of."""
    queue = api.DEPLOYMENT.queue("d_emails")
    jobs = [delivery.message.job() for delivery in queue.deliveries]
    return [(job.payload, job.schedule, job.scheduled_for) for job in jobs]


def test_run_now_is_sent_once_under_a_key(api):
    request(api, "PUT", DIGEST, WEEKDAYS)
    status, run = request(api, "POST", f"{DIGEST}/run")
    assert (status, run.keys()) == (201, {"id", "scheduled_for"})
    keyed = [
        answer_of(api, "POST", f"{DIGEST}/run", {"payload": 2}, headers={"idempotency-key": "k"}) for _ in range(2)
    ]
    assert keyed[0] == keyed[1]
    # A job's own key is no run's, whatever it is.
    job = answer_of(api, "POST", "/queues/emails/jobs", {"payload": {"to": "all"}, "key": "digest#l"})
    assert answer_of(api, "POST", f"{DIGEST}/run", headers={"idempotency-key": "l"})["id"] != job["id"]
    assert [(payload, schedule) for payload, schedule, _ in sent(api)][:2] == [
        ('{"to":"all"}', "digest"),
        ("2", "digest"),
    ]
    assert answer_of(api, "POST", "/queues/emails/schedules/none/run")["code"] == "schedule_not_found"


def test_manual_runs_are_counted_once(api, capsys):
    request(api, "PUT", DIGEST, WEEKDAYS)
    for _ in range(2):
        request(api, "POST", f"{DIGEST}/run", headers={"idempotency-key": "k"})
    week = {"from": "2026-01-05T00:00:00Z", "to": "2026-01-12T00:00:00Z"}
    runs = answer_of(api, "POST", f"{DIGEST}/backfill", week)["runs"]
    counted = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "Dispatched" in line]
    counts = [(each["queue"], each["Submitted"], each["Dispatched"]) for each in counted]
    assert counts == [("emails", 1, 1), ("emails", 5, 5)]
    instants = [f"2026-01-0{day}T08:00:00.000Z" for day in range(5, 10)]
    assert [run["scheduled_for"] for run in runs] == instants
    assert sorted(instant.text(scheduled_for) for _, _, scheduled_for in sent(api))[:5] == instants
    assert request(api, "POST", f"{DIGEST}/backfill", {"from": "2026-01-05T00:00:00Z"})[1]["detail"] == "to is missing"
    first = {"from": "0001-01-01T00:00:00Z", "to": "1970-01-02T00:00:00Z"}
    assert len(answer_of(api, "POST", f"{DIGEST}/backfill", first)["runs"]) == 1


def test_history_has_no_run_before_the_first(api):
    request(api, "PUT", DIGEST, {"every": 60})
    for query in ({}, {"before": "0001-01-01T00:00:00Z"}):
        assert answer_of(api, "GET", f"{DIGEST}/history", query=query) == {"runs": []}
    assert request(api, "GET", f"{DIGEST}/history", query={"limit": "101"})[0] == 400
    assert request(api, "GET", f"{DIGEST}/history", query={"before": "now"})[0] == 400
    assert answer_of(api, "GET", "/queues/emails/schedules/none/history")["code"] == "schedule_not_found"
