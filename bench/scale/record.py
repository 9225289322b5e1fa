"""What became of each job of a simulated partition, by its number."""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

from bench.scale.turns import START
from dueline.model import instant
from dueline.model.job import Job, JobId, Partition, Route

PARTITION = Partition(queue="emails", number=0)
EXPIRES_MS = 7 * 86_400_000
PAYLOAD = '{"to":"ann"}'
NEVER = -1.0
_START_MS = instant.epoch_ms(START)


@dataclass(kw_only=True, slots=True)
class Record:
    """When each job was due, could be seen in its queue, and whether its row is written or it was sent. Seconds."""

    partition: Partition = PARTITION
    due: "array[float]" = field(default_factory=lambda: array("d"))
    visible: "array[float]" = field(default_factory=lambda: array("d"))
    written: bytearray = field(default_factory=bytearray)
    repeats: int = 0
    early: int = 0

    def new_job(self, due: float, *, written: bool = True) -> Job:
        """Return a job that is due at a time, rounded up to the millisecond; its row is written, or yet to be."""
        number, due_ms = len(self.due), -int(-due * 1000 // 1)
        self.due.append(due_ms / 1000)
        self.visible.append(NEVER)
        self.written.append(written)
        at = instant.from_epoch_ms(_START_MS + due_ms)
        id = JobId(partition=self.partition, route=Route.TABLE, due=at, uid=f"00000000-0000-4000-8000-{number:012x}")
        return Job(id=id, payload=PAYLOAD, expires=instant.from_epoch_ms(_START_MS + due_ms + EXPIRES_MS))

    def note_written(self, id: str) -> None:
        self.written[_number(id)] = 1

    def note_sent(self, id: str, *, visible: float) -> None:
        number = _number(id)
        # A microsecond of grace: instants are told in whole ones.
        self.early += visible < self.due[number] - 1e-6
        if self.visible[number] == NEVER:
            self.visible[number] = visible
        else:
            self.repeats += 1

    def lost(self, *, due_before: float) -> int:
        """Return how many jobs are written, due before the cursor, and were not sent."""
        each = zip(self.due, self.visible, self.written, strict=True)
        return sum(due < due_before and at == NEVER and bool(written) for due, at, written in each)

    def latenesses(self, start: float, end: float, *, now: float) -> list[float]:
        """Return by how much each job was late, or is by now, that was due in a span of time, sorted."""
        pairs = zip(self.due, self.visible, strict=True)
        late = ((at if at != NEVER else now) - due for due, at in pairs if start <= due < end)
        return sorted(max(0.0, each) for each in late)

    def overdue(self, times: list[float]) -> list[int]:
        """Return how many jobs were past due and could not be seen, at each of those times."""
        due, seen = sorted(self.due), sorted(at for at in self.visible if at != NEVER)
        return [bisect_right(due, time) - bisect_right(seen, time) for time in times]


def _number(id: str) -> int:
    return int(id[-12:], 16)


def share(latenesses: list[float], *, within: float) -> float:
    """Return the share of jobs that are at most so late.

    >>> share([0.1, 0.2, 61.0, 62.0], within=60)
    0.5
    """
    return bisect_right(latenesses, within) / len(latenesses) if latenesses else 1.0
