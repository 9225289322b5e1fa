"""The rules, and what all processes share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

JOBS = "ab"
IDLE, RUNS, GONE = "idle", "runs", "gone"
# Of a fence it matters which jobs' due times it lies before; of a cursor, between which keys it lies.
BEFORE, BETWEEN, PAST = "before due", "between the two", "past due"
FIRST, LAST = "", "~"
END_OF = {BEFORE: FIRST, BETWEEN: "a~", PAST: LAST}

Steps = Iterator[tuple[str, "Store", Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What the protocol asks of ingest, then of ticks, then of cancels; each may be left out."""

    rows_then_fence: bool = True
    late_jobs_are_sent: bool = True
    unwritten_is_not_acknowledged: bool = True
    unread_fence_is_unknown: bool = True
    fence_is_consistent_for_ingest: bool = True
    fence_then_cancellations: bool = True
    unread_cancellation_is_unknown: bool = True
    sent_then_noted: bool = True
    late_path_leaves_a_note: bool = True

    lease_keeps_others_out: bool = True
    fence_then_pages: bool = True
    fence_never_falls: bool = True
    pages_are_consistent: bool = True
    settled_is_carried_over_pages: bool = True
    sent_then_checkpointed: bool = True
    checkpoint_is_conditional: bool = True
    cursor_is_a_key: bool = True
    cursor_stops_before_the_unsent: bool = True
    cursor_rests_on_jobs: bool = True
    cursor_ends_where_reading_ended: bool = True

    cancellation_then_fence: bool = True
    unread_fence_promises_nothing: bool = True
    fence_is_consistent_for_cancels: bool = True
    promise_is_noted: bool = True


class Store(NamedTuple):
    """What all processes share: the table, the inbound queue, the jobs' queue, and what the caller was told.

    `excused` are jobs of which a repeat has a cause, `repeated` those of which one came without.
    """

    rows: frozenset[str] = frozenset()
    fence: str = BEFORE
    cursor: str = FIRST
    exact: str = ""
    acknowledged: str = ""
    sent: str = ""
    excused: str = ""
    repeated: str = ""
    promised: str = ""
    taken_back: bool = False

    def put(self, kind: str, jobs: str) -> "Store":
        return self._replace(rows=self.rows | {f"{job}#{kind}" for job in jobs})

    def cancelled(self) -> str:
        return "".join(job for job in JOBS if f"{job}#cancelled" in self.rows)

    def send(self, job: str) -> "Store":
        repeated = job if job in self.sent and job not in self.excused else ""
        return self._replace(sent=union(self.sent, job), repeated=union(self.repeated, repeated))

    def excuse(self, jobs: str) -> "Store":
        return self._replace(excused=union(self.excused, jobs))

    def acknowledge(self, jobs: str) -> "Store":
        return self._replace(acknowledged=union(self.acknowledged, jobs))

    def promise(self, job: str) -> "Store":
        return self._replace(promised=union(self.promised, job))

    def promise_nothing(self, job: str) -> "Store":
        return self._replace(taken_back=job in self.promised)


def union(some: str, others: str) -> str:
    return "".join(job for job in JOBS if job in some or job in others)


def less(some: str, others: str) -> str:
    return "".join(job for job in some if job not in others)


def is_underway(processes: Any) -> bool:
    """Tell whether a process, or one of several, has begun and not ended."""
    each_process = (processes,) if hasattr(processes, "step") else processes
    return any(process.step not in (IDLE, GONE) for process in each_process)
