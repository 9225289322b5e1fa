"""The locks of a queue's schedules in memory."""

from datetime import datetime
from threading import Lock


class MemoryLocks:
    """The locks of one queue's schedules: which job has each, and until when. Threads may share it."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, datetime]] = {}
        self._changing = Lock()

    def take(self, schedule: str, *, job: str, now: datetime, until: datetime) -> bool:
        with self._changing:
            holder, end = self.held.get(schedule, (job, now))
            may = holder == job or end <= now
            if may:
                self.held[schedule] = job, until
        return may

    def renew(self, schedule: str, *, job: str, until: datetime) -> bool:
        with self._changing:
            is_ours = self.held.get(schedule, ("", until))[0] == job
            if is_ours:
                self.held[schedule] = job, until
        return is_ours

    def free(self, schedule: str, *, job: str) -> None:
        with self._changing:
            if self.held.get(schedule, ("", None))[0] == job:
                del self.held[schedule]
