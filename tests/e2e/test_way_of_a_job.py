"""Jobs through the deployed template, from HTTP to a plain SQS consumer."""

import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from local.emulator import Emulator
from local.endpoints import Endpoints
from tests.e2e.early import SOON_BY_THE_TABLE
from tests.e2e.inbox import Inbox, wait_until

JOBS = 300
CANCELS = 60
FURTHEST_SECONDS = 45
LATEST_SECONDS = 20


def schedule(http: httpx.Client, queue: str, **body: Any) -> dict[str, Any]:
    answer = http.post(f"/queues/{queue}/jobs", json={"payload": {"n": 1}, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


@dataclass(frozen=True, kw_only=True, slots=True)
class Stories:
    """Jobs of several stories, which share the time that all of them have to wait: the ids of each, and the inbox."""

    emails: Inbox
    seen: str
    states: list[str]
    cancelled_unseen: str
    repeated: str
    cancelled_and_repeated: str
    doomed: str
    beside_doomed: str


@pytest.fixture(scope="module", autouse=True)
def begun(http: httpx.Client, emulator: Emulator, endpoints: Endpoints) -> Iterator[Stories]:
    """The stories as far as they go before what they wait for, which other tests need not wait for."""
    emails = Inbox(emulator, endpoints.queues["emails"])
    doomed = schedule(http, "doomed", delay=SOON_BY_THE_TABLE)["id"]
    emulator.client("sqs").delete_queue(QueueUrl=endpoints.queues["doomed"])
    seen = schedule(http, "emails", delay=SOON_BY_THE_TABLE)
    beside_doomed = schedule(http, "emails", delay=SOON_BY_THE_TABLE + 1)["id"]
    due = datetime.now(UTC) + timedelta(seconds=SOON_BY_THE_TABLE + 3)
    cancelled_unseen, repeated, cancelled_and_repeated = (_with_due(seen["id"], due, n) for n in range(3))

    assert http.delete(f"/queues/emails/jobs/{cancelled_unseen}").status_code == 200
    for id in (cancelled_unseen, repeated, cancelled_and_repeated) * 2:
        _send_inbound(emulator, endpoints, id, due)
    states = [seen["state"], *_states_until(http, seen["id"], "scheduled")]
    _states_until(http, cancelled_and_repeated, "scheduled")
    assert http.delete(f"/queues/emails/jobs/{cancelled_and_repeated}").status_code == 200
    _send_inbound(emulator, endpoints, cancelled_and_repeated, due)

    yield Stories(
        emails=emails,
        seen=seen["id"],
        states=states,
        cancelled_unseen=cancelled_unseen,
        repeated=repeated,
        cancelled_and_repeated=cancelled_and_repeated,
        doomed=doomed,
        beside_doomed=beside_doomed,
    )
    emails.close()


@pytest.fixture(scope="module")
def stories(begun: Stories, http: httpx.Client) -> Stories:
    """The stories at their end."""
    begun.states.extend(_states_until(http, begun.seen, "dispatched"))
    assert wait_until(lambda: bool(begun.emails.of(begun.repeated)), seconds=SOON_BY_THE_TABLE + LATEST_SECONDS)
    time.sleep(2)
    return begun


def test_of_300_jobs_every_uncancelled_one_arrives_once_none_early_and_none_that_was_cancelled(
    http: httpx.Client, begun: Stories, inbox: Callable[[str], Inbox]
) -> None:
    inboxes = [begun.emails, inbox("invoices")]
    scattered = random.Random(20)
    jobs = [job for queue in ("emails", "invoices") for job in _scheduled(http, queue, JOBS // 2, scattered)]
    cancelled, requested = _cancel_at_random_moments(http, scattered.sample(jobs, CANCELS), scattered)
    expected = {job["id"] for job in jobs} - cancelled - requested

    def landed() -> list[str]:
        return [landed.id for each in inboxes for landed in each.landed]

    assert wait_until(lambda: expected <= set(landed()), seconds=FURTHEST_SECONDS + LATEST_SECONDS), "lost"
    time.sleep(2)
    assert sorted(id for id in landed() if id in expected) == sorted(expected)
    assert not cancelled & set(landed())
    assert len(cancelled) > CANCELS // 4, "too few cancels came in time to be a promise"
    assert requested, "no cancel came too late to be one"
    assert {job["route"] for job in jobs} == {"direct", "table"}
    assert all(landed.lateness >= 0 for each in inboxes for landed in each.landed)


def _scheduled(http: httpx.Client, queue: str, number: int, scattered: random.Random) -> list[dict[str, Any]]:
    delays = [round(scattered.uniform(0, FURTHEST_SECONDS), 3) for _ in range(number)]
    jobs = [{"payload": {"n": 1}, "delay": delay} for delay in delays]
    answer = http.post(f"/queues/{queue}/jobs", json={"jobs": jobs})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["jobs"])


def _cancel_at_random_moments(
    http: httpx.Client, jobs: list[dict[str, Any]], scattered: random.Random
) -> tuple[set[str], set[str]]:
    states: dict[str, str] = {}

    def cancel(job: dict[str, Any], wait: float) -> None:
        time.sleep(wait)
        states[job["id"]] = http.delete(f"/queues/{job['queue']}/jobs/{job['id']}").json()["state"]

    threads = [threading.Thread(target=cancel, args=(job, scattered.uniform(0, 10))) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(states.values()) <= {"cancelled", "cancel_requested"}
    return (
        {id for id, state in states.items() if state == "cancelled"},
        {id for id, state in states.items() if state == "cancel_requested"},
    )


@pytest.mark.parametrize("tenant", ["acme", None])
def test_a_job_is_of_its_tenants_message_group(http: httpx.Client, begun: Stories, tenant: str | None) -> None:
    emails = begun.emails
    id = schedule(http, "emails", **({"tenant": tenant} if tenant else {}))["id"]
    assert wait_until(lambda: bool(emails.of(id)), seconds=LATEST_SECONDS)
    assert [landed.group for landed in emails.of(id)] == [tenant]


def test_a_look_up_follows_a_job_from_accepted_to_dispatched(stories: Stories) -> None:
    assert list(dict.fromkeys(stories.states)) == ["accepted", "scheduled", "dispatched"]
    assert [landed.payload for landed in stories.emails.of(stories.seen)] == ['{"n":1}']


def test_a_cancel_that_overtakes_ingest_holds(stories: Stories, http: httpx.Client) -> None:
    assert not stories.emails.of(stories.cancelled_unseen)
    path = f"/queues/emails/jobs/{stories.cancelled_unseen}"
    assert http.get(path).json()["state"] == "cancelled"
    assert http.delete(path).status_code == 200


def test_a_repeated_inbound_message_brings_no_job_twice(stories: Stories) -> None:
    assert len(stories.emails.of(stories.repeated)) == 1


def test_a_repeated_inbound_message_brings_no_cancelled_job_back(stories: Stories) -> None:
    assert not stories.emails.of(stories.cancelled_and_repeated)


def test_a_queue_that_was_deleted_parks_its_jobs(
    stories: Stories, http: httpx.Client, emulator: Emulator, endpoints: Endpoints
) -> None:
    parked = _dead_letter(emulator, endpoints.dead_letter_queues["dispatch"])
    assert parked["MessageAttributes"]["dueline-id"]["StringValue"] == stories.doomed
    assert "NonExistentQueue" in parked["MessageAttributes"]["dueline-reason"]["StringValue"]
    assert http.get(f"/queues/doomed/jobs/{stories.doomed}").json()["state"] == "parked"


def test_a_queue_that_was_deleted_delays_nobody_elses_jobs(stories: Stories) -> None:
    assert [landed.lateness < 2 for landed in stories.emails.of(stories.beside_doomed)] == [True]


def _states_until(http: httpx.Client, id: str, state: str) -> list[str]:
    states: list[str] = []

    def reached() -> bool:
        states.append(http.get(f"/queues/emails/jobs/{id}").json()["state"])
        return states[-1] == state

    assert wait_until(reached, seconds=SOON_BY_THE_TABLE), states
    return states


def test_a_poison_message_ends_in_the_inbound_dead_letter_queue_with_its_reason(
    http: httpx.Client, emulator: Emulator, endpoints: Endpoints
) -> None:
    emulator.client("sqs").send_message(QueueUrl=endpoints.inbound_url, MessageBody="poison")
    beside = schedule(http, "emails", delay=3600)
    rejected = _dead_letter(emulator, endpoints.dead_letter_queues["inbound"])
    assert rejected["Body"] == "poison"
    assert "dueline-id" in rejected["MessageAttributes"]["dueline-reason"]["StringValue"]
    path = f"/queues/emails/jobs/{beside['id']}"
    assert wait_until(lambda: http.get(path).json()["state"] == "scheduled", seconds=10)


def test_no_payload_is_in_any_log(http: httpx.Client, emulator: Emulator, endpoints: Endpoints) -> None:
    marker = "do-not-log-this"
    schedule(http, "emails", payload=marker)
    far = schedule(http, "emails", payload=marker, delay=3600)["id"]
    late = _with_due(far, datetime.now(UTC), 99)
    _send_inbound(emulator, endpoints, late, datetime.now(UTC), body=f'"{marker}"')
    assert http.post("/queues/emails/jobs", json=marker).status_code == 400
    for id, state in ((far, "scheduled"), (late, "dispatched")):
        _states_until(http, id, state)
    logs = emulator.client("logs")
    groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
    assert any("ingest" in group for group in groups)
    assert wait_until(lambda: {far, late} <= _ids_in(_text_of(logs, groups)), seconds=10)
    assert marker not in _text_of(logs, groups)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_what_no_id_of_this_queue_names_is_not_found(http: httpx.Client, method: str) -> None:
    id = schedule(http, "emails", delay=3600)["id"]
    for path in ("/queues/emails/jobs/nonsense", f"/queues/invoices/jobs/{id}", f"/queues/nobody/jobs/{id}"):
        answer = http.request(method, path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


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
    found: list[dict[str, Any]] = []

    def receive() -> bool:
        answer = emulator.client("sqs").receive_message(QueueUrl=url, MessageAttributeNames=["All"])
        found.extend(answer.get("Messages", []))
        return bool(found)

    assert wait_until(receive, seconds=30), "nothing was parked"
    return found[0]


def _text_of(logs: Any, groups: list[str]) -> str:
    events = [event for group in groups for event in logs.filter_log_events(logGroupName=group)["events"]]
    return "\n".join(event["message"] for event in events)


def _ids_in(text: str) -> set[str]:
    return set(re.findall(r"emails\.\d+\.[dt]\.\d+\.[0-9a-f-]{36}", text))
