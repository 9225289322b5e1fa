"""Jobs over HTTP: what is answered where something fails, or where there is no such job."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from dueline.config.registry import Registry
from dueline.errors import Throttled
from dueline.model import instant, rows
from dueline.model.job import Job, JobId, Partition
from tests.builders import a_job, a_queue, an_id
from tests.called import call, imported

NEVER = Partition(queue="emails", number=77)


@pytest.fixture
def api(monkeypatch):
    with imported(monkeypatch, a_queue()) as api:
        yield api


def ask(api, method, path, told=None, *, raw=None):
    return call(api, method, path, body=raw if told is None else json.dumps(told))


def submitted(api):
    """Return the ids of the jobs that have rows, and of those in the inbound queue."""
    page = api.RESOURCES.table.page(Partition(queue="emails", number=0), after=rows.FIRST, until="~")
    buffered = [str(delivery.message.job().id) for delivery in api.RESOURCES.inbound.deliveries]
    return {str(rows.read_job(row).id) for row in page.rows}, buffered


def throttled(*_, **__):
    raise Throttled("slow down")


KEYED = {"payload": 1, "delay": 3600, "key": "order 5"}


def test_a_job_is_found_by_its_key_wherever_it_is_and_by_no_other(api):
    for asked in (KEYED, {"payload": 1, "key": "x/&y"}):
        _, job = ask(api, "POST", "/queues/emails/jobs", asked)
        status, page = call(api, "GET", "/queues/emails/jobs", query={"key": asked["key"], "limit": "1"})
        assert (status, page) == (200, {"jobs": [job], "next": None})
    for query, status in (({"key": "order"}, 404), ({"key": "ü"}, 400), ({"key": ""}, 400)):
        assert call(api, "GET", "/queues/emails/jobs", query=query)[0] == status, query


def test_of_many_a_repeat_that_cannot_be_looked_up_is_an_error_of_its_own_and_the_others_are_told(api, monkeypatch):
    _, first = ask(api, "POST", "/queues/emails/jobs", KEYED)
    monkeypatch.setattr(api.RESOURCES.table, "read", throttled)
    new = [{"payload": n, "delay": 3600} for n in range(3)]
    status, told = ask(api, "POST", "/queues/emails/jobs", {"jobs": [*new, KEYED]})
    *others, repeat = told["jobs"]
    assert status == 200
    assert [job["state"] for job in others] == ["accepted"] * 3
    assert submitted(api) == ({first["id"], *(job["id"] for job in others)}, [job["id"] for job in others])
    assert (repeat["error"]["code"], repeat["error"]["id"]) == ("throttled", first["id"])


def test_what_the_table_does_not_take_is_accepted_and_counted(api, monkeypatch, capsys):
    monkeypatch.setattr(api.RESOURCES.table, "add", throttled)
    status, told = ask(api, "POST", "/queues/emails/jobs", {"payload": 1, "delay": 3600})
    assert (status, told["state"], submitted(api)) == (201, "accepted", (set(), [told["id"]]))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["Buffered"] for line in lines if "Buffered" in line] == [[1.0]]
    assert [line["Submitted"] for line in lines if "Submitted" in line] == [1]


def test_a_repeat_that_cannot_be_looked_up_is_an_error_that_names_the_job(api, monkeypatch):
    _, first = ask(api, "POST", "/queues/emails/jobs", KEYED)
    monkeypatch.setattr(api.RESOURCES.table, "read", throttled)
    status, told = ask(api, "POST", "/queues/emails/jobs", KEYED)
    assert (status, told["code"], told["id"]) == (429, "throttled", first["id"])


def test_a_repeat_is_200_and_tells_of_the_first_job_and_a_new_job_is_201(api):
    status, first = ask(api, "POST", "/queues/emails/jobs", KEYED)
    assert status == 201
    assert ask(api, "POST", "/queues/emails/jobs", KEYED) == (200, first)
    assert submitted(api) == ({first["id"]}, [])


def test_a_job_that_is_a_run_of_a_schedule_is_looked_up_and_listed_with_it_and_its_time_and_no_other_is(api):
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    run, other = (a_job(due=due, **of_run) for of_run in ({"schedule": "digest", "nominal": due}, {}))
    api.RESOURCES.table.write([rows.job_row(run), rows.job_row(other)])
    origins = [{"schedule": "digest", "nominal": instant.text(due)}, {}]
    _, page = ask(api, "GET", "/queues/emails/jobs")
    listed = {told["id"]: told for told in page["jobs"]}
    for job, origin in zip((run, other), origins, strict=True):
        _, told = ask(api, "GET", f"/queues/emails/jobs/{job.id}")
        for each in (told, listed[str(job.id)]):
            assert {name: each[name] for name in ("schedule", "nominal") if name in each} == origin


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("DELETE", None), ("PATCH", {"delay": 60})])
def test_a_job_in_a_partition_that_never_was_is_404_and_nothing_is_written(api, method, body):
    id = an_id(partition=NEVER)
    status, told = ask(api, method, f"/queues/emails/jobs/{id}", body)
    assert (status, told["code"]) == (404, "job_not_found")
    assert told["detail"] == f"no job has the id {id}: queue 'emails' never had a partition 77: it has 0 alone"
    assert api.RESOURCES.table.page(NEVER, after="", until="~").rows == []


def test_of_many_cancels_one_in_a_partition_that_never_was_is_an_error_of_its_own(api):
    stray, known = an_id(partition=NEVER), an_id()
    status, told = ask(api, "POST", "/queues/emails/cancellations", {"ids": [str(stray), str(known)]})
    assert status == 200
    assert (told["jobs"][0]["error"]["code"], told["jobs"][1]["state"]) == ("job_not_found", "cancelled")
    assert api.RESOURCES.table.page(NEVER, after="", until="~").rows == []


def test_a_reschedule_of_a_job_that_is_not_in_the_table_says_so_and_what_that_may_mean(api):
    id = an_id()
    status, told = ask(api, "PATCH", f"/queues/emails/jobs/{id}", {"delay": 60})
    assert (status, told["code"]) == (503, "not_yet")
    way = "it may still be on its way there, then try again in a moment"
    assert told["detail"] == f"job {id} is not in the table: {way}; or no such job was ever scheduled"


def test_a_job_in_a_partition_that_has_just_begun_to_stand_may_be_on_its_way_and_moves_within_it(api, monkeypatch):
    monkeypatch.setattr(api, "REGISTRY", Registry({"emails": a_queue(partitions=4)}, standing=lambda _: 1))
    id = an_id(partition=Partition(queue="emails", number=3), due=datetime.now(UTC) + timedelta(hours=1))
    path = f"/queues/emails/jobs/{id}"
    assert ask(api, "PATCH", path, {"delay": 7200})[1]["code"] == "not_yet"
    put(api, id)
    moved = ask(api, "PATCH", path, {"delay": 7200})[1]["id"]
    assert JobId.parse(moved).partition == id.partition


def put(api, id):
    api.RESOURCES.table.write([rows.job_row(Job(id=id, payload="1", expires=id.due + timedelta(days=7)))])


def test_a_repeated_move_tells_what_became_of_the_job_that_took_the_others_place(api):
    put(api, id := an_id(due=datetime.now(UTC) + timedelta(hours=1)))
    path = f"/queues/emails/jobs/{id}"
    to = {"at": (datetime.now(UTC) + timedelta(days=2)).isoformat()}
    _, first = ask(api, "PATCH", path, to)
    assert first["state"] == "scheduled"
    assert ask(api, "PATCH", path, to) == (200, first)
    successor = f"/queues/emails/jobs/{first['id']}"
    assert ask(api, "DELETE", successor)[1]["state"] == "cancelled"
    assert ask(api, "PATCH", path, to) == (200, first | {"state": "cancelled"})


def test_a_repeated_move_whose_job_cannot_be_looked_up_is_an_error_that_names_it(api, monkeypatch):
    put(api, id := an_id(due=datetime.now(UTC) + timedelta(hours=1)))
    path = f"/queues/emails/jobs/{id}"
    to = {"at": (datetime.now(UTC) + timedelta(days=2)).isoformat()}
    _, first = ask(api, "PATCH", path, to)
    table, asked = api.RESOURCES.table, []
    read = table.read
    monkeypatch.setattr(table, "read", lambda keys: throttled() if asked else (asked.append(keys), read(keys))[1])
    status, told = ask(api, "PATCH", path, to)
    assert (status, told["code"], told["id"]) == (429, "throttled", first["id"])


def test_what_aws_said_to_a_fault_of_its_own_is_not_for_callers(api, monkeypatch):
    monkeypatch.setattr(api.RESOURCES.table, "read", throttled)
    status, told = ask(api, "PATCH", f"/queues/emails/jobs/{an_id()}", {"delay": 60})
    assert (status, told["detail"]) == (429, "Too Many Requests: try again")
