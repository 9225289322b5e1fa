"""What arrived, held against what was sent: payloads, those that are kept in S3 too."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from dueline.model.pointer import Pointer
from local.consumer import consuming
from tests.e2e.faults.books import Books
from tests.e2e.faults.exchange import uid_of
from tests.e2e.faults.stage import Stage


@contextmanager
def receiving(stage: Stage, books: Books, levels: Mapping[str, int]) -> Iterator[None]:
    """Write down all that arrives in each of the levels of some queues, while the context lasts."""
    sqs, names = stage.emulator.client("sqs"), stage.deployment.names
    with ExitStack() as stack:
        for queue, most in levels.items():
            for priority in range(1, most + 1):
                url = sqs.get_queue_url(QueueName=names.queue(queue, priority))["QueueUrl"]
                stack.enter_context(consuming(stage.emulator, url, books.landed.append))
        yield


def wrong_payloads(stage: Stage, books: Books, payloads: Mapping[str, str]) -> list[str]:
    """Return the jobs that arrived with another payload than theirs, or a pointer to none. A moved job has its own."""
    moved = {move.uid: uid_of(id) for id, move in books.moves.items()}
    wrong = []
    for landed in books.landed:
        uid = uid_of(landed.id)
        while uid not in payloads and uid in moved:
            uid = moved[uid]
        if payloads.get(uid) != _payload(stage, landed.payload):
            wrong.append(landed.id)
    return wrong


def offloaded(books: Books) -> int:
    return sum(_pointer(landed.payload) is not None for landed in books.landed)


def _pointer(body: str) -> Pointer | None:
    with suppress(ValueError):
        return Pointer.parse(body)
    return None


def _payload(stage: Stage, body: str) -> str:
    pointer = _pointer(body)
    if pointer is None:
        return body
    answer = stage.emulator.client("s3").get_object(Bucket=pointer.bucket, Key=pointer.key)
    return str(answer["Body"].read().decode())
