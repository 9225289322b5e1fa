"""A sound network, and what no network can help: messages that are no good, and a queue that was deleted."""

import itertools
import json
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from dueline.model import instant
from tests.e2e.faults import repeats
from tests.e2e.faults.books import Books
from tests.e2e.faults.exchange import Answer, Exchange, Record, straight, uid_of
from tests.e2e.faults.letters import BAD, DISPATCH, GOOD, INBOUND, LOST, Letter, carried, entries, id_of, in_batches
from tests.e2e.faults.repeats import Turns
from tests.e2e.faults.stage import Play, Stage, dead_letters, described, is_ingested, staged
from tests.e2e.faults.story import Story
from tests.e2e.faults.waiting import wait_in_the_table
from tests.e2e.inbox import wait_until

BY_THE_TABLE = timedelta(seconds=29)
AGAIN_AFTER_SECONDS = 10
DEADLY_AGAIN_AFTER_SECONDS = 4
# Deployed, SQS gives up after 120 receives, three minutes apart.
MOST_RECEIVES = 2
DOOMED, *BESIDE = QUEUES = ("doomed", "emails", "invoices")
DEADLY = Letter(what="deadly", attributes=carried(id_of()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How many jobs are in each of the places in which a deleted queue's may be, and as many in each other queue."""

    jobs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Doomed:
    """The ids of the jobs of the deleted queue, by where they were, and of those `beside` them in other queues."""

    jobs: dict[str, list[str]]
    beside: list[str]

    @property
    def ids(self) -> list[str]:
        return list(itertools.chain(*self.jobs.values()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What is in the dead-letter queues, and the requests that brought it there."""

    letters: dict[str, list[dict[str, Any]]]
    records: Sequence[Record]

    def of(self, *, body: str = "", id: str = "") -> list[tuple[str, str]]:
        """Return in which dead-letter queues a message or a job is, each time with the reason."""
        return [
            (queue, attribute(letter.get("MessageAttributes", {}), "dueline-reason"))
            for queue, letters in self.letters.items()
            for letter in letters
            if letter["Body"] == body or (id and attribute(letter.get("MessageAttributes", {}), "dueline-id") == id)
        ]

    def is_once(self, found: Sequence[object], mark: str) -> bool:
        """Tell whether a message is there once, or as often as invocations that did not know of each other sent it."""
        sends = [record for record in self.records if record.queue.endswith("-dlq") and mark in record.uids]
        unheard = Turns(records=self.records).is_unheard
        return len(found) == 1 or 1 < len(found) <= len({send.turn for send in sends}) + sum(map(unheard, sends))


def attribute(attributes: dict[str, Any], name: str) -> str:
    return str(attributes.get(name, {}).get("StringValue", ""))


def live_in_calm(plan: Plan, play: Play, folder: Path) -> Story:
    """Delete a queue under its jobs, and send messages of all kinds; each is to end once where it belongs."""
    books, story = Books(), Story()
    with staged(play, folder=folder, again_after=AGAIN_AFTER_SECONDS) as stage:
        with books.receiving(stage, queues=BESIDE):
            doomed = _schedule_and_delete(plan, stage, books)
            refusal = stage.http.post(f"/queues/{DOOMED}/jobs", json={"payload": 1})
            for batch in in_batches(list(_in_turn([*BAD, *LOST], GOOD))):
                _send(stage, batch)
            story.expect(wait_until(lambda: _is_settled(stage, books, doomed)), "the letters are not where they belong")
            died = _meet_the_deadly(stage)
        found = Found(letters=dead_letters(stage), records=list(stage.proxy.records))
        _expect_of_the_deleted_queue(story, found, doomed, refusal)
        _expect_of_those_beside(story, books, found, doomed)
        _expect_of_letters(story, books, found)
        story.expect(1 <= died <= MOST_RECEIVES, f"a message that kills ingest was met {died} times")
        story.expect(found.of(body=DEADLY.body) == [(INBOUND, "")], "SQS did not set the deadly message aside")
        _expect_nothing_else(story, found, {*doomed.ids, *books.accepted})
        story.told += "\n".join(map(stage.story_of, doomed.ids[:3])) if story.complaints else ""
    story.figures = {"jobs of a deleted queue": len(doomed.ids), "messages of all kinds": len([*BAD, *LOST, *GOOD])}
    return story


def _expect_of_the_deleted_queue(story: Story, found: Found, doomed: Doomed, refusal: httpx.Response) -> None:
    for where, ids in doomed.jobs.items():
        for id in ids:
            there = found.of(id=id)
            story.expect(found.is_once(there, uid_of(id)), f"{where}: {id} is parked {len(there)} times")
            is_told = all(queue == DISPATCH and "NonExistentQueue" in reason for queue, reason in there)
            story.expect(is_told, f"{where}: {id} is parked as {there}")
    is_told = refusal.status_code == httpx.codes.NOT_FOUND and "deleted" in refusal.json()["detail"]
    story.expect(is_told, f"a caller is told of a deleted queue: {refusal.status_code} {refusal.text}")


def _expect_of_those_beside(story: Story, books: Books, found: Found, doomed: Doomed) -> None:
    missing = set(doomed.beside) - books.times.keys()
    story.expect(not missing, f"{len(missing)} jobs of other queues did not arrive")
    story.expect(not books.early, f"early: {books.early}")
    riddles = repeats.unexplained(books, found.records)
    story.expect(not riddles, f"arrived more than once for no cause: {riddles}")


def _expect_of_letters(story: Story, books: Books, found: Found) -> None:
    for letter in [*BAD, *LOST]:
        there = found.of(body=letter.body)
        story.expect(found.is_once(there, letter.mark), f"{letter.what}: it is parked {len(there)} times")
        is_told = all(queue == letter.ends_in and letter.reason in reason for queue, reason in there)
        story.expect(is_told, f"{letter.what}: it is parked as {there}, not in {letter.ends_in} of {letter.reason!r}")
    for letter in GOOD:
        id = attribute(letter.attributes, "dueline-id")
        bodies = {landed.payload for landed in books.landed if landed.id == id}
        story.expect(bodies == {letter.body}, f"{letter.what}: it arrived as {bodies}")
        story.expect(not found.of(body=letter.body), f"{letter.what}: it is parked")


def _expect_nothing_else(story: Story, found: Found, jobs: Set[str]) -> None:
    known = {letter.body for letter in [*BAD, *LOST, DEADLY]}
    others = {
        name: unknown
        for name, letters in found.letters.items()
        if (unknown := [each for each in letters if each["Body"] not in known and _id_of(each) not in jobs])
    }
    story.expect(not others, f"something else is parked: {described(others)}")


def _id_of(letter: dict[str, Any]) -> str:
    return attribute(letter.get("MessageAttributes", {}), "dueline-id")


def _schedule_and_delete(plan: Plan, stage: Stage, books: Books) -> Doomed:
    """Delete a queue while jobs for it are in the table, on their way there, and on the late path."""
    now = datetime.now(UTC)
    waiting = wait_in_the_table(
        stage,
        lambda lead: [id for queue in QUEUES for id in _schedule(plan, stage, books, queue, datetime.now(UTC) + lead)],
        lead=BY_THE_TABLE,
    )
    in_table = [id for id in waiting if id.startswith(f"{DOOMED}.")]
    in_ingest = _schedule(plan, stage, books, DOOMED, datetime.now(UTC) + BY_THE_TABLE)
    stage.emulator.client("sqs").delete_queue(QueueUrl=stage.endpoints.queues[DOOMED])
    stage.proxy.around = straight
    late = [Letter(what="late", attributes=carried(id_of(queue=DOOMED, due=now))) for _ in range(plan.jobs)]
    for batch in in_batches(late):
        _send(stage, batch)
    ids_of_late = [attribute(each.attributes, "dueline-id") for each in late]
    jobs = {"in the table": in_table, "in ingest": in_ingest, "late": ids_of_late}
    return Doomed(jobs=jobs, beside=[id for id in waiting if id not in in_table])


def _schedule(plan: Plan, stage: Stage, books: Books, queue: str, due: datetime) -> list[str]:
    return books.schedule(stage.http, queue, [{"payload": n, "at": instant.text(due)} for n in range(plan.jobs)])


def _send(stage: Stage, letters: list[Letter]) -> None:
    answer = stage.emulator.client("sqs").send_message_batch(
        QueueUrl=stage.endpoints.inbound_url, Entries=entries(letters)
    )
    assert "Failed" not in answer or not answer["Failed"], answer["Failed"]


def _in_turn(bad: list[Letter], good: list[Letter]) -> Iterator[Letter]:
    pairs = itertools.zip_longest(bad, good)
    return (letter for pair in pairs for letter in pair if letter is not None)


def _is_settled(stage: Stage, books: Books, doomed: Doomed) -> bool:
    good = {attribute(each.attributes, "dueline-id") for each in GOOD}
    parked = {uid for record in list(stage.proxy.records) if record.queue.endswith("-dlq") for uid in record.sent}
    has_arrived = good | set(doomed.beside) <= books.times.keys()
    return has_arrived and set(map(uid_of, doomed.ids)) <= parked and is_ingested(stage)


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
    wait_until(lambda: _parked(stage) > parked)
    return len(deaths)
