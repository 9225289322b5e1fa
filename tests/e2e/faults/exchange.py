"""A request of a function to AWS, what is done to it on its way, and what is kept of it."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.faults.processes import Process

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


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
    """One request on its way. `turn` is the same for all requests of one invocation, and no other's.

    The system does not always tell whose `process` it is."""

    operation: str
    body: bytes
    process: Process | None
    turn: str
    carry: Callable[[bytes], Answer]
    mishap: str = ""
    at: float = field(default_factory=time.time)
    answers: list[Answer] = field(default_factory=list)

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
            function=self.process.function if self.process else "",
            turn=self.turn,
            operation=self.operation,
            mishap=self.mishap,
            statuses=tuple(answer.status for answer in self.answers),
            uids=frozenset(_UID.findall(self.body.decode())),
            queue=_queue(self),
            sent=tuple(uid for answer in self.answers for uid in _sent(self, answer)),
        )


# None: the connection is closed without an answer.
Around = Callable[[Exchange], Answer | None]


def straight(exchange: Exchange) -> Answer | None:
    return exchange.pass_on()


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What is kept of an exchange: `uids` are the jobs that it speaks of, `sent` those that it brought to `queue`."""

    at: float
    seconds: float
    function: str
    turn: str
    operation: str
    mishap: str
    statuses: tuple[int, ...]
    uids: frozenset[str]
    queue: str
    sent: tuple[str, ...]

    def __str__(self) -> str:
        took = " ".join(map(str, self.statuses)) or "never arrived"
        who, seconds = f"{self.function:<6} {self.turn[-8:]}", f"{self.seconds:.3f} s"
        return f"{self.at:.3f} {who} {self.operation:<16} {took} {seconds} {self.mishap}"


def uid_of(id: str) -> str:
    return id.rpartition(".")[2]


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
