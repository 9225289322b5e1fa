"""A sound network, and what no network can help: messages that are no good, and a queue that was deleted."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from dueline import instant
from tests.e2e.faults.books import Books
from tests.e2e.faults.exchange import Answer, Exchange, straight, uid_of
from tests.e2e.faults.letters import BAD, GOOD, LOST, Letter, carried, entries, id_of, in_batches
from tests.e2e.faults.mishaps import writes_throttled
from tests.e2e.faults.stage import Play, Stage, dead_letters, is_ingested, staged
from tests.e2e.inbox import wait_until

JOBS = 10
BY_THE_TABLE = timedelta(seconds=25)
INGESTED_WITHIN_SECONDS = 15
ENOUGH_SECONDS = 180
AGAIN_AFTER_SECONDS = 10
# Deployed, SQS gives up after 120 receives, three minutes apart.
MOST_RECEIVES = 2
DEADLY_AGAIN_AFTER_SECONDS = 5
DEADLY = Letter(what="deadly", attributes=carried(id_of()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Calm:
    """What came of it. `doomed` are the ids of the jobs of the deleted queue, by where they were; `died` counts how
    often the deadly message killed its function."""

    books: Books
    doomed: dict[str, list[str]]
    beside: list[str]
    refusal: httpx.Response
    died: int
    letters: dict[str, list[dict[str, Any]]]
    told: str

    def found(self, *, body: str = "", id: str = "") -> list[tuple[str, str]]:
        """Return in which dead-letter queues a message or a job is, each time with the reason."""
        return [
            (queue, attribute(letter.get("MessageAttributes", {}), "dueline-reason"))
            for queue, letters in self.letters.items()
            for letter in letters
            if letter["Body"] == body or (id and attribute(letter.get("MessageAttributes", {}), "dueline-id") == id)
        ]


def attribute(attributes: dict[str, Any], name: str) -> str:
    return str(attributes.get(name, {}).get("StringValue", ""))


def live_in_calm(play: Play, folder: Path) -> Calm:
    books = Books()
    with staged(play, folder=folder, again_after=AGAIN_AFTER_SECONDS) as stage:
        with books.receiving(stage, queues=["emails", "invoices"]):
            doomed, beside = _schedule_and_delete(stage, books)
            refusal = stage.http.post("/queues/doomed/jobs", json={"payload": 1})
            for batch in in_batches(list(_in_turn([*BAD, *LOST], GOOD))):
                _send(stage, batch)
            settled = wait_until(lambda: _is_settled(stage, books, doomed, beside), seconds=ENOUGH_SECONDS)
            assert settled, "the letters are not where they belong: see the log of the emulator"
            died = _meet_the_deadly(stage)
        return Calm(
            books=books,
            doomed=doomed,
            beside=beside,
            refusal=refusal,
            died=died,
            letters=dead_letters(stage),
            told="\n".join(map(stage.story_of, [*beside, *itertools.chain(*doomed.values())])),
        )


def _schedule_and_delete(stage: Stage, books: Books) -> tuple[dict[str, list[str]], list[str]]:
    """Delete a queue while jobs for it are in the table, on their way there, and on the late path."""
    now = datetime.now(UTC)
    in_table = _schedule(stage, books, "doomed", now + BY_THE_TABLE)
    beside = [id for queue in ("emails", "invoices") for id in _schedule(stage, books, queue, now + BY_THE_TABLE)]
    assert wait_until(lambda: is_ingested(stage), seconds=INGESTED_WITHIN_SECONDS), "ingest took too long"
    stage.proxy.around = writes_throttled
    in_ingest = _schedule(stage, books, "doomed", datetime.now(UTC) + BY_THE_TABLE)
    stage.emulator.client("sqs").delete_queue(QueueUrl=stage.endpoints.queues["doomed"])
    stage.proxy.around = straight
    late = [Letter(what="late", attributes=carried(id_of(queue="doomed", due=now))) for _ in range(JOBS)]
    _send(stage, late)
    ids_of_late = [attribute(each.attributes, "dueline-id") for each in late]
    return {"in the table": in_table, "in ingest": in_ingest, "late": ids_of_late}, beside


def _schedule(stage: Stage, books: Books, queue: str, due: datetime) -> list[str]:
    return books.schedule(stage.http, queue, [{"payload": n, "at": instant.text(due)} for n in range(JOBS)])


def _send(stage: Stage, letters: list[Letter]) -> None:
    answer = stage.emulator.client("sqs").send_message_batch(
        QueueUrl=stage.endpoints.inbound_url, Entries=entries(letters)
    )
    assert "Failed" not in answer or not answer["Failed"], answer["Failed"]


def _in_turn(bad: list[Letter], good: list[Letter]) -> Iterator[Letter]:
    pairs = itertools.zip_longest(bad, good)
    return (letter for pair in pairs for letter in pair if letter is not None)


def _is_settled(stage: Stage, books: Books, doomed: dict[str, list[str]], beside: list[str]) -> bool:
    good = {attribute(each.attributes, "dueline-id") for each in GOOD}
    parked = {uid for record in list(stage.proxy.records) if record.queue.endswith("-dlq") for uid in record.sent}
    gone = set(itertools.chain(*doomed.values()))
    return good | set(beside) <= books.times.keys() and set(map(uid_of, gone)) <= parked and is_ingested(stage)


def _parked(stage: Stage) -> int:
    """Return how many messages are in the dead-letter queues."""
    count, sqs = "ApproximateNumberOfMessages", stage.emulator.client("sqs")
    asked = (
        sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[count])
        for url in stage.endpoints.dead_letter_queues.values()
    )
    return sum(int(answer["Attributes"][count]) for answer in asked)


def _meet_the_deadly(stage: Stage) -> int:
    """Send a message that kills its function whenever it is met, until SQS gives up; return how often it was."""
    deaths: list[int] = []

    def die(exchange: Exchange) -> Answer | None:
        if uid_of(attribute(DEADLY.attributes, "dueline-id")).encode() not in exchange.body:
            return exchange.pass_on()
        if exchange.process:  # else it asks again
            deaths.append(exchange.process.pid)
            exchange.process.kill()
        return None

    sqs, url = stage.emulator.client("sqs"), stage.endpoints.inbound_url
    policy = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])["Attributes"]["RedrivePolicy"]
    limited = json.dumps(json.loads(policy) | {"maxReceiveCount": MOST_RECEIVES})
    limits = {"RedrivePolicy": limited, "VisibilityTimeout": str(DEADLY_AGAIN_AFTER_SECONDS)}
    sqs.set_queue_attributes(QueueUrl=url, Attributes=limits)
    stage.proxy.around, parked = die, _parked(stage)
    _send(stage, [DEADLY])
    wait_until(lambda: _parked(stage) > parked, seconds=ENOUGH_SECONDS)
    return len(deaths)
