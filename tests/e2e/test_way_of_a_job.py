"""Messages that no producer sends come to the deployed inbound queue, and what the logs have of jobs."""

from datetime import UTC, datetime, timedelta

from dueline.config.names import Names
from tests.acceptance.early import schedule
from tests.e2e.deployed import send_inbound
from tests.waiting import wait_until


def is_in(state, id, http):
    return http.get(f"/queues/emails/jobs/{id}").json()["state"] == state


def test_poison_message_becomes_a_dead_letter(http, emulator, endpoints, dead_letter):
    sqs = emulator.client("sqs")
    sqs.send_message(QueueUrl=endpoints.inbound_url, MessageBody="poison")
    beside = send_inbound(sqs, endpoints.inbound_url, due=datetime.now(UTC) + timedelta(hours=1))
    body, attributes = dead_letter("inbound")
    assert body == "poison"
    assert "dueline-id" in attributes["dueline-reason"]
    assert wait_until(lambda: is_in("scheduled", beside, http))


def test_no_payload_is_in_any_log(http, emulator, endpoints):
    marker, logs = "do-not-log-this", emulator.client("logs")
    schedule(http, "emails", payload=marker)
    far = schedule(http, "emails", payload=marker, delay=3600)["id"]
    late = send_inbound(emulator.client("sqs"), endpoints.inbound_url, due=datetime.now(UTC), body=f'"{marker}"')
    assert http.post("/queues/emails/jobs", json=marker).status_code == 400
    assert wait_until(lambda: is_in("scheduled", far, http) and is_in("dispatched", late, http))
    groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
    # Of each function that saw a payload, the line of an invocation that is over.
    for name, over in {"api": "request", "ingest": "ingested"}.items():
        group = Names("e2e").function_log(name)
        assert wait_until(lambda group=group, over=over: f'"{over}"' in text_of(logs, group)), group
    assert marker not in text_of(logs, *groups)


def text_of(logs, *groups):
    events = [event for group in groups for event in logs.filter_log_events(logGroupName=group)["events"]]
    return "\n".join(event["message"] for event in events)
