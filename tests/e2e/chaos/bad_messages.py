"""Scenario `bad-messages`: messages that are no jobs, a queue that was deleted, and a message that kills ingest."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from dueline.core import instant
from tests.acceptance.inbox import Inbox
from tests.e2e.chaos.deployment import Deployment
from tests.e2e.chaos.ledger import Report
from tests.e2e.chaos.network_faults import throttled
from tests.e2e.chaos.proxy import Answer, Exchange, straight, uid_of
from tests.waiting import wait_until

MIB, PAYLOAD_LIMIT = 1024 * 1024, 256 * 1024
SOON, LATER, WEEK, MONTH = timedelta(seconds=1), timedelta(hours=1), timedelta(days=7), timedelta(days=30)
INBOUND, DISPATCH, QUEUE, DOOMED = "inbound", "dispatch", "emails", "doomed"
BY_THE_TABLE = timedelta(seconds=29)
# Deployed, SQS gives up after 120 receives, three minutes apart.
MOST_RECEIVES, DEADLY_VISIBILITY_SECONDS = 2, 4
_NO_ID, _ODD = "'dueline-id' is missing", "\t\r\n\x7f\x85 ü € 🙂 \u2028"


def _text(value: str) -> dict[str, Any]:
    return {"DataType": "String", "StringValue": value}


def _number(value: str) -> dict[str, Any]:
    return {"DataType": "Number", "StringValue": value}


def _binary(value: bytes) -> dict[str, Any]:
    return {"DataType": "Binary", "BinaryValue": value}


_OWN = {f"own-{n}": _text(f"value {n}") for n in range(10)}


def _job(
    due: datetime, expires: str = "", *, queue: str = QUEUE, partition: str = "0", route: str = "t"
) -> dict[str, Any]:
    """Return the attributes with which a job travels."""
    id = f"{queue}.{partition}.{route}.{instant.epoch_ms(due)}.{uuid.uuid4()}"
    return {"dueline-id": _text(id), "dueline-expires": _text(expires or instant.text(due + WEEK))}


def _body(pad: str = "") -> str:
    """Return a body by which a message is found again."""
    return json.dumps({"mark": str(uuid.uuid4()), "pad": pad}, ensure_ascii=False, separators=(",", ":"))


def _body_of_bytes(size: int) -> str:
    return _body("x" * (size - len(_body().encode())))


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A message to the inbound queue, and why and where it is parked; one without a reason arrives as a job."""

    what: str
    attributes: dict[str, Any]
    reason: str = ""
    parked_in: str = INBOUND
    body: str = field(default_factory=_body)

    @property
    def id(self) -> str:
        return str(self.attributes["dueline-id"]["StringValue"])


def _no_jobs(now: datetime) -> list[Case]:
    job, (id, expires) = _job(now + LATER), ("dueline-id", "dueline-expires")
    in_the_year_9999 = f"emails.0.t.253402300799000.{uuid.uuid4()}"
    by_attributes = [
        ("no attributes", {}, _NO_ID),
        ("ten attributes of the sender's own", _OWN, _NO_ID),
        ("no expiry", {id: job[id]}, "'dueline-expires' is missing"),
        ("a reason of the sender's own", {"dueline-reason": _text("none of mine")}, _NO_ID),
        ("an id of bytes", job | {id: _binary(b"emails.0.t")}, "the id 'ZW1haWxzLjAudA==': it is not of the form"),
        ("a number as id", job | {id: _number("5")}, "no job has the id '5'"),
        ("a number as expiry", job | {expires: _number("1893484800")}, "attributes name no job"),
        ("an expiry of bytes", job | {expires: _binary(b"2030-01-01T00:00:00Z")}, "attributes name no job"),
        ("an id of another form", job | {id: _text("emails-1")}, "no job has the id 'emails-1'"),
        ("a partition of four digits", _job(now + LATER, partition="1000"), "not of the form of an id"),
        ("due in the year 9999", job | {id: _text(in_the_year_9999)}, "not of the form of an id"),
        ("an expiry beyond 9999", job | {expires: _text("9999-12-31T23:59:59-23:59")}, "outside the years 1 to 9999"),
        ("an expiry without a zone", job | {expires: _text("2030-01-01T09:00:00")}, "has no time zone"),
        ("expired before it is due", _job(now + LATER, instant.text(now + LATER / 2)), "before the job is due"),
    ]
    by_body = [
        ("no JSON and no attributes", {}, _NO_ID, f"poison {uuid.uuid4()}"),
        ("odd characters", {}, _NO_ID, _body(_ODD)),
        ("one byte too large", job, f"payload has {PAYLOAD_LIMIT + 1} bytes", _body_of_bytes(PAYLOAD_LIMIT + 1)),
        ("too large in bytes alone", job, "payload has 2622", _body("ü" * (PAYLOAD_LIMIT // 2))),
        ("nearly 1 MiB", job, f"payload has {MIB - 4096} bytes", _body_of_bytes(MIB - 4096)),
    ]
    rows = [*((*row, _body()) for row in by_attributes), *by_body]
    return [Case(what=what, attributes=its, reason=why, body=body) for what, its, why, body in rows]


def _unsendable(now: datetime) -> list[Case]:
    rows = [
        ("past its retention", _job(now - MONTH), "past its retention"),
        ("direct and past its retention", _job(now - MONTH, route="d"), "past its retention"),
        ("due in 1970", _job(instant.EPOCH), "past its retention"),
        ("direct and due in an hour", _job(now + LATER, route="d"), "a direct job is due in over 900 s"),
        ("direct to a queue that never was", _job(now + SOON, queue="nobody", route="d"), "NonExistentQueue"),
        # What no tick will ever look at.
        ("to a queue that never was", _job(now + SOON, queue="nobody"), "nobody"),
        ("to a partition that never was", _job(now + SOON, partition="7"), "emails#7"),
    ]
    return [Case(what=what, attributes=its, reason=why, parked_in=DISPATCH) for what, its, why in rows]


def _of_a_deleted_queue(where: str, due: datetime) -> Case:
    attributes = _job(due, queue=DOOMED)
    return Case(
        what=f"of a deleted queue, {where}", attributes=attributes, reason="NonExistentQueue", parked_in=DISPATCH
    )


def _jobs(now: datetime) -> list[Case]:
    soon, days_ago = now + SOON, now - WEEK / 3
    rows = [
        ("due soon", _job(soon), _body()),
        ("by the table", _job(now + BY_THE_TABLE), _body()),
        ("direct and due soon", _job(soon, route="d"), _body()),
        ("due days ago", _job(days_ago), _body()),
        ("no JSON", _job(soon), f"not JSON {uuid.uuid4()}"),
        ("odd characters", _job(soon), _body(_ODD)),
        ("a payload of just 256 KiB", _job(soon), _body_of_bytes(PAYLOAD_LIMIT)),
        ("an expiry in the year 9999", _job(soon, "9999-12-31T23:59:59Z"), _body()),
        ("due days ago, an expiry in the year 9999", _job(days_ago, "9999-12-31T23:59:59Z"), _body()),
        ("eight attributes of the sender's own", dict(list(_OWN.items())[:8]) | _job(soon), _body()),
    ]
    return [Case(what=what, attributes=attributes, body=body) for what, attributes, body in rows]


def run(deployment: Deployment) -> Report:
    """Delete a queue under its jobs, send messages of all kinds, and kill ingest by one: each ends where it belongs."""
    deployment.start()
    report, names, now = Report(), deployment.settings.names, datetime.now(UTC)
    bad, good, deadly = [*_no_jobs(now), *_unsendable(now)], _jobs(now), Case(what="deadly", attributes=_job(now))
    with _receiving(deployment, names.inbound_dlq, names.dispatch_dlq, names.queue(QUEUE)) as (inbound, dispatch, came):
        bad += _delete_a_queue(deployment)
        _send(deployment, [*bad, *good])

        def are_there() -> bool:
            bodies = {each.body for inbox in (inbound, dispatch, came) for each in list(inbox.landed)}
            return bodies >= {each.body for each in (*bad, *good)} and deployment.is_ingested()

        wait_until(are_there)
        kills = _kill_ingest(deployment, deadly, inbound)
    report.expect(1 <= kills <= MOST_RECEIVES, f"a message that kills ingest was received {kills} times")
    parked = [(INBOUND, each) for each in inbound.landed] + [(DISPATCH, each) for each in dispatch.landed]
    for case in (*bad, deadly):
        its = {(queue, each.attributes.get("dueline-reason", "")) for queue, each in parked if each.body == case.body}
        is_right = all(queue == case.parked_in and case.reason in reason for queue, reason in its)
        report.expect(its and is_right, f"{case.what}: parked as {its}, not in {case.parked_in} for {case.reason!r}")
    expected = {case.body for case in (*bad, deadly)}
    others = [each.attributes for _, each in parked if each.body not in expected] + deployment.dead_letters()
    report.expect(not others, f"something else is parked: {others}")
    for case in good:
        jobs = came.of(case.id)
        report.expect({job.body for job in jobs} == {case.body}, f"{case.what}: it arrived as {jobs}")
        report.expect(all(job.lateness >= 0 for job in jobs), f"{case.what}: it arrived early")
    report.figures = {"bad messages": len(expected), "good messages": len(good)}
    return report


@contextmanager
def _receiving(deployment: Deployment, *queues: str) -> Iterator[list[Inbox]]:
    sqs = deployment.emulator.client("sqs")
    inboxes = [Inbox(sqs, queue, threads=1).open() for queue in queues]
    try:
        yield inboxes
    finally:
        for inbox in inboxes:
            inbox.stop()
        for inbox in inboxes:
            inbox.close()


def _delete_a_queue(deployment: Deployment) -> list[Case]:
    """Delete a queue while a job of it is in the table, and one on the late path; until then none can be sent."""

    def hold(exchange: Exchange) -> Answer | None:
        is_held = exchange.operation == "SendMessageBatch" and exchange.queue == deployment.settings.names.queue(DOOMED)
        exchange.fault = "held" if is_held else ""
        return throttled(exchange) if is_held else exchange.pass_on()

    deployment.proxy.around = hold
    in_table = _of_a_deleted_queue("in the table", datetime.now(UTC) + BY_THE_TABLE)
    _send(deployment, [in_table])
    assert wait_until(deployment.is_ingested), "ingest hangs"
    late = _of_a_deleted_queue("late", datetime.now(UTC))
    _send(deployment, [late])
    assert wait_until(lambda: any(each.fault for each in list(deployment.proxy.exchanges))), "ingest sends no late job"
    deployment.emulator.client("sqs").delete_queue(QueueUrl=deployment.endpoints.queues[DOOMED])
    deployment.proxy.around = straight
    return [in_table, late]


def _kill_ingest(deployment: Deployment, deadly: Case, inbound: Inbox) -> int:
    """Send a message that kills ingest whenever it is received, until SQS gives up; return how often it was."""
    kills: list[int] = []

    def kill(exchange: Exchange) -> Answer | None:
        if uid_of(deadly.id).encode() not in exchange.body:
            return exchange.pass_on()
        kills.append(exchange.sender.pid)
        exchange.sender.kill()
        return None

    sqs, url = deployment.emulator.client("sqs"), deployment.endpoints.inbound_url
    limits = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy", "VisibilityTimeout"])["Attributes"]
    policy = json.loads(limits["RedrivePolicy"]) | {"maxReceiveCount": MOST_RECEIVES}
    lower = {"RedrivePolicy": json.dumps(policy), "VisibilityTimeout": str(DEADLY_VISIBILITY_SECONDS)}
    sqs.set_queue_attributes(QueueUrl=url, Attributes=lower)
    deployment.proxy.around = kill
    _send(deployment, [deadly])
    wait_until(lambda: any(each.body == deadly.body for each in list(inbound.landed)))
    deployment.proxy.around = straight
    sqs.set_queue_attributes(QueueUrl=url, Attributes=limits)
    return len(kills)


def _send(deployment: Deployment, cases: list[Case]) -> None:
    """Send messages in batches that SQS accepts."""
    sqs, batches = deployment.emulator.client("sqs"), [list[Case]()]
    for case in cases:
        size = sum(len(each.body.encode()) for each in [*batches[-1], case])
        if size > MIB or len(batches[-1]) == 10:
            batches.append([])
        batches[-1].append(case)
    for batch in batches:
        entries = [
            {"Id": str(n), "MessageBody": each.body, "MessageAttributes": each.attributes}
            for n, each in enumerate(batch)
        ]
        answer = sqs.send_message_batch(QueueUrl=deployment.endpoints.inbound_url, Entries=entries)
        assert not answer.get("Failed"), answer["Failed"]
