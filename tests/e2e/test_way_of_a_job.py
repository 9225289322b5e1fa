"""Jobs through the deployed template where something goes wrong on their way, and what the logs have of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from local.emulator import Emulator
from local.endpoints import Endpoints
from tests.e2e.inbox import Inbox, let_all_come, wait_until_ingested
from tests.waiting import wait_until

SOON_BY_THE_TABLE = 28
# How far ahead a story's jobs are due: further each time that this machine was too slow to play it before their tick.
AHEAD_SECONDS = (SOON_BY_THE_TABLE + 3, 60, 120, 240)


def schedule(http: httpx.Client, queue: str, **body: Any) -> dict[str, Any]:
    answer = http.post(f"/queues/{queue}/jobs", json={"payload": {"n": 1}, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeats:
    """Jobs whose messages come to ingest twice: all before their tick."""

    cancelled_unseen: str
    repeated: str
    cancelled_and_repeated: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Stories:
    """Jobs of several stories, which share the time that all of them have to wait: the ids of each, and the inbox."""

    emails: Inbox
    repeats: Repeats
    doomed: str
    beside_doomed: str


@pytest.fixture(scope="module", autouse=True)
def started(http: httpx.Client, emulator: Emulator, endpoints: Endpoints) -> Iterator[Stories]:
    """The stories as far as they go before what they wait for, which other tests need not wait for."""
    emails = Inbox(emulator, endpoints.queues["emails"])
    doomed = schedule(http, "doomed", delay=SOON_BY_THE_TABLE)["id"]
    emulator.client("sqs").delete_queue(QueueUrl=endpoints.queues["doomed"])
    beside_doomed = schedule(http, "emails", delay=SOON_BY_THE_TABLE + 1)["id"]
    attempts = (_repeats(http, emulator, endpoints, ahead) for ahead in AHEAD_SECONDS)
    repeats = next((each for each in attempts if each is not None), None)
    assert repeats is not None, f"no cancel was promised {AHEAD_SECONDS[-1]} s before its job was due"
    yield Stories(emails=emails, repeats=repeats, doomed=doomed, beside_doomed=beside_doomed)
    emails.close()


def _repeats(http: httpx.Client, emulator: Emulator, endpoints: Endpoints, ahead: float) -> Repeats | None:
    """Play the stories of messages that come twice; return nothing if their tick came before the end."""
    due = datetime.now(UTC) + timedelta(seconds=ahead)
    some_id = schedule(http, "emails", delay=3600)["id"]
    cancelled_unseen, repeated, cancelled_and_repeated = ids = [_with_due(some_id, due, n) for n in range(3)]
    if not _is_promised(http, cancelled_unseen):
        return None
    for id in ids * 2:
        _send_inbound(emulator, endpoints, id, due)
    wait_until_ingested(emulator, endpoints.inbound_url)
    if _state(http, repeated) != "scheduled" or not _is_promised(http, cancelled_and_repeated):
        return None
    _send_inbound(emulator, endpoints, cancelled_and_repeated, due)
    return Repeats(cancelled_unseen=cancelled_unseen, repeated=repeated, cancelled_and_repeated=cancelled_and_repeated)


def _is_promised(http: httpx.Client, id: str) -> bool:
    return http.delete(f"/queues/emails/jobs/{id}").status_code == 200


@pytest.fixture(scope="module")
def stories(started: Stories, http: httpx.Client, emulator: Emulator, endpoints: Endpoints) -> Stories:
    """The stories at their end."""
    wait_until_ingested(emulator, endpoints.inbound_url)
    come = {started.repeats.repeated, started.beside_doomed}
    assert wait_until(lambda: come <= {landed.id for landed in started.emails.landed})
    let_all_come(http, "emails", started.emails)
    return started


def test_cancel_before_ingest_holds(stories: Stories, http: httpx.Client) -> None:
    assert not stories.emails.of(stories.repeats.cancelled_unseen)
    path = f"/queues/emails/jobs/{stories.repeats.cancelled_unseen}"
    assert http.get(path).json()["state"] == "cancelled"
    assert http.delete(path).status_code == 200


def test_repeated_inbound_message_sends_once(stories: Stories) -> None:
    assert len(stories.emails.of(stories.repeats.repeated)) == 1


def test_repeated_message_keeps_a_cancel(stories: Stories) -> None:
    assert not stories.emails.of(stories.repeats.cancelled_and_repeated)


def test_deleted_queue_parks_its_jobs(
    stories: Stories, http: httpx.Client, emulator: Emulator, endpoints: Endpoints
) -> None:
    parked = _dead_letter(emulator, endpoints.dead_letter_queues["dispatch"])
    assert parked["MessageAttributes"]["dueline-id"]["StringValue"] == stories.doomed
    assert "NonExistentQueue" in parked["MessageAttributes"]["dueline-reason"]["StringValue"]
    assert http.get(f"/queues/doomed/jobs/{stories.doomed}").json()["state"] == "parked"


def test_deleted_queue_delays_no_other_jobs(stories: Stories) -> None:
    assert stories.emails.of(stories.beside_doomed)


def _state(http: httpx.Client, id: str) -> str:
    return str(http.get(f"/queues/emails/jobs/{id}").json()["state"])


def test_poison_message_becomes_a_dead_letter(http: httpx.Client, emulator: Emulator, endpoints: Endpoints) -> None:
    emulator.client("sqs").send_message(QueueUrl=endpoints.inbound_url, MessageBody="poison")
    beside = schedule(http, "emails", delay=3600)
    rejected = _dead_letter(emulator, endpoints.dead_letter_queues["inbound"])
    assert rejected["Body"] == "poison"
    assert "dueline-id" in rejected["MessageAttributes"]["dueline-reason"]["StringValue"]
    path = f"/queues/emails/jobs/{beside['id']}"
    assert wait_until(lambda: http.get(path).json()["state"] == "scheduled")


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


def _dead_letter(emulator: Emulator, url: str) -> dict[str, Any]:
    events: list[dict[str, Any]] = []

    def receive() -> bool:
        answer = emulator.client("sqs").receive_message(QueueUrl=url, MessageAttributeNames=["All"])
        events.extend(answer.get("Messages", []))
        return bool(events)

    assert wait_until(receive), "nothing was parked"
    return events[0]


def _text_of(logs: Any, groups: list[str]) -> str:
    events = [event for group in groups for event in logs.filter_log_events(logGroupName=group)["events"]]
    return "\n".join(event["message"] for event in events)


def _ids_in(text: str) -> set[str]:
    return set(re.findall(r"emails\.\d+\.[dt]\.\d+\.[0-9a-f-]{36}", text))
