"""A reschedule, step by step, as its caller goes about it; and two ways to do without the transaction, which fail."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.simulation.model.move import MOVED, REFUSED, MoveRules, Moving, Shared
from tests.simulation.model.store import GONE, IDLE

CallerSteps = Iterator[tuple[str, Shared, "Caller"]]


class Caller(NamedTuple):
    """Who reschedules the old job, once."""

    step: str = IDLE


class Rescheduling:
    """Move where the fence is before both jobs; else, or where that is refused, send the intent, and move.

    Where the last is refused, look who was quicker. Callers of earlier versions send an intent wherever the fence is.

    Of its first look at the old job nothing is left but that the row is there, of which it has the payload: a caller
    that found all well may stand still until nothing is.
    """

    def __init__(self, rules: MoveRules, moving: Moving) -> None:
        self.rules, self.moving = rules, moving
        self.first, self.second = ("announce", "move") if rules.intent_then_move else ("move", "announce")

    def steps(self, shared: Shared, me: Caller) -> CallerSteps:
        if me.step == IDLE and self.moving.is_written(shared):
            yield from self.begin(shared)
        if me.step == GONE and (shared.announced or shared.moved) and not shared.told and self.rules.has_transaction():
            yield from self.ask_again(shared)
        if me.step not in (IDLE, GONE):
            yield from self.go_on(shared, me.step)
        if me.step in ("move_whole", "look_whole", "announce", "move", "cancel"):
            yield "crashes", shared, Caller(GONE)

    def begin(self, shared: Shared) -> CallerSteps:
        yield from self.go_on(shared, self.first)
        is_apart = self.moving.scene.apart or not self.rules.has_transaction()
        if not is_apart and not self.moving.is_new_past(shared):
            yield "finds the fence before the new job", shared, Caller("move_whole")

    def move_whole(self, shared: Shared) -> CallerSteps:
        """Move the job without an intent. Whoever sends its calls may try again by itself when an answer is lost."""
        if self.moving.is_refused_whole(shared):
            yield "cannot move the job whole", shared, Caller("look_whole")
        else:
            moved = self.moving.decided_whole(shared)
            yield "moves the job whole", *self.succeeded(self.moving.carried_out(moved))
            yield "moves the job whole, but the answer is lost", moved, Caller(GONE)
            yield "moves the job whole, but the answer is lost, tries again", moved, Caller("move_whole")

    def look_whole(self, shared: Shared) -> CallerSteps:
        """Look whether an earlier try moved the job; no harm is done by looking too early."""
        if shared.moved:
            yield "finds that it moved the job, answers 200", *self.succeeded(shared)
        yield "finds the job not moved", shared, Caller(self.first)

    def go_on(self, shared: Shared, step: str) -> CallerSteps:
        do: Callable[[Shared], CallerSteps] = getattr(self, step)
        yield from do(shared)

    def ask_again(self, shared: Shared) -> CallerSteps:
        """Look at the job once more, row by row, for one request's reads are not of one instant.

        What comes after a look that finds it still to be moved is not followed.
        """
        if self.moving.is_cancelled(shared) or self.moving.is_past(shared):
            yield self.look(shared, first="asks again, and ")
        if not self.moving.is_seen_cancelled(shared) and not self.moving.is_past(shared):
            yield "asks again, and finds no cancellation", shared, Caller("look_at_the_fence")

    def look_at_the_fence(self, shared: Shared) -> CallerSteps:
        """Read the fence; where it is past due, look again, at once: what there is to see is final by then."""
        if self.moving.is_past(shared) and self.rules.looks_again_before_409:
            yield self.look(shared, first="finds the fence past due, looks again, and ")
        elif self.moving.is_past(shared):
            yield "finds the fence past due, answers 409", *self.refused(shared)

    def announce(self, shared: Shared) -> CallerSteps:
        sent = shared._replace(announced=True)
        yield "sends the intent", *self.next_after("announce", sent)
        yield "sends the intent, but the answer is lost", sent, Caller(GONE)

    def move(self, shared: Shared) -> CallerSteps:
        if self.moving.is_refused(shared):
            yield self.look(shared)
        else:
            yield "moves the job", *self.next_after("move", self.moving.carried_out(shared))
            moved = self.moving.decided(shared)
            unknown = (moved, Caller(GONE)) if self.rules.unanswered_move_is_unknown else self.refused(moved)
            yield "moves the job, but the answer is lost", *unknown

    def look(self, shared: Shared, *, first: str = "") -> tuple[str, Shared, Caller]:
        if shared.moved and self.rules.caller_looks_who_was_quicker:
            return f"{first}finds the job moved, answers 200", *self.succeeded(shared)
        return f"{first}finds it not moved, answers 409", *self.refused(shared)

    def next_after(self, step: str, shared: Shared) -> tuple[Shared, Caller]:
        return (shared, Caller(self.second)) if step == self.first else self.succeeded(shared)

    @staticmethod
    def succeeded(shared: Shared) -> tuple[Shared, Caller]:
        return shared._replace(told=MOVED), Caller(GONE)

    @staticmethod
    def refused(shared: Shared) -> tuple[Shared, Caller]:
        return shared._replace(told=REFUSED), Caller(GONE)


class InTwoSteps(Rescheduling):
    """Cancel the old job and submit the new one, one after the other; each succeeds or fails by itself."""

    def __init__(self, rules: MoveRules, moving: Moving) -> None:
        super().__init__(rules, moving)
        cancels_first = not rules.not_cancelled_then_submitted
        self.first, self.second = ("cancel", "announce") if cancels_first else ("announce", "cancel")

    def cancel(self, shared: Shared) -> CallerSteps:
        if self.moving.is_refused(shared):
            yield "cannot cancel the job, answers 409", *self.refused(shared)
        else:
            yield "cancels the job", *self.next_after("cancel", self.moving.cancelled(shared))
