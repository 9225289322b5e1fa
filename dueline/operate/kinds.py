"""Kinds: dead letters by their errors, and counts of them as JSON, alike for the command line and the console."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dueline.model import instant
from dueline.operate.dead_letters import kind_of
from dueline.ports import Arrival


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """How many dead letters of one error there are, and when the oldest and the newest of them were sent."""

    error: str
    count: int
    oldest: datetime
    newest: datetime


def by_kind(arrivals: Iterable[Arrival]) -> dict[str, list[Arrival]]:
    """Return messages by their error, or what they are counted under without one."""
    kinds: dict[str, list[Arrival]] = {}
    for arrival in arrivals:
        kinds.setdefault(kind_of(arrival.message), []).append(arrival)
    return kinds


def kinds_of(letters: Mapping[str, Sequence[Arrival]]) -> tuple[Kind, ...]:
    """Return how many there are of each kind, the most frequent first."""
    sent = {error: [each.sent for each in arrivals] for error, arrivals in letters.items()}
    kinds = (Kind(error=e, count=len(at), oldest=min(at), newest=max(at)) for e, at in sent.items())
    return tuple(sorted(kinds, key=lambda kind: (-kind.count, kind.error)))


def kinds_told(kinds: Iterable[Kind]) -> list[dict[str, Any]]:
    return [
        {"error": k.error, "count": k.count, "oldest": instant.text(k.oldest), "newest": instant.text(k.newest)}
        for k in kinds
    ]


def reasons_told(counted: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"reason": reason, "count": count} for reason, count in counted.items()]
