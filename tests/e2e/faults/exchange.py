"""A request of a function to AWS, what is done to it on its way, and what is kept of it."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dueline.model.rows import STATE
from tests.e2e.faults.processes import Process, Told

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_JOB_ROW, _NOTE = (re.compile(f'({UUID.pattern})#{row}"') for row in ("job", "handled"))
_PUTS = {"PutItem", "BatchWriteItem", "TransactWriteItems"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What AWS answers, or what is answered in its name."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, told: dict[str, Any], *, status: int = 200, headers: dict[str, str] | None = None) -> "Answer":
        return cls(status=status, body=json.dumps(told).encode(), headers=headers or {})

    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.body or b"{}")
        return told


@dataclass(kw_only=True, slots=True)
class Exchange:
    """One request on its way."""

    operation: str
    body: bytes
    told: Told
    carry: Callable[[bytes], Answer]
    mishap: str = ""
    at: float = field(default_factory=time.time)
    answers: list[Answer] = field(default_factory=list)

    @property
    def process(self) -> Process:
        return self.told.process

    @property
    def turn(self) -> str:
        return self.told.turn

    def pass_on(self, asked: dict[str, Any] | None = None) -> Answer:
        """Let the request, or another in its place, take effect; return AWS's answer."""
        self.answers.append(self.carry(self.body if asked is None else json.dumps(asked).encode()))
        return self.answers[-1]

    def asked(self) -> dict[str, Any]:
        asked: dict[str, Any] = json.loads(self.body)
        return asked

    def record(self) -> "Record":
        return Record(
            at=self.at,
            seconds=time.time() - self.at,
            told=self.told,
            operation=self.operation,
            mishap=self.mishap,
            statuses=tuple(answer.status for answer in self.answers),
            uids=frozenset(UUID.findall(self.body.decode())),
            rows=_put_by(self, _JOB_ROW),
            notes=_put_by(self, _NOTE),
            queue=_queue(self),
            sent=tuple(uid for answer in self.answers for uid in _sent(self, answer)),
            state=_state(self),
        )


# None: the connection is closed without an answer.
Around = Callable[[Exchange], Answer | None]


def straight(exchange: Exchange) -> Answer | None:
    return exchange.pass_on()


@dataclass(frozen=True, kw_only=True, slots=True)
class StateChange:
    """What a tick asks of its partition's state: to take the lease, or to move the cursor. Instants are texts.

    `lease` is when it is to end, empty when it is given back; `now` and `cursor` are empty where none is named.
    """

    partition: str
    now: str
    lease: str
    cursor: str

    @property
    def is_take(self) -> bool:
        return not self.cursor


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What is kept of an exchange.

    `uids` are the jobs that it speaks of, `rows` those whose rows it puts, `notes` those that it notes as sent, and
    `sent` those that it brought to `queue`.
    """

    at: float
    seconds: float
    told: Told
    operation: str
    mishap: str
    statuses: tuple[int, ...]
    uids: frozenset[str]
    rows: frozenset[str]
    notes: frozenset[str]
    queue: str
    sent: tuple[str, ...]
    state: StateChange | None

    @property
    def function(self) -> str:
        return self.told.process.function

    @property
    def turn(self) -> str:
        return self.told.turn

    @property
    def delivered(self) -> tuple[str, ...]:
        """The jobs that it brought to a team's queue, whose names alone have a `_`."""
        return self.sent if "_" in self.queue else ()

    @property
    def had_effect(self) -> bool:
        return 200 in self.statuses

    def submits(self, uid: str) -> bool:
        """Tell whether it took a job to a table or a queue."""
        return uid in self.sent or (self.had_effect and uid in self.rows)

    def __str__(self) -> str:
        took = " ".join(map(str, self.statuses)) or "never arrived"
        who, seconds = f"{self.function:<6} {self.turn[-8:]}", f"{self.seconds:.3f} s"
        return f"{self.at:.3f} {who} {self.operation:<16} {took} {seconds} {self.mishap}"


def uid_of(id: str) -> str:
    return id.rpartition(".")[2]


def _put_by(exchange: Exchange, row: re.Pattern[str]) -> frozenset[str]:
    return frozenset(row.findall(exchange.body.decode()) if exchange.operation in _PUTS else ())


def _queue(exchange: Exchange) -> str:
    is_send = exchange.operation.startswith("SendMessage")
    return str(exchange.asked()["QueueUrl"]).rpartition("/")[2] if is_send else ""


def _sent(exchange: Exchange, answer: Answer) -> list[str]:
    if exchange.operation != "SendMessageBatch" or answer.status != 200:
        return []
    accepted = {each["Id"] for each in answer.told()["Successful"]}
    entries = (entry for entry in exchange.asked()["Entries"] if entry["Id"] in accepted)
    ids = (entry["MessageAttributes"].get("dueline-id", {}).get("StringValue", "") for entry in entries)
    return [uid_of(id) for id in ids]


def _state(exchange: Exchange) -> StateChange | None:
    if exchange.operation != "UpdateItem":
        return None
    asked = exchange.asked()
    if asked["Key"]["sk"]["S"] != STATE:
        return None
    values = {name: value.get("S", "") for name, value in asked["ExpressionAttributeValues"].items()}
    return StateChange(
        partition=asked["Key"]["pk"]["S"],
        now=values.get(":now", ""),
        lease=values.get(":lease", ""),
        cursor=values.get(":cursor", ""),
    )
