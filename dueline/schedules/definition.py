"""What a schedule is: when it runs, and of what its runs are made."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from dueline.errors import InvalidSchedule
from dueline.model import instant
from dueline.model.job import MAX_PAYLOAD_BYTES, check_priority, check_tenant
from dueline.model.nominal import SCHEDULE_NAME
from dueline.model.packing import pack
from dueline.model.text import shown
from dueline.schedules.rule import Rule

MAX_PACKED_BYTES = 8 * 1024
MAX_LABEL_CHARACTERS = 200


class CatchUp(StrEnum):
    """What becomes of runs that were missed: the latest is made, none, or all, the last 100 within a day."""

    LATEST = "latest"
    NONE = "none"
    ALL = "all"


class Overlap(StrEnum):
    """Whether a run begins while an earlier one of its schedule is under way, or is skipped."""

    ALLOW = "allow"
    SKIP = "skip"


@dataclass(frozen=True, kw_only=True)
class Definition:
    """What a schedule is. Each run has the same payload, which is JSON text, tenant and priority.

    All runs are later than their nominals by the same part of `jitter`, which is in whole seconds. `owner` says who
    declared the schedule, `description` what it is for. Raises InvalidSchedule, which names the field.
    """

    rule: Rule
    payload: str = "null"
    tenant: str | None = None
    priority: int = 1
    jitter: timedelta = timedelta(0)
    catch_up: CatchUp = CatchUp.LATEST
    overlap: Overlap = Overlap.ALLOW
    owner: str | None = None
    description: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as JSON has it, without what is as by default."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "Definition":
        """Return the definition that `to_dict` wrote, or that a caller did. Raises InvalidSchedule."""
        raise NotImplementedError


def checked_name(name: object) -> str:
    """Return a schedule's name. Raises InvalidSchedule unless it has 1 to 64 of a-z, A-Z, 0-9, -, _ and ."""
    raise NotImplementedError
