"""Messages straight into the inbound queue: what carries no job, what can never be sent, and what goes through."""

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from dueline.model import instant
from tests.e2e.faults.exchange import UUID

MIB = 1024 * 1024
PAYLOAD_LIMIT = 256 * 1024
NOW = datetime.now(UTC)
SOON = NOW + timedelta(seconds=1)
LATER = NOW + timedelta(hours=1)
WEEK = timedelta(days=7)

INBOUND, DISPATCH = "inbound", "dispatch"


def body(pad: str = "") -> str:
    """Return a body by which a message is found again."""
    return json.dumps({"mark": str(uuid.uuid4()), "pad": pad}, ensure_ascii=False, separators=(",", ":"))


def body_of_bytes(size: int) -> str:
    return body("x" * (size - len(body().encode())))


@dataclass(frozen=True, kw_only=True)
class Letter:
    """A message, and where one that is no good must end, with a reason that says so."""

    what: str
    body: str = field(default_factory=body)
    attributes: dict[str, Any] = field(default_factory=dict)
    ends_in: str = INBOUND
    reason: str = ""

    @property
    def mark(self) -> str:
        """What a request speaks of that concerns this message: the mark of its body."""
        return str(UUID.findall(self.body)[0])


def text(value: str) -> dict[str, Any]:
    return {"DataType": "String", "StringValue": value}


def number(value: str) -> dict[str, Any]:
    return {"DataType": "Number", "StringValue": value}


def binary(value: bytes) -> dict[str, Any]:
    return {"DataType": "Binary", "BinaryValue": value}


def id_of(queue: str = "emails", partition: str = "0", route: str = "t", due: datetime = LATER) -> str:
    return f"{queue}.{partition}.{route}.{instant.epoch_ms(due)}.{uuid.uuid4()}"


def carried(id: str, expires: str = "") -> dict[str, Any]:
    """Return the attributes with which a job travels."""
    due = instant.from_epoch_ms(int(id.split(".")[3]))
    return {"dueline-id": text(id), "dueline-expires": text(expires or instant.text(due + WEEK))}


_OWN = {f"own-{n}": text(f"value {n}") for n in range(10)}
_GONE = NOW - timedelta(days=30)
_ODD_CHARACTERS = "\t\r\n\x7f\x85 ü € 🙂 \u2028"

BAD = [
    Letter(what="no attributes", reason="'dueline-id' is missing"),
    Letter(what="no JSON and no attributes", body=f"poison {uuid.uuid4()}", reason="'dueline-id' is missing"),
    Letter(what="odd characters", body=body(_ODD_CHARACTERS), reason="'dueline-id' is missing"),
    Letter(what="ten attributes of the sender's own", attributes=_OWN, reason="'dueline-id' is missing"),
    Letter(what="no expiry", attributes={"dueline-id": text(id_of())}, reason="'dueline-expires' is missing"),
    Letter(
        what="a reason of the sender's own",
        attributes={"dueline-reason": text("none of mine")},
        reason="'dueline-id' is missing",
    ),
    Letter(
        what="an id of bytes",
        attributes=carried(id_of()) | {"dueline-id": binary(b"emails.0.t")},
        reason="no job has the id ''",
    ),
    Letter(
        what="a number as id", attributes=carried(id_of()) | {"dueline-id": number("5")}, reason="no job has the id '5'"
    ),
    Letter(
        what="a number as expiry",
        attributes=carried(id_of()) | {"dueline-expires": number("1893484800")},
        reason="attributes name no job",
    ),
    Letter(
        what="an expiry of bytes",
        attributes=carried(id_of()) | {"dueline-expires": binary(b"2030-01-01T00:00:00Z")},
        reason="attributes name no job",
    ),
    Letter(
        what="an id of another form",
        attributes=carried(id_of()) | {"dueline-id": text("emails-1")},
        reason="no job has the id 'emails-1'",
    ),
    Letter(
        what="a partition of four digits",
        attributes=carried(id_of(partition="1000")),
        reason="not of the form of an id",
    ),
    Letter(
        what="due in the year 9999",
        attributes=carried(id_of()) | {"dueline-id": text(f"emails.0.t.253402300799000.{uuid.uuid4()}")},
        reason="not of the form of an id",
    ),
    Letter(
        what="an expiry beyond the year 9999",
        attributes=carried(id_of(), "9999-12-31T23:59:59-23:59"),
        reason="outside the years 1 to 9999",
    ),
    Letter(
        what="an expiry without a zone", attributes=carried(id_of(), "2030-01-01T09:00:00"), reason="has no time zone"
    ),
    Letter(
        what="expired before it is due",
        attributes=carried(id_of(), instant.text(LATER - timedelta(seconds=1))),
        reason="before the job is due",
    ),
    Letter(
        what="a payload one byte too large",
        body=body_of_bytes(PAYLOAD_LIMIT + 1),
        attributes=carried(id_of()),
        reason=f"payload has {PAYLOAD_LIMIT + 1} bytes",
    ),
    Letter(
        what="a payload too large in bytes but not in characters",
        body=body("ü" * (PAYLOAD_LIMIT // 2)),
        attributes=carried(id_of()),
        reason="payload has 2622",
    ),
    Letter(
        what="a payload of nearly 1 MiB",
        body=body_of_bytes(MIB - 4096),
        attributes=carried(id_of()),
        reason=f"payload has {MIB - 4096} bytes",
    ),
    Letter(
        what="past its retention",
        attributes=carried(id_of(due=_GONE)),
        ends_in=DISPATCH,
        reason="past its retention",
    ),
    Letter(
        what="direct and past its retention",
        attributes=carried(id_of(route="d", due=_GONE)),
        ends_in=DISPATCH,
        reason="past its retention",
    ),
    Letter(
        what="due in 1970", attributes=carried(id_of(due=instant.EPOCH)), ends_in=DISPATCH, reason="past its retention"
    ),
    Letter(
        what="direct and due in an hour",
        attributes=carried(id_of(route="d")),
        ends_in=DISPATCH,
        reason="a direct job is due in over 900 s",
    ),
    Letter(
        what="direct to a queue that never was",
        attributes=carried(id_of(queue="nobody", route="d", due=SOON)),
        ends_in=DISPATCH,
        reason="NonExistentQueue",
    ),
]
# What no tick will ever look at.
LOST = [
    Letter(
        what="by the table to a queue that never was",
        attributes=carried(id_of(queue="nobody", due=SOON)),
        ends_in=DISPATCH,
        reason="nobody",
    ),
    Letter(
        what="by the table to a partition that never was",
        attributes=carried(id_of(partition="7", due=SOON)),
        ends_in=DISPATCH,
        reason="emails#7",
    ),
]
GOOD = [
    Letter(what="due soon", attributes=carried(id_of(due=SOON))),
    Letter(what="direct and due soon", attributes=carried(id_of(route="d", due=SOON))),
    Letter(what="due days ago", attributes=carried(id_of(due=NOW - timedelta(days=2)))),
    Letter(what="no JSON", body=f"not JSON {uuid.uuid4()}", attributes=carried(id_of(due=SOON))),
    Letter(what="odd characters", body=body(_ODD_CHARACTERS), attributes=carried(id_of(due=SOON))),
    Letter(what="a payload of just 256 KiB", body=body_of_bytes(PAYLOAD_LIMIT), attributes=carried(id_of(due=SOON))),
    Letter(what="an expiry in the year 9999", attributes=carried(id_of(due=SOON), "9999-12-31T23:59:59Z")),
    Letter(
        what="due days ago, with an expiry in the year 9999",
        attributes=carried(id_of(due=NOW - timedelta(days=2)), "9999-12-31T23:59:59Z"),
    ),
    Letter(
        what="eight attributes of the sender's own",
        attributes=dict(list(_OWN.items())[:8]) | carried(id_of(due=SOON)),
    ),
]


def in_batches(letters: list[Letter]) -> list[list[Letter]]:
    """Cut letters into batches that SQS takes, good and bad ones in turn."""
    cut: list[list[Letter]] = [[]]
    for letter in letters:
        full = sum(len(each.body.encode()) for each in [*cut[-1], letter]) > MIB
        if full or len(cut[-1]) == 10:
            cut.append([])
        cut[-1].append(letter)
    return cut


def entries(letters: list[Letter]) -> list[dict[str, Any]]:
    return [
        {"Id": str(index), "MessageBody": each.body, "MessageAttributes": each.attributes}
        for index, each in enumerate(letters)
    ]
