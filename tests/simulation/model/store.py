"""The rules, and what all processes share."""

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

JOBS = "ab"
# Of a fence it matters which jobs' due times it lies before; of a cursor, between which keys it lies.
BEFORE, BETWEEN, PAST = "before due", "between the two", "past due"
FIRST, LAST = "", "~"
END_OF = {BEFORE: FIRST, BETWEEN: "a~", PAST: LAST}


def rule(breaks: str, world: str = "") -> Any:
    """Return a rule's field, with the promise that is broken without it, and the world where it is, if not in any."""
    return field(default=True, metadata={"breaks": breaks, "world": world})


def broken_without(rules: Any) -> dict[str, tuple[str, str]]:
    """Return the promise that is broken without each of the rules that a class adds, and in which world."""
    inherited = {each.name for each in fields(Rules)} if rules is not Rules else set[str]()
    own = [each for each in fields(rules) if each.name not in inherited]
    return {each.name: (each.metadata["breaks"], each.metadata["world"]) for each in own}


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What the protocol requires of ingest, then of ticks, then of cancels; each may be left out."""

    rows_then_fence: bool = rule("never lost")
    late_jobs_are_sent: bool = rule("never lost")
    unwritten_is_not_acknowledged: bool = rule("never lost")
    unread_fence_is_unknown: bool = rule("never lost")
    fence_is_consistent_for_ingest: bool = rule("never lost")
    fence_then_cancellations: bool = rule("exact cancel")
    unread_cancellation_is_unknown: bool = rule("exact cancel")
    sent_then_noted: bool = rule("never lost", "two deliveries")
    late_path_leaves_a_note: bool = rule("at least once")

    lease_keeps_others_out: bool = rule("at least once", "two ticks")
    fence_then_pages: bool = rule("exact cancel")
    fence_never_falls: bool = rule("never lost", "two ticks")
    pages_are_consistent: bool = rule("never lost")
    settled_is_carried_over_pages: bool = rule("exact cancel")
    sent_then_checkpointed: bool = rule("never lost")
    checkpoint_is_conditional: bool = rule("exact cancel", "two ticks")
    cursor_is_a_key: bool = rule("never lost")
    cursor_stops_before_the_unsent: bool = rule("never lost")
    sent_beyond_the_unsent_is_noted: bool = rule("at least once", "two ticks")
    cursor_rests_on_jobs: bool = rule("exact cancel", "two ticks")
    cursor_ends_where_reading_ended: bool = rule("never lost")

    cancellation_then_fence: bool = rule("exact cancel")
    unread_fence_promises_nothing: bool = rule("exact cancel")
    fence_is_consistent_for_cancels: bool = rule("exact cancel")
    promise_is_noted: bool = rule("exact cancel")

    far_row_is_signed_in_time: bool = rule("never lost", "far at first")
    fence_is_made_before_it_is_signed: bool = rule("exact cancel", "far at first")
    exact_is_signed_in_time: bool = rule("exact cancel", "far at first")


class Store(NamedTuple):
    """What all processes share: the table, the inbound queue, the jobs' queue, and what the caller was answered.

    `excused` are jobs of which a repeat has a cause, `repeated` those of which one came without. While the jobs' due
    time `is_far`, AWS takes no request that was signed by a clock that could make a fence past it.
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
    promise_withdrawn: bool = False
    is_far: bool = False

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
        return self._replace(promise_withdrawn=job in self.promised)


def union(some: str, others: str) -> str:
    return "".join(job for job in JOBS if job in some or job in others)


def less(some: str, others: str) -> str:
    return "".join(job for job in some if job not in others)
