"""Line names: by what the job of a line is one job, however often it is tried: an id, or an idempotency key."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from dueline.cli.import_ids import ImportIds
from dueline.model import instant
from dueline.model.job import Route


class LineNames(Protocol):
    """Names the lines of a run."""

    def of(self, line: int) -> Mapping[str, Any]:
        """Return what a line's job is asked with: its name, and when it is due."""

    @property
    def told(self) -> Mapping[str, str]:
        """What tells all names to a machine."""

    @property
    def options(self) -> Mapping[str, str | None]:
        """The options with which a later command names the lines as this one did, and has them due as asked."""

    @property
    def again(self) -> str:
        """What to say of that command."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ByIds:
    """Ids: free, and known to the table until the job is due. To SQS, what comes again is another message."""

    queue: str
    ids: ImportIds

    def of(self, line: int) -> Mapping[str, Any]:
        return {"id": str(self.ids.id(self.queue, line))}

    @property
    def told(self) -> Mapping[str, str]:
        return {"run": str(self.ids)}

    @property
    def options(self) -> Mapping[str, str | None]:
        return {"--run": str(self.ids)}

    @property
    def again(self) -> str:
        if self.ids.route is Route.DIRECT:
            return "to go on, though a line that was scheduled all the same comes twice"
        # A tick hands a job to SQS up to its lookahead before that is due.
        return f"to go on, with none scheduled twice until some minutes before {instant.text(self.ids.due)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ByKeys:
    """Idempotency keys: `{key}-7` is that of line 7. Two writes more a job, and remembered for the retention."""

    key: str
    at: datetime | None = None
    delay: timedelta | None = None

    def of(self, line: int) -> Mapping[str, Any]:
        return {"key": f"{self.key}-{line}", "at": self.at, "delay": self.delay}

    @property
    def told(self) -> Mapping[str, str]:
        return {"key": self.key}

    @property
    def options(self) -> Mapping[str, str | None]:
        return {
            "--key": self.key,
            "--at": None if self.at is None else instant.text(instant.round_up(self.at)),
            "--delay": None if self.delay is None else f"{self.delay.total_seconds():.3f}".rstrip("0").rstrip("."),
        }

    @property
    def again(self) -> str:
        return "to go on, with none scheduled twice"
