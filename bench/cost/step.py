"""A step of a job's way, as it was counted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.cost.exchange import Exchange

# What CloudWatch Logs charges of each event besides its text:
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html
LOG_EVENT_BYTES = 26


class NotAsCharged(RuntimeError):
    """What the engine says it charges is not what follows from the sizes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One invocation or call that takes so many jobs a step further.

    `calls` are requests by operation, `items` what they carried, `writes` and `reads` DynamoDB's units, of which
    `state_writes` and `state_reads` are the state table's, `sent` and `grouped` what SQS charges as requests, and those
    of them whose messages have a group. `logged` are the bytes and `lines` the lines that a function wrote.
    `cpu_seconds` is the CPU time of its process.
    """

    jobs: int
    calls: Mapping[str, int] = field(default_factory=dict)
    items: Mapping[str, int] = field(default_factory=dict)
    bytes_out: int = 0
    bytes_in: int = 0
    writes: float = 0.0
    reads: float = 0.0
    state_writes: float = 0.0
    state_reads: float = 0.0
    sent: int = 0
    grouped: int = 0
    logged: int = 0
    lines: int = 0
    cpu_seconds: float = 0.0

    @property
    def charged_log_bytes(self) -> int:
        """The bytes that CloudWatch charges of what the function wrote."""
        return self.logged + self.lines * LOG_EVENT_BYTES


def step_of(exchanges: Sequence[Exchange], *, jobs: int, log: str = "", cpu_seconds: float = 0.0) -> Step:
    """Return what exchanges come to. Raises NotAsCharged where units are not those that follow from the sizes."""
    items, of_state = Counter[str](), [each for each in exchanges if each.is_of_state]
    for each in exchanges:
        _hold_to_sizes(each)
        items[each.operation] += each.items
    return Step(
        jobs=jobs,
        calls=dict(Counter(each.operation for each in exchanges)),
        items=dict(items),
        bytes_out=sum(len(each.asked) for each in exchanges),
        bytes_in=sum(each.answer_bytes for each in exchanges),
        writes=sum(each.writes for each in exchanges),
        reads=sum(each.reads for each in exchanges),
        state_writes=sum(each.writes for each in of_state),
        state_reads=sum(each.reads for each in of_state),
        **_of_sqs(exchanges),
        logged=len(log.encode()),
        lines=len(log.splitlines()),
        cpu_seconds=cpu_seconds,
    )


def _of_sqs(exchanges: Sequence[Exchange]) -> dict[str, int]:
    return {
        "sent": sum(each.charged_requests for each in exchanges),
        "grouped": sum(each.charged_requests for each in exchanges if each.is_grouped),
    }


def _hold_to_sizes(exchange: Exchange) -> None:
    by_size, charged = exchange.units_by_size, exchange.writes or exchange.reads
    if by_size is not None and by_size != charged:
        raise NotAsCharged(f"{exchange.operation}: the engine charges {charged} units, by size they are {by_size}")
