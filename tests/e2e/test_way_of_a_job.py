"""Messages that no producer sends come to the deployed inbound queue, and what the logs have of jobs.

The simulation and unit tests check that repeats and cancels before ingest hold, and what becomes of a deleted queue's
jobs; tests/acceptance deletes a queue.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from local.emulator import Emulator
from local.endpoints import Endpoints
from tests.acceptance.early import schedule
from tests.e2e.inbox import dead_letter
from tests.waiting import wait_until


def _state(http: httpx.Client, id: str) -> str:
    return str(http.get(f"/queues/emails/jobs/{id}").json()["state"])


def test_poison_message_becomes_a_dead_letter(http: httpx.Client, emulator: Emulator, endpoints: Endpoints) -> None:
    emulator.client("sqs").send_message(QueueUrl=endpoints.inbound_url, MessageBody="poison")
    beside = schedule(http, "emails", delay=3600)
    body, attributes = dead_letter(emulator, endpoints.dead_letter_queues["inbound"])
    assert body == "poison"
    assert "dueline-id" in attributes["dueline-reason"]
    assert wait_until(lambda: _state(http, beside["id"]) == "scheduled")


def test_no_payload_is_in_any_log(http: httpx.Client, emulator: Emulator, endpoints: Endpoints) -> None:
    marker = "do-not-log-this"
    schedule(http, "emails", payload=marker)
    far = schedule(http, "emails", payload=marker, delay=3600)["id"]
    late = _with_due(far, datetime.now(UTC), 99)
    _send_inbound(emulator, endpoints, late, datetime.now(UTC), body=f'"{marker}"')
    assert http.post("/queues/emails/jobs", json=marker).status_code == 400
    for id, state in ((far, "scheduled"), (late, "dispatched")):
        assert wait_until(lambda job=id, state=state: _state(http, job) == state)
    logs = emulator.client("logs")
    groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
    [ingest] = [group for group in groups if "ingest" in group]
    # The API shows whatever is requested.
    assert wait_until(lambda: late in _ids_in(_text_of(logs, [ingest])))
    assert wait_until(lambda: far in _ids_in(_text_of(logs, groups)))
    assert marker not in _text_of(logs, groups)


def test_a_payload_that_is_no_json_is_listed_as_text(
    http: httpx.Client, emulator: Emulator, endpoints: Endpoints
) -> None:
    some_id, due = schedule(http, "emails", delay=3600)["id"], datetime(2033, 1, 1, tzinfo=UTC)
    bodies = ("not JSON", "NaN", "1e999", '{"a": 1}')
    for n, body in enumerate(bodies):
        at = due + timedelta(milliseconds=n)
        _send_inbound(emulator, endpoints, _with_due(some_id, at, n), at, body=body)
    span = {"from": "2033-01-01T00:00:00Z", "to": "2033-01-02T00:00:00Z"}

    def list_jobs() -> list[dict[str, Any]]:
        return list(http.get("/queues/emails/jobs", params=span).json()["jobs"])

    assert wait_until(lambda: len(list_jobs()) == len(bodies))
    *texts, json = list_jobs()
    assert [job["payload_text"] for job in texts] == ["not JSON", "NaN", "1e999"]
    assert json["payload"] == {"a": 1}


def _with_due(id: str, due: datetime, n: int) -> str:
    queue, partition, route, _, _ = id.split(".")
    return f"{queue}.{partition}.{route}.{int(due.timestamp() * 1000)}.00000000-0000-4000-8000-{n:012}"


def _send_inbound(emulator: Emulator, endpoints: Endpoints, id: str, due: datetime, *, body: str = '{"n":1}') -> None:
    attributes = {"dueline-id": id, "dueline-expires": (due + timedelta(days=7)).isoformat()}
    emulator.client("sqs").send_message(
        QueueUrl=endpoints.inbound_url,
        MessageBody=body,
        MessageAttributes={name: {"DataType": "String", "StringValue": text} for name, text in attributes.items()},
    )


def _text_of(logs: Any, groups: list[str]) -> str:
    events = [event for group in groups for event in logs.filter_log_events(logGroupName=group)["events"]]
    return "\n".join(event["message"] for event in events)


def _ids_in(text: str) -> set[str]:
    return set(re.findall(r"emails\.\d+\.[dt]\.\d+\.[0-9a-f-]{36}", text))
