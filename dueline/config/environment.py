"""The environment variables of the functions: written by the stacks, read by the functions, defined here once."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Self

from dueline import __version__
from dueline.core.message import OLDEST_SCHEMA, SCHEMA
from dueline.core.partitions import MOST_LOOKAHEAD

# For direct clients, the latest schema that the functions read and the earliest that they accept; for `dueline doctor`,
# the deployed version.
PUBLISHED_SCHEMAS: Mapping[str, int | str] = {"schema": SCHEMA, "oldest_schema": OLDEST_SCHEMA, "version": __version__}
_PREFIX = "DUELINE_"
_LONGEST_SEND_PER_LEASE = 3
# Until the planner's queue brings a step again that could not be done yet.
LONGEST_HIDDEN_SECONDS = 60


def checked_lookahead(seconds: int) -> timedelta:
    """Return a lookahead. Raises ValueError for one with which FAR would not be far."""
    if not 1 <= seconds <= MOST_LOOKAHEAD.total_seconds():
        allowed = f"it must be from 1 to {MOST_LOOKAHEAD.total_seconds():.0f} seconds"
        raise ValueError(f"lookahead is {seconds}: {allowed}")
    return timedelta(seconds=seconds)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What all functions need to know, and all that ingest does. Periods are in seconds.

    `queue_urls` is what the URLs of queues begin with.
    """

    deployment: str
    queue_urls: str

    def to_env(self) -> dict[str, str]:
        return {_PREFIX + field.name.upper(): str(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Return the settings of this process. Raises KeyError, naming the variable, when one is missing."""
        values = {field: env[_PREFIX + field.name.upper()] for field in fields(cls)}
        typed: dict[str, Any] = {
            field.name: int(value) if field.type is int else value for field, value in values.items()
        }
        return cls(**typed)


@dataclass(frozen=True, kw_only=True, slots=True)
class PeriodSettings(Settings):
    """What the planner needs to know."""

    tick_period: int


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchSettings(PeriodSettings):
    """What the watch needs to know: what the ARNs of topics begin with, and where runbooks are."""

    topics: str
    runbook_url: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TickSettings(PeriodSettings):
    """What a tick needs to know."""

    lookahead: int
    lease: int

    def __post_init__(self) -> None:
        checked_lookahead(self.lookahead)


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiSettings(Settings):
    """What the HTTP API needs to know; `payloads` is the bucket of what is too large for messages and rows.

    Direct clients read it as the stack publishes it. Never add a field: those of versions before take no other.
    """

    payloads: str
    direct_horizon: int
    lookahead: int

    def __post_init__(self) -> None:
        checked_lookahead(self.lookahead)


def longest_send(lease: int) -> timedelta:
    """Return the longest that one request may take under a lease of so many seconds, its retry included."""
    return timedelta(seconds=lease / _LONGEST_SEND_PER_LEASE)
