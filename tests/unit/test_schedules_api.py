"""Schedules over HTTP: what is asked, answered and refused."""

import json
from datetime import UTC, datetime

import pytest

from dueline.errors import Throttled
from dueline.model import instant
from tests.builders import a_queue
from tests.called import call, imported

WEEKDAYS = {"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin", "payload": {"to": "all"}}
DIGEST = "/queues/emails/schedules/digest"
CALLER = "arn:aws:iam::123456789012:user/ann"


@pytest.fixture
def api(monkeypatch):
    with imported(monkeypatch, a_queue()) as api:
        yield api


def ask(api, method, path, told=None, *, headers=None, query=None):
    body = None if told is None else json.dumps(told)
    return call(api, method, path, body=body, caller=CALLER, headers=headers, query=query)


def told_of(api, method, path, told=None, **given):
    return ask(api, method, path, told, **given)[1]


def test_a_schedule_is_created_then_found_as_it_is_and_an_identical_one_changes_nothing(api):
    status, made = ask(api, "PUT", DIGEST, WEEKDAYS)
    assert status == 201
    assert made.items() >= {**WEEKDAYS, "schedule": "digest", "generation": 1, "paused": False}.items()
    assert ask(api, "PUT", DIGEST, WEEKDAYS) == (200, made)
    assert ask(api, "GET", DIGEST) == (200, made)


def test_it_is_told_with_its_next_five_runs_in_its_zone_and_in_utc(api):
    runs = told_of(api, "PUT", DIGEST, WEEKDAYS)["next"]
    locals = [datetime.fromisoformat(run["local"]) for run in runs]
    assert [datetime.fromisoformat(run["nominal"]) for run in runs] == locals
    assert [(local.hour, local.minute, local.weekday() < 5) for local in locals] == [(9, 0, True)] * 5
    assert locals == sorted(set(locals))
    assert locals[0] > datetime.now(UTC)


def test_a_change_is_a_new_generation_and_tells_from_when_it_serves(api):
    made = told_of(api, "PUT", DIGEST, WEEKDAYS)
    status, changed = ask(api, "PUT", DIGEST, {"every": 600, "overlap": "skip"})
    assert (status, changed["generation"], changed["every"], changed["overlap"]) == (200, 2, 600, "skip")
    assert "cron" not in changed
    assert changed["effective_from"] >= made["effective_from"]


def test_a_paused_one_has_no_next_runs_until_it_is_resumed(api):
    made = told_of(api, "PUT", DIGEST, WEEKDAYS)
    status, paused = ask(api, "POST", f"{DIGEST}/pause")
    assert (status, paused["paused"], paused["next"]) == (200, True, [])
    resumed = told_of(api, "POST", f"{DIGEST}/resume")
    assert (resumed["paused"], resumed["next"]) == (False, made["next"])


def test_a_deleted_one_is_not_found_and_not_listed_and_may_be_made_again(api):
    ask(api, "PUT", DIGEST, WEEKDAYS)
    status, deleted = ask(api, "DELETE", DIGEST)
    assert (status, deleted["deleted"], deleted["next"]) == (200, True, [])
    assert [ask(api, *each)[1]["code"] for each in (("GET", DIGEST), ("POST", f"{DIGEST}/pause"))] == [
        "schedule_not_found"
    ] * 2
    assert told_of(api, "GET", "/queues/emails/schedules") == {"schedules": [], "next": None}
    assert ask(api, "PUT", DIGEST, WEEKDAYS)[0] == 201


def test_an_entity_tag_lets_one_change_alone_what_one_has_read(api):
    tags = []

    def put(every, **headers):
        status, told = ask(api, "PUT", DIGEST, {"every": every}, headers=headers)
        tags.append(api.last["headers"].get("ETag"))
        return status, told.get("code")

    assert put(60) == (201, None)
    assert put(120, **{"if-match": tags[0]}) == (200, None)
    assert put(180, **{"if-match": tags[0]}) == (412, "schedule_changed")
    assert put(180, **{"if-match": "*"}) == (200, None)
    assert len({tags[0], tags[1], tags[3]}) == 3
    several = ", ".join([tags[0], tags[3]])
    assert put(240, **{"if-match": f"W/{tags[3]}"}) == put(240, **{"if-match": tags[0]}) == (412, "schedule_changed")
    assert put(240, **{"if-match": several}) == (200, None)


def test_what_is_only_to_be_created_is_not_changed(api):
    star = {"if-none-match": "*"}
    assert ask(api, "PUT", DIGEST, {"every": 60}, headers=star)[0] == 201
    for every in (60, 120):
        status, problem = ask(api, "PUT", DIGEST, {"every": every}, headers=star)
        assert (status, problem["code"]) == (412, "schedule_changed")
        assert "is there already" in problem["detail"]
    ask(api, "DELETE", DIGEST)
    assert ask(api, "PUT", DIGEST, {"every": 120}, headers=star)[0] == 201
    status, problem = ask(api, "PUT", DIGEST, {"every": 120}, headers={"if-none-match": '"1-2"'})
    assert (status, problem["detail"]) == (
        400,
        "If-None-Match is '\"1-2\"': it must be *, which is only to create",
    )


@pytest.mark.parametrize(
    ("over", "told"),
    [
        (
            {"cron": "0 9 * * *", "end": "2026-01-02T09:00:00Z"},
            ["end is 2026-01-02T09:00:00.000Z: it must be after ", "the next instant"],
        ),
        (
            {"every": 60, "start": "2026-01-01T00:00:00Z", "count": 2},
            ["count is 2: it must name one that is to come", "the last of them was 2026-01-01T00:01:00.000Z"],
        ),
    ],
)
def test_a_rule_of_which_no_run_is_to_come_is_refused_and_previewed_as_empty(api, over, told):
    status, problem = ask(api, "PUT", DIGEST, over)
    assert (status, problem["code"]) == (400, "invalid_schedule")
    assert [part for part in told if part not in problem["detail"]] == [], problem["detail"]
    status, shown = ask(api, "POST", "/schedules/preview", over)
    assert (status, shown.keys(), shown["next"]) == (200, {"words", "next"}, [])


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, ["neither cron nor every is given"]),
        ({"cron": "0 9 * * MON-FRI", "every": 60}, ["cron is", "every is", "one of them"]),
        ({"cron": "0 9 * * MON-FRY"}, ["cron is '0 9 * * MON-FRY'", "day of week", "character 9"]),
        ({"cron": "0 0 9 * * *"}, ["it has 6 fields and must have 5"]),
        ({"cron": "0 0 30 2 *"}, ["cron"]),
        ({"cron": 5}, ["cron is 5", "valid string"]),
        ({"cron": "0 9 * * *", "zone": "Europe/Berlim"}, ["zone is 'Europe/Berlim'", "Europe/Berlin"]),
        ({"every": 59}, ["every is 59 s", "from 60 s"]),
        ({"every": 60.5}, ["every is 60.5", "valid integer"]),
        ({"every": 60, "start": "2027-01-01T00:00:00"}, ["start is '2027-01-01T00:00:00'", "with a zone"]),
        ({"every": 60, "start": "2027-01-02T00:00:00Z", "end": "2027-01-01T00:00:00Z"}, ["end is", "after start"]),
        ({"every": 60, "count": 5}, ["count is 5", "start"]),
        ({"every": 60, "jitter": 61}, ["jitter is 61 s", "60 s"]),
        ({"every": 60, "overlap": "never"}, ["overlap is 'never'", "allow or skip"]),
        ({"every": 60, "catch_up": None}, ["catch_up is null", "valid string"]),
        ({"every": 60, "priority": 6}, ["priority is 6"]),
        ({"every": 60, "when": 1}, ["when is no field", "there are cron, every"]),
        ([1], ["body is [1]"]),
        (None, ["body is empty: it must be a JSON object"]),
        ({"every": 60, "payload": json.loads("[" * 201 + "]" * 201)}, ["payload nests 201 levels deep"]),
    ],
)
def test_a_wrong_one_is_refused_with_its_field_its_value_and_what_is_allowed(api, body, told):
    status, problem = ask(api, "PUT", DIGEST, body)
    assert (status, problem["code"]) == (400, "invalid_schedule")
    assert [part for part in told if part not in problem["detail"]] == [], problem["detail"]
    assert ask(api, "GET", DIGEST)[0] == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", DIGEST),
        ("GET", DIGEST),
        ("POST", f"{DIGEST}/pause"),
        ("GET", "/queues"),
        ("POST", "/queues/emails/jobs"),
    ],
)
def test_a_path_with_a_line_feed_at_its_end_is_no_route(api, method, path):
    ask(api, "PUT", DIGEST, {"every": 60})
    status, problem = ask(api, method, f"{path}\n", {"every": 60})
    assert (status, problem["code"]) == (404, "route_not_found")
    assert told_of(api, "GET", DIGEST)["generation"] == 1


def test_a_name_that_none_may_have_and_a_queue_that_there_is_not_are_refused(api):
    # Clients shorten a path with the last two: DELETE /queues/emails/schedules/.. would reach another route.
    for name in ("a%23b", ".", ".."):
        assert told_of(api, "PUT", f"/queues/emails/schedules/{name}", WEEKDAYS)["code"] == "invalid_schedule"
    status, problem = ask(api, "PUT", "/queues/dueline-planner/schedules/digest", WEEKDAYS)
    assert (status, problem["code"]) == (404, "queue_not_found")


def test_schedules_are_listed_by_name_a_page_at_a_time(api):
    for name in ("c", "a", "b"):
        ask(api, "PUT", f"/queues/emails/schedules/{name}", {"every": 60})
    path = "/queues/emails/schedules"
    first = told_of(api, "GET", path, query={"limit": "2"})
    rest = told_of(api, "GET", path, query={"limit": "2", "next": first["next"]})
    assert [each["schedule"] for each in first["schedules"] + rest["schedules"]] == ["a", "b", "c"]
    assert (first["next"], rest["next"]) == ("b", None)
    status, problem = ask(api, "GET", path, query={"limit": "0"})
    assert (status, problem["detail"]) == (400, 'limit is "0": must be a whole number from 1 to 100')


def test_a_preview_tells_a_rule_in_words_and_its_next_runs_and_makes_no_schedule(api):
    rule = {"cron": "30 2 * * *", "zone": "Europe/Berlin", "from": "2027-03-27T12:00:00Z", "limit": 2}
    assert ask(api, "POST", "/schedules/preview", rule) == (
        200,
        {
            "words": "At 02:30 every day, Europe/Berlin",
            "next": [
                {
                    "nominal": "2027-03-28T01:00:00.000Z",
                    "local": "2027-03-28T03:00:00+02:00",
                    "clock": "put forward by 1:00:00 since the run before",
                },
                {"nominal": "2027-03-29T00:30:00.000Z", "local": "2027-03-29T02:30:00+02:00"},
            ],
        },
    )
    assert ask(api, "POST", "/schedules/preview", {"every": 1})[0] == 400
    assert told_of(api, "GET", "/queues/emails/schedules")["schedules"] == []


def test_who_changes_a_schedule_is_logged_and_its_payload_is_not(api, caplog):
    caplog.set_level("INFO")
    ask(api, "PUT", DIGEST, WEEKDAYS)
    ask(api, "PUT", DIGEST, WEEKDAYS)
    [line] = [each for each in caplog.records if each.message == "schedule put"]
    assert (line.queue, line.schedule, line.generation, line.caller) == ("emails", "digest", 1, CALLER)
    assert "all" not in caplog.text


def test_what_the_table_throttles_is_429_and_there_is_no_schedule(api, monkeypatch):
    def throttled(*_, **__):
        raise Throttled("slow down")

    with monkeypatch.context() as during:
        during.setattr(api.RESOURCES.table, "change", throttled)
        status, problem = ask(api, "PUT", DIGEST, WEEKDAYS)
        assert (status, problem["code"]) == (429, "throttled")
    assert ask(api, "GET", DIGEST)[0] == 404


def sent(api):
    """Return the payloads of what was sent to the queue, with the run that each is of."""
    queue = api.RESOURCES.queue("d_emails")
    jobs = [delivery.message.job() for delivery in queue.deliveries]
    return [(job.payload, job.schedule, job.nominal) for job in jobs]


def test_a_run_now_is_sent_with_the_schedules_payload_or_another_and_once_under_a_key(api):
    ask(api, "PUT", DIGEST, WEEKDAYS)
    status, run = ask(api, "POST", f"{DIGEST}/run")
    assert (status, run.keys()) == (201, {"id", "nominal"})
    keyed = [told_of(api, "POST", f"{DIGEST}/run", {"payload": 2}, headers={"idempotency-key": "k"}) for _ in range(2)]
    assert keyed[0] == keyed[1]
    ask(api, "PUT", DIGEST, {**WEEKDAYS, "payload": 3})
    first = told_of(api, "POST", f"{DIGEST}/run", headers={"idempotency-key": "as it is"})
    ask(api, "PUT", DIGEST, WEEKDAYS)
    assert told_of(api, "POST", f"{DIGEST}/run", headers={"idempotency-key": "as it is"}) == first
    problem = told_of(api, "POST", f"{DIGEST}/run", {"payload": 3}, headers={"idempotency-key": "as it is"})
    assert (problem["status"], problem["code"]) == (422, "key_reused")
    # A job's own key is no run's, whatever it is.
    job = told_of(api, "POST", "/queues/emails/jobs", {"payload": {"to": "all"}, "key": "digest#l"})
    assert told_of(api, "POST", f"{DIGEST}/run", headers={"idempotency-key": "l"})["id"] != job["id"]
    assert [(payload, schedule) for payload, schedule, _ in sent(api)][:2] == [
        ('{"to":"all"}', "digest"),
        ("2", "digest"),
    ]
    assert told_of(api, "POST", "/queues/emails/schedules/none/run")["code"] == "schedule_not_found"


def test_runs_on_demand_are_counted_as_jobs_that_were_sent_and_a_repeat_is_not(api, capsys):
    ask(api, "PUT", DIGEST, WEEKDAYS)
    for _ in range(2):
        ask(api, "POST", f"{DIGEST}/run", headers={"idempotency-key": "k"})
    week = {"from": "2026-01-05T00:00:00Z", "to": "2026-01-12T00:00:00Z"}
    ask(api, "POST", f"{DIGEST}/backfill", week)
    counted = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "Dispatched" in line]
    assert [(each["queue"], each["Submitted"], each["Dispatched"]) for each in counted] == [
        ("emails", 1, 1),
        ("emails", 5, 5),
    ]


def test_a_backfill_is_a_job_for_each_instant_of_the_rule(api):
    ask(api, "PUT", DIGEST, WEEKDAYS)
    week = {"from": "2026-01-05T00:00:00Z", "to": "2026-01-12T00:00:00Z"}
    runs = told_of(api, "POST", f"{DIGEST}/backfill", week)["runs"]
    assert [run["nominal"] for run in runs] == [f"2026-01-0{day}T08:00:00.000Z" for day in range(5, 10)]
    assert sorted(instant.text(nominal) for _, _, nominal in sent(api)) == [run["nominal"] for run in runs]
    problem = told_of(api, "POST", f"{DIGEST}/backfill", {**week, "from": "2026-02-05T00:00:00Z"})
    assert (problem["code"], problem["detail"]) == (
        "invalid_schedule",
        "to is 2026-01-12T00:00:00.000Z: it must not be before from, which is 2026-02-05T00:00:00.000Z",
    )
    status, problem = ask(api, "POST", f"{DIGEST}/backfill", {**week, "to": "2200-01-01T00:00:00Z"})
    assert (status, problem["code"]) == (400, "invalid_schedule")
    assert ask(api, "POST", f"{DIGEST}/backfill", {"from": "2026-01-05T00:00:00Z"})[1]["detail"] == "to is missing"
    first = {"from": "0001-01-01T00:00:00Z", "to": "1970-01-02T00:00:00Z"}
    assert len(told_of(api, "POST", f"{DIGEST}/backfill", first)["runs"]) == 1


def test_history_tells_of_runs_the_latest_first_and_of_none_before_the_first(api):
    ask(api, "PUT", DIGEST, {"every": 60})
    for query in ({}, {"before": "0001-01-01T00:00:00Z"}):
        assert told_of(api, "GET", f"{DIGEST}/history", query=query) == {"runs": []}
    assert ask(api, "GET", f"{DIGEST}/history", query={"limit": "101"})[0] == 400
    assert ask(api, "GET", f"{DIGEST}/history", query={"before": "now"})[0] == 400
    lost_plus = told_of(api, "GET", f"{DIGEST}/history", query={"before": "2027-01-04T00:00:00 01:00"})
    assert "+ is written %2B" in lost_plus["detail"]
    assert told_of(api, "GET", "/queues/emails/schedules/none/history")["code"] == "schedule_not_found"
