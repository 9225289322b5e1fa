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
from tests.e2e.inbox import Inbox, let_all_come, wait_until, wait_until_ingested

JOBS = 100
CANCELS = 20
FURTHEST_SECONDS = 35
# How far ahead a story's jobs are due: further each time that this machine was too slow to tell it before their tick.
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
    seen: str
    states: list[str]
    repeats: Repeats
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
    states = [seen["state"], *_states_until(http, seen["id"], "scheduled", "dispatched")]
    told = (_repeats(http, emulator, endpoints, ahead) for ahead in AHEAD_SECONDS)
    repeats = next((each for each in told if each is not None), None)
    assert repeats is not None, f"no cancel was promised {AHEAD_SECONDS[-1]} s before its job was due"
    yield Stories(
        emails=emails, seen=seen["id"], states=states, repeats=repeats, doomed=doomed, beside_doomed=beside_doomed
    )
    emails.close()


def _repeats(http: httpx.Client, emulator: Emulator, endpoints: Endpoints, ahead: float) -> Repeats | None:
    """Tell the stories of messages that come twice; return nothing if their tick came before the end."""
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
def stories(begun: Stories, http: httpx.Client, emulator: Emulator, endpoints: Endpoints) -> Stories:
    """The stories at their end."""
    begun.states.extend(_states_until(http, begun.seen, "dispatched"))
    wait_until_ingested(emulator, endpoints.inbound_url)
    come = {begun.repeats.repeated, begun.seen, begun.beside_doomed}
    assert wait_until(lambda: come <= {landed.id for landed in begun.emails.landed})
    let_all_come(http, "emails", begun.emails)
    return begun


def test_of_many_jobs_every_uncancelled_one_arrives_none_early_and_none_that_was_cancelled(
    http: httpx.Client, begun: Stories, inbox: Callable[[str], Inbox], emulator: Emulator, endpoints: Endpoints
) -> None:
    inboxes = {"emails": begun.emails, "invoices": inbox("invoices")}
    scattered = random.Random(20)
    jobs = [job for queue in inboxes for job in _scheduled(http, queue, JOBS // 2, scattered)]
    wait_until_ingested(emulator, endpoints.inbound_url)
    # What ingest was done with before its tick comes once; else both may have sent it.
    in_time = {id for queue in inboxes for id in _listed(http, queue)} | {j["id"] for j in jobs if _is_direct(j)}
    cancelled, requested = _cancel_at_random_moments(http, scattered.sample(jobs, CANCELS), scattered)
    expected = {job["id"] for job in jobs} - cancelled - requested

    def landed() -> list[str]:
        return [landed.id for each in inboxes.values() for landed in each.landed]

    assert wait_until(lambda: expected <= set(landed())), "lost"
    for queue, each in inboxes.items():
        let_all_come(http, queue, each)
    once = expected & in_time
    assert sorted(id for id in landed() if id in once) == sorted(once)
    assert not cancelled & set(landed())
    assert {job["route"] for job in jobs} == {"direct", "table"}
    assert all(landed.lateness >= 0 for each in inboxes.values() for landed in each.landed)


def _is_direct(job: dict[str, Any]) -> bool:
    return bool(job["route"] == "direct")


def _listed(http: httpx.Client, queue: str) -> list[str]:
    """Return what waits in the table and is due within a minute."""
    until = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    answer = http.get(f"/queues/{queue}/jobs", params={"to": until, "limit": 100})
    assert answer.status_code == 200, answer.text
    return [job["id"] for job in answer.json()["jobs"] if job["state"] == "scheduled"]


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
        # What a busy machine answers with 503 promises nothing either.
        told = http.delete(f"/queues/{job['queue']}/jobs/{job['id']}").json()
        states[job["id"]] = told.get("state", "cancel_requested")

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
    assert wait_until(lambda: bool(emails.of(id)))
    assert [landed.group for landed in emails.of(id)] == [tenant]


def test_a_look_up_follows_a_job_from_scheduled_to_dispatched(stories: Stories) -> None:
    seen, way = list(dict.fromkeys(stories.states)), ["scheduled", "dispatched"]
    # It is asked now and then: what lasts for less than that it may miss.
    assert seen == [state for state in way if state in seen]
    assert (seen[0], seen[-1]) == ("scheduled", "dispatched")
    assert {landed.payload for landed in stories.emails.of(stories.seen)} == {'{"n":1}'}


def test_a_cancel_that_overtakes_ingest_holds(stories: Stories, http: httpx.Client) -> None:
    assert not stories.emails.of(stories.repeats.cancelled_unseen)
    path = f"/queues/emails/jobs/{stories.repeats.cancelled_unseen}"
    assert http.get(path).json()["state"] == "cancelled"
    assert http.delete(path).status_code == 200


def test_a_repeated_inbound_message_brings_no_job_twice(stories: Stories) -> None:
    assert len(stories.emails.of(stories.repeats.repeated)) == 1


def test_a_repeated_inbound_message_brings_no_cancelled_job_back(stories: Stories) -> None:
    assert not stories.emails.of(stories.repeats.cancelled_and_repeated)


def test_a_queue_that_was_deleted_parks_its_jobs(
    stories: Stories, http: httpx.Client, emulator: Emulator, endpoints: Endpoints
) -> None:
    parked = _dead_letter(emulator, endpoints.dead_letter_queues["dispatch"])
    assert parked["MessageAttributes"]["dueline-id"]["StringValue"] == stories.doomed
    assert "NonExistentQueue" in parked["MessageAttributes"]["dueline-reason"]["StringValue"]
    assert http.get(f"/queues/doomed/jobs/{stories.doomed}").json()["state"] == "parked"


def test_a_queue_that_was_deleted_keeps_nobody_elses_jobs_back(stories: Stories) -> None:
    assert stories.emails.of(stories.beside_doomed)


def _state(http: httpx.Client, id: str) -> str:
    return str(http.get(f"/queues/emails/jobs/{id}").json()["state"])


def _states_until(http: httpx.Client, id: str, *wanted: str) -> list[str]:
    """Return the states that a job is seen in up to the first that is wanted."""
    states: list[str] = []

    def reached() -> bool:
        states.append(_state(http, id))
        return states[-1] in wanted

    assert wait_until(reached), states
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
    assert wait_until(lambda: http.get(path).json()["state"] == "scheduled")


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
    [ingest] = [group for group in groups if "ingest" in group]
    # The API tells of whatever it is asked for.
    assert wait_until(lambda: late in _ids_in(_text_of(logs, [ingest])))
    assert wait_until(lambda: far in _ids_in(_text_of(logs, groups)))
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

    assert wait_until(receive), "nothing was parked"
    return found[0]


def _text_of(logs: Any, groups: list[str]) -> str:
    events = [event for group in groups for event in logs.filter_log_events(logGroupName=group)["events"]]
    return "\n".join(event["message"] for event in events)


def _ids_in(text: str) -> set[str]:
    return set(re.findall(r"emails\.\d+\.[dt]\.\d+\.[0-9a-f-]{36}", text))
