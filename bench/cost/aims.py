"""What a million jobs are to cost, and why they cost more where they do."""

from collections.abc import Mapping
from typing import Any

from bench.cost.bill import ROW_OVERHEAD_BYTES, TTL_DAYS
from bench.cost.figures import (
    CHEAPEST,
    DIRECT_ONE,
    HTTP_IN_CALLS,
    HTTP_ONE_BY_ONE,
    HTTP_SINGLY,
    IN_TENS,
    KEYED,
    LINGER,
    OF_JSON,
    OURS,
    PROVISIONED,
    ratios,
)
from bench.cost.payloads import JSON, RETENTION, USUAL
from bench.cost.plan import HIGH
from bench.cost.ways import total
from bench.part import Target

_SHOWN_LINES = 4


def targets(told: Mapping[str, Any]) -> tuple[Target, ...]:
    """Return what the figures are to reach, those first of which it is known what they were before."""
    return (*_by_way(told), *_by_wait(told), *_against_others(told))


def _by_way(told: Mapping[str, Any]) -> tuple[Target, ...]:
    """Return the targets of jobs of 1 KB that wait a day."""
    bills, ways = told["bills"], {name: prices[USUAL.name] for name, prices in told["by_way"].items()}
    http = _why(bills[HTTP_SINGLY])
    provisioned = told["by_rate"][str(HIGH)][PROVISIONED]
    return (
        _dollars("direct client, one by one", ways[DIRECT_ONE], 1.05, before=1.48, why=_one_fence(ways)),
        _dollars("direct client, in tens", ways[IN_TENS], 0.90, before=1.03, why=_why(bills[OURS])),
        _dollars("HTTP, one by one, by the library", total(bills[HTTP_SINGLY]), 2.50, before=4.96, why=http),
        _dollars("the same with the caller's key", ways[KEYED], 3.75, before=4.96, why=_two_writes(ways)),
        _dollars("HTTP, 100 a call", total(bills[HTTP_IN_CALLS]), 0.95, before=2.46, why=_why(bills[HTTP_IN_CALLS])),
        _dollars(LINGER, ways[LINGER], 1.30, before=4.96, why=f"a request carries {told['together']} jobs; {http}"),
        _dollars("in tens, provisioned at 70 %", provisioned, 0.50, before=0.64, why=_why(bills[PROVISIONED])),
    )


def _by_wait(told: Mapping[str, Any]) -> tuple[Target, ...]:
    """Return the targets of a JSON payload that waits long."""
    waits, bytes = told["by_wait"], told["row_bytes"][JSON.name] + ROW_OVERHEAD_BYTES
    days = f"its row of {bytes - ROW_OVERHEAD_BYTES} B and DynamoDB's {ROW_OVERHEAD_BYTES} B"
    why = f"{days} are kept for the wait, {RETENTION.days} days' retention and {TTL_DAYS} until TTL takes them"
    return (
        _dollars("30 days' wait, JSON payload, in tens", waits["30"][OF_JSON], 1.10, before=1.50, why=why),
        _dollars("180 days' wait, the same", waits["180"][OF_JSON], 2.50, before=3.96, why=why),
        _dollars("180 days, infrequent, no recovery", waits["180"][CHEAPEST], 1.30, before=3.96, why=why),
    )


def _against_others(told: Mapping[str, Any]) -> tuple[Target, ...]:
    bounds = {"of Dynein as coded": 0.40, "of Dynein batched": 0.50, "of EventBridge Scheduler": 0.75}
    share, why = ratios(told), _why(told["bills"][OURS])
    return tuple(
        Target(what=f"cost in tens, {other}", got=share[other], bound=bound, why=why) for other, bound in bounds.items()
    )


def _dollars(what: str, got: float, bound: float, *, before: float, why: str) -> Target:
    # To the cent, as the tables have it: a tenth of a cent more is no price.
    return Target(what=f"$ a million jobs: {what}", got=round(got, 2), bound=bound, unit=" $", before=before, why=why)


def _one_fence(ways: Mapping[str, float]) -> str:
    return f"${ways[DIRECT_ONE] - ways[IN_TENS]:.2f} more than in tens, for each job reads a fence of its own"


def _two_writes(ways: Mapping[str, float]) -> str:
    more = f"${ways[KEYED] - ways[HTTP_ONE_BY_ONE]:.2f} on ${ways[HTTP_ONE_BY_ONE]:.2f} without it"
    return f"the key is two writes and their time in Lambda, {more}"


def _why(bill: Mapping[str, float]) -> str:
    """Say what the largest lines of a bill are."""
    largest = sorted(bill.items(), key=lambda line: -line[1])[:_SHOWN_LINES]
    return "of it " + ", ".join(f"${amount:.2f} {name}" for name, amount in largest)
