"""Jobs over HTTP: what is answered where something fails, or where there is no such job."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from dueline.config.registry import Registry
from dueline.core import instant, rows
from dueline.core.job import Job, JobId, Partition
from dueline.errors import Throttled
from tests.api_harness import call_api, import_api
from tests.builders import a_job, a_queue, an_id

NEVER = Partition(queue="emails", number=77)


@pytest.fixture
def api(monkeypatch):
    with import_api(monkeypatch, a_queue()) as api:
        yield api


def request(api, method, path, sent=None, *, raw=None):
    return call_api(api, method, path, body=raw if sent is None else json.dumps(sent))


def submitted(api):
    """Return the ids of the jobs that have rows, and of those in the inbound queue."""
    page = api.DEPLOYMENT.table.page(Partition(queue="emails", number=0), after=rows.FIRST, until="~")
    buffered = [str(delivery.message.job().id) for delivery in api.DEPLOYMENT.inbound.deliveries]
    return {str(rows.read_job(row).id) for row in page.rows}, buffered


def throttled(*_, **__):
    raise Throttled("slow down")


KEYED = {"payload": 1, "delay": 3600, "key": "order 5"}


def test_job_is_found_by_its_key(api):
    for sent in (KEYED, {"payload": 1, "key": "x/&y"}):
        _, job = request(api, "POST", "/queues/emails/jobs", sent)
        status, page = call_api(api, "GET", "/queues/emails/jobs", query={"key": sent["key"], "limit": "1"})
        assert (status, page) == (200, {"jobs": [job], "next": None})
    for query, status in (({"key": "order"}, 404), ({"key": "ü"}, 400), ({"key": ""}, 400)):
        assert call_api(api, "GET", "/queues/emails/jobs", query=query)[0] == status, query


def test_failed_look_up_of_a_repeat_fails_it_alone(api, monkeypatch):
    _, first = request(api, "POST", "/queues/emails/jobs", KEYED)
    monkeypatch.setattr(api.DEPLOYMENT.table, "read", throttled)
    new = [{"payload": n, "delay": 3600} for n in range(3)]
    status, answer = request(api, "POST", "/queues/emails/jobs", {"jobs": [*new, KEYED]})
    *others, repeat = answer["jobs"]
    assert status == 200
    assert [job["state"] for job in others] == ["accepted"] * 3
    assert submitted(api) == ({first["id"], *(job["id"] for job in others)}, [job["id"] for job in others])
    assert (repeat["error"]["code"], repeat["error"]["id"]) == ("throttled", first["id"])


def test_job_the_table_throttles_is_buffered(api, monkeypatch, capsys):
    monkeypatch.setattr(api.DEPLOYMENT.table, "add", throttled)
    status, answer = request(api, "POST", "/queues/emails/jobs", {"payload": 1, "delay": 3600})
    assert (status, answer["state"], submitted(api)) == (201, "accepted", (set(), [answer["id"]]))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["Buffered"] for line in lines if "Buffered" in line] == [[1.0]]
    assert [line["Submitted"] for line in lines if "Submitted" in line] == [1]


def test_repeat_is_200_with_the_first_job(api):
    status, first = request(api, "POST", "/queues/emails/jobs", KEYED)
    assert status == 201
    assert request(api, "POST", "/queues/emails/jobs", KEYED) == (200, first)
    assert submitted(api) == ({first["id"]}, [])


def test_run_of_a_schedule_has_its_schedule_and_time(api):
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    run, other = (a_job(due=due, **of_run) for of_run in ({"schedule": "digest", "scheduled_for": due}, {}))
    api.DEPLOYMENT.table.write([rows.job_row(run), rows.job_row(other)])
    origins = [{"schedule": "digest", "scheduled_for": instant.text(due)}, {}]
    _, page = request(api, "GET", "/queues/emails/jobs")
    listing = {answer["id"]: answer for answer in page["jobs"]}
    for job, origin in zip((run, other), origins, strict=True):
        _, answer = request(api, "GET", f"/queues/emails/jobs/{job.id}")
        for each in (answer, listing[str(job.id)]):
            assert {name: each[name] for name in ("schedule", "scheduled_for") if name in each} == origin


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("DELETE", None), ("PATCH", {"delay": 60})])
def test_job_of_an_unknown_partition_is_404(api, method, body):
    id = an_id(partition=NEVER)
    status, answer = request(api, method, f"/queues/emails/jobs/{id}", body)
    assert (status, answer["code"]) == (404, "job_not_found")
    assert answer["detail"] == f"no job has the id {id}: queue 'emails' never had a partition 77: it has 0 alone"
    assert api.DEPLOYMENT.table.page(NEVER, after="", until="~").rows == []


def test_job_moves_within_a_new_partition(api, monkeypatch):
    monkeypatch.setattr(api, "REGISTRY", Registry({"emails": a_queue(partitions=4)}, active_partitions=lambda _: 1))
    id = an_id(partition=Partition(queue="emails", number=3), due=datetime.now(UTC) + timedelta(hours=1))
    path = f"/queues/emails/jobs/{id}"
    assert request(api, "PATCH", path, {"delay": 7200})[1]["code"] == "not_yet"
    put(api, id)
    moved = request(api, "PATCH", path, {"delay": 7200})[1]["id"]
    assert JobId.parse(moved).partition == id.partition


def put(api, id):
    api.DEPLOYMENT.table.write([rows.job_row(Job(id=id, payload="1", expires=id.due + timedelta(days=7)))])


def test_repeated_move_returns_the_successors_state(api):
    put(api, id := an_id(due=datetime.now(UTC) + timedelta(hours=1)))
    path = f"/queues/emails/jobs/{id}"
    to = {"at": (datetime.now(UTC) + timedelta(days=2)).isoformat()}
    _, first = request(api, "PATCH", path, to)
    assert first["state"] == "scheduled"
    assert request(api, "PATCH", path, to) == (200, first)
    successor = f"/queues/emails/jobs/{first['id']}"
    assert request(api, "DELETE", successor)[1]["state"] == "cancelled"
    assert request(api, "PATCH", path, to) == (200, first | {"state": "cancelled"})


def test_failed_look_up_after_a_repeated_move_names_the_job(api, monkeypatch):
    put(api, id := an_id(due=datetime.now(UTC) + timedelta(hours=1)))
    path = f"/queues/emails/jobs/{id}"
    to = {"at": (datetime.now(UTC) + timedelta(days=2)).isoformat()}
    _, first = request(api, "PATCH", path, to)
    table, sent = api.DEPLOYMENT.table, []
    read = table.read
    monkeypatch.setattr(table, "read", lambda keys: throttled() if sent else (sent.append(keys), read(keys))[1])
    status, answer = request(api, "PATCH", path, to)
    assert (status, answer["code"], answer["id"]) == (429, "throttled", first["id"])
