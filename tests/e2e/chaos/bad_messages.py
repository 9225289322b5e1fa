"""Scenario `bad-messages`: messages that are no jobs, a queue that was deleted, and a message that kills ingest."""

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, zip_longest
from typing import Any

import httpx

from dueline.core import instant
from tests.e2e.chaos import repeats
from tests.e2e.chaos.deployment import Deployment, attribute, reasons
from tests.e2e.chaos.ledger import Ledger, Report
from tests.e2e.chaos.proxy import UUID, Answer, Exchange, Record, straight, uid_of
from tests.e2e.chaos.repeats import Invocations
from tests.waiting import wait_until

MIB, PAYLOAD_LIMIT = 1024 * 1024, 256 * 1024
NOW = datetime.now(UTC)
SOON, LATER, WEEK, MONTH = timedelta(seconds=1), timedelta(hours=1), timedelta(days=7), timedelta(days=30)
INBOUND, DISPATCH = "inbound", "dispatch"
DOOMED, *BESIDE = QUEUES = ("doomed", "emails", "invoices")
BY_THE_TABLE = timedelta(seconds=29)
# Deployed, SQS gives up after 120 receives, three minutes apart.
MOST_RECEIVES, DEADLY_VISIBILITY_SECONDS = 2, 4


def text(value: str) -> dict[str, Any]:
    return {"DataType": "String", "StringValue": value}


def number(value: str) -> dict[str, Any]:
    return {"DataType": "Number", "StringValue": value}


def binary(value: bytes) -> dict[str, Any]:
    return {"DataType": "Binary", "BinaryValue": value}


def id_of(queue: str = "emails", partition: str = "0", route: str = "t", due: datetime = NOW + LATER) -> str:
    return f"{queue}.{partition}.{route}.{instant.epoch_ms(due)}.{uuid.uuid4()}"


def carried(id: str, expires: str = "") -> dict[str, Any]:
    """Return the attributes with which a job travels."""
    due = instant.from_epoch_ms(int(id.split(".")[3]))
    return {"dueline-id": text(id), "dueline-expires": text(expires or instant.text(due + WEEK))}


def _job(expires: str = "", **parts: Any) -> dict[str, Any]:
    return carried(id_of(**parts), expires)


def _with(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return a job's attributes, with another value for one of them."""
    return _job() | {name: value}


def _body(pad: str = "") -> str:
    """Return a body by which a message is found again."""
    return json.dumps({"mark": str(uuid.uuid4()), "pad": pad}, ensure_ascii=False, separators=(",", ":"))


def _body_of_bytes(size: int) -> str:
    return _body("x" * (size - len(_body().encode())))


@dataclass(frozen=True, kw_only=True)
class BadMessage:
    """A message to the inbound queue, and why and where it is parked; one without a reason arrives as a job."""

    what: str
    attributes: dict[str, Any]
    reason: str = ""
    parked_in: str = INBOUND
    body: str = field(default_factory=_body)

    @property
    def id(self) -> str:
        return attribute({"MessageAttributes": self.attributes}, "dueline-id")


_ODD, _NO_ID = "\t\r\n\x7f\x85 ü € 🙂 \u2028", "'dueline-id' is missing"
_OWN = {f"own-{n}": text(f"value {n}") for n in range(10)}
_NO_JOB, _GONE = f"emails.0.t.253402300799000.{uuid.uuid4()}", NOW - MONTH
# What it is, its attributes, and why it is parked.
_BAD: list[tuple[str, dict[str, Any], str]] = [
    ("no attributes", {}, _NO_ID),
    ("ten attributes of the sender's own", _OWN, _NO_ID),
    ("no expiry", {"dueline-id": text(id_of())}, "'dueline-expires' is missing"),
    ("a reason of the sender's own", {"dueline-reason": text("none of mine")}, _NO_ID),
    ("an id of bytes", _with("dueline-id", binary(b"emails.0.t")), "the id 'ZW1haWxzLjAudA==': it is not of the form"),
    ("a number as id", _with("dueline-id", number("5")), "no job has the id '5'"),
    ("a number as expiry", _with("dueline-expires", number("1893484800")), "attributes name no job"),
    ("an expiry of bytes", _with("dueline-expires", binary(b"2030-01-01T00:00:00Z")), "attributes name no job"),
    ("an id of another form", _with("dueline-id", text("emails-1")), "no job has the id 'emails-1'"),
    ("a partition of four digits", _job(partition="1000"), "not of the form of an id"),
    ("due in the year 9999", _with("dueline-id", text(_NO_JOB)), "not of the form of an id"),
    ("an expiry beyond the year 9999", _job("9999-12-31T23:59:59-23:59"), "outside the years 1 to 9999"),
    ("an expiry without a zone", _job("2030-01-01T09:00:00"), "has no time zone"),
    ("expired before it is due", _job(instant.text(NOW + LATER / 2)), "before the job is due"),
]
_UNSENDABLE: list[tuple[str, dict[str, Any], str]] = [
    ("past its retention", _job(due=_GONE), "past its retention"),
    ("direct and past its retention", _job(route="d", due=_GONE), "past its retention"),
    ("due in 1970", _job(due=instant.EPOCH), "past its retention"),
    ("direct and due in an hour", _job(route="d"), "a direct job is due in over 900 s"),
    ("direct to a queue that never was", _job(queue="nobody", route="d", due=NOW + SOON), "NonExistentQueue"),
    # What no tick will ever look at.
    ("to a queue that never was", _job(queue="nobody", due=NOW + SOON), "nobody"),
    ("to a partition that never was", _job(partition="7", due=NOW + SOON), "emails#7"),
]
_BODIES = {
    "no JSON and no attributes": (f"poison {uuid.uuid4()}", {}, _NO_ID),
    "odd characters": (_body(_ODD), {}, _NO_ID),
    "one byte too large": (_body_of_bytes(PAYLOAD_LIMIT + 1), _job(), f"payload has {PAYLOAD_LIMIT + 1} bytes"),
    "too large in bytes alone": (_body("ü" * (PAYLOAD_LIMIT // 2)), _job(), "payload has 2622"),
    "nearly 1 MiB": (_body_of_bytes(MIB - 4096), _job(), f"payload has {MIB - 4096} bytes"),
}
_GOOD: list[tuple[str, dict[str, Any], str]] = [
    ("due soon", _job(due=NOW + SOON), _body()),
    ("direct and due soon", _job(route="d", due=NOW + SOON), _body()),
    ("due days ago", _job(due=NOW - WEEK / 3), _body()),
    ("no JSON", _job(due=NOW + SOON), f"not JSON {uuid.uuid4()}"),
    ("odd characters", _job(due=NOW + SOON), _body(_ODD)),
    ("a payload of just 256 KiB", _job(due=NOW + SOON), _body_of_bytes(PAYLOAD_LIMIT)),
    ("an expiry in the year 9999", _job("9999-12-31T23:59:59Z", due=NOW + SOON), _body()),
    ("due days ago, an expiry in the year 9999", _job("9999-12-31T23:59:59Z", due=NOW - WEEK / 3), _body()),
    ("eight attributes of the sender's own", dict(list(_OWN.items())[:8]) | _job(due=NOW + SOON), _body()),
]
BAD = [
    *(BadMessage(what=what, attributes=attributes, reason=reason) for what, attributes, reason in _BAD),
    *(BadMessage(what=what, attributes=its, reason=why, body=body) for what, (body, its, why) in _BODIES.items()),
    *(BadMessage(what=what, attributes=its, reason=why, parked_in=DISPATCH) for what, its, why in _UNSENDABLE),
]
GOOD = [BadMessage(what=what, attributes=attributes, body=body) for what, attributes, body in _GOOD]
DEADLY = BadMessage(what="deadly", attributes=_job())


def run(deployment: Deployment, *, jobs: int) -> Report:
    """Delete a queue under its jobs, and send messages of all kinds: each ends once where it belongs."""
    deployment.start()
    ledger, report = Ledger(), Report()
    with ledger.receiving(deployment, *BESIDE):
        doomed, beside = _schedule_and_delete(deployment, ledger, jobs)
        refusal = deployment.http.post(f"/queues/{DOOMED}/jobs", json={"payload": 1})
        pairs = zip_longest(BAD, GOOD)
        _send(deployment, [message for pair in pairs for message in pair if message])
        expected, ids = {each.id for each in GOOD} | set(beside), list(chain(*doomed.values()))

        def is_settled() -> bool:
            parked = {
                uid for each in list(deployment.proxy.records) if each.queue.endswith("-dlq") for uid in each.sent
            }
            has_parked = set(map(uid_of, ids)) <= parked
            return expected <= ledger.times.keys() and has_parked and deployment.is_ingested()

        report.expect(wait_until(is_settled), "the messages are not where they belong")
        kills = _kill_ingest_by_a_message(deployment)
    report.expect(1 <= kills <= MOST_RECEIVES, f"a message that kills ingest was received {kills} times")
    parked = Parked(dead_letters=deployment.dead_letters(), records=list(deployment.proxy.records))
    for where, its in doomed.items():
        for id in its:
            parked.check(report, f"{where}: {id}", uid_of(id), queue=DISPATCH, reason="NonExistentQueue", id=id)
    for each in BAD:
        mark = str(UUID.findall(each.body)[0])
        parked.check(report, each.what, mark, queue=each.parked_in, reason=each.reason, body=each.body)
    for each in GOOD:
        bodies = {job.payload for job in ledger.delivered if job.id == each.id}
        report.expect(bodies == {each.body}, f"{each.what}: it arrived as {bodies}")
    report.expect(parked.of(body=DEADLY.body) == [(INBOUND, "")], "SQS did not set the deadly message aside")
    others = parked.others({each.body for each in [*BAD, DEADLY]}, {*ids, *ledger.accepted})
    report.expect(not others, f"something else is parked: {reasons(others)}")
    is_not_found = refusal.status_code == httpx.codes.NOT_FOUND and "deleted" in refusal.json()["detail"]
    report.expect(is_not_found, f"a caller of a deleted queue is answered {refusal.status_code} {refusal.text}")
    missing = set(beside) - ledger.times.keys()
    report.expect(not missing, f"{len(missing)} jobs of other queues did not arrive")
    report.expect(not ledger.early, f"early: {ledger.early}")
    unexplained = repeats.unexplained(repeats.causes_of(ledger, parked.records))
    report.expect(not unexplained, f"arrived more than once for no cause: {unexplained}")
    report.details += map(deployment.history_of, ids[:3] if report.complaints else [])
    report.figures = {"jobs of a deleted queue": len(ids), "messages of all kinds": len([*BAD, *GOOD])}
    return report


@dataclass(frozen=True, kw_only=True, slots=True)
class Parked:
    """What is in the dead-letter queues, and the requests that brought it there."""

    dead_letters: dict[str, list[dict[str, Any]]]
    records: list[Record]

    def of(self, *, body: str = "", id: str = "") -> list[tuple[str, str]]:
        """Return in which dead-letter queues a message or a job is, each time with the reason."""
        return [
            (queue, attribute(dead_letter, "dueline-reason"))
            for queue, dead_letters in self.dead_letters.items()
            for dead_letter in dead_letters
            if dead_letter["Body"] == body or (id and attribute(dead_letter, "dueline-id") == id)
        ]

    def check(self, report: Report, what: str, uid: str, *, queue: str, reason: str, **named: str) -> None:
        """See that a message is in one dead-letter queue for a reason: once, or as often as it was sent for a cause.

        Invocations that did not know of each other each send it.
        """
        matching = self.of(**named)
        sends = [record for record in self.records if record.queue.endswith("-dlq") and uid in record.uids]
        unheard = Invocations(records=self.records).is_unheard
        most = max(1, len({send.invocation for send in sends}) + sum(map(unheard, sends)))
        report.expect(1 <= len(matching) <= most, f"{what}: it is parked {len(matching)} times")
        is_right = all(there == queue and reason in why for there, why in matching)
        report.expect(is_right, f"{what}: it is parked as {matching}, not in {queue} for {reason!r}")

    def others(self, bodies: set[str], ids: set[str]) -> dict[str, list[dict[str, Any]]]:
        """Return what is parked besides these messages and jobs."""
        matching = {
            name: [
                each for each in dead_letters if each["Body"] not in bodies and attribute(each, "dueline-id") not in ids
            ]
            for name, dead_letters in self.dead_letters.items()
        }
        return {name: dead_letters for name, dead_letters in matching.items() if dead_letters}


def _schedule_and_delete(deployment: Deployment, ledger: Ledger, jobs: int) -> tuple[dict[str, list[str]], list[str]]:
    """Delete a queue while jobs of it are in the table, in ingest, and on the late path.

    Returns their ids by where they are, and those of jobs of other queues.
    """

    def schedule(queue: str, due: datetime) -> list[str]:
        new = [{"payload": n, "at": instant.text(due)} for n in range(jobs)]
        return ledger.schedule(deployment.http, queue, new)

    waiting = deployment.throttle_with_jobs_in_the_table(
        lambda lead: [id for queue in QUEUES for id in schedule(queue, datetime.now(UTC) + lead)], lead=BY_THE_TABLE
    )
    in_table = [id for id in waiting if id.startswith(f"{DOOMED}.")]
    in_ingest = schedule(DOOMED, datetime.now(UTC) + BY_THE_TABLE)
    deployment.emulator.client("sqs").delete_queue(QueueUrl=deployment.endpoints.queues[DOOMED])
    deployment.proxy.around = straight
    late = [BadMessage(what="late", attributes=_job(queue=DOOMED, due=datetime.now(UTC))) for _ in range(jobs)]
    _send(deployment, late)
    doomed = {"in the table": in_table, "in ingest": in_ingest, "late": [each.id for each in late]}
    return doomed, [id for id in waiting if id not in in_table]


def _send(deployment: Deployment, messages: list[BadMessage]) -> None:
    """Send messages in batches that SQS accepts."""
    sqs, url, batches = deployment.emulator.client("sqs"), deployment.endpoints.inbound_url, [list[BadMessage]()]
    for message in messages:
        size = sum(len(each.body.encode()) for each in [*batches[-1], message])
        if size > MIB or len(batches[-1]) == 10:
            batches.append([])
        batches[-1].append(message)
    for batch in batches:
        entries = [
            {"Id": str(n), "MessageBody": each.body, "MessageAttributes": each.attributes}
            for n, each in enumerate(batch)
        ]
        answer = sqs.send_message_batch(QueueUrl=url, Entries=entries)
        assert not answer.get("Failed"), answer["Failed"]


def _kill_ingest_by_a_message(deployment: Deployment) -> int:
    """Send a message that kills its function whenever it is received, until SQS gives up; return how often it was."""
    kills: list[int] = []

    def kill(exchange: Exchange) -> Answer | None:
        if uid_of(DEADLY.id).encode() not in exchange.body:
            return exchange.pass_on()
        kills.append(exchange.sender.pid)
        exchange.sender.kill()
        return None

    sqs, url = deployment.emulator.client("sqs"), deployment.endpoints.inbound_url
    policy = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])["Attributes"]["RedrivePolicy"]
    limited = json.dumps(json.loads(policy) | {"maxReceiveCount": MOST_RECEIVES})
    limits = {"RedrivePolicy": limited, "VisibilityTimeout": str(DEADLY_VISIBILITY_SECONDS)}
    sqs.set_queue_attributes(QueueUrl=url, Attributes=limits)
    parked, deployment.proxy.around = deployment.count_dead_letters(), kill
    _send(deployment, [DEADLY])
    wait_until(lambda: deployment.count_dead_letters() > parked)
    return len(kills)
