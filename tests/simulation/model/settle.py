"""Ingest of an intent, step by step: what comes before the steps that it takes with any job."""

from collections.abc import Iterator

from tests.simulation.model.ingest import Delivery, Ingest
from tests.simulation.model.move import MoveRules, Moving, Shared
from tests.simulation.model.store import GONE, IDLE

DeliverySteps = Iterator[tuple[str, Shared, Delivery]]


class Settling:
    """Carry the intent out; where that is refused look who was quicker, and drop it or see to its job as to any other.

    That it looks before, too, is left out: what it may find is final, and a move is refused for it. So is a look that
    was too early for the new job's row alone: it is as good as one before reads show that.
    """

    def __init__(self, rules: MoveRules, moving: Moving) -> None:
        self.rules, self.moving = rules, moving
        self.scene, self.job = moving.scene, moving.scene.new
        self.ingest = Ingest(rules)

    def steps(self, shared: Shared, me: Delivery) -> DeliverySteps:
        if me.step == IDLE and self.rules.has_transaction():
            yield from self.settle(shared) if shared.announced else ()
        elif me.step != IDLE or shared.announced:
            me = me if me.step != IDLE else Delivery("write_rows", todo=self.job)
            for name, store, mine in self.ingest.steps(self.scene.store_of(self.job, shared), me, ()):
                yield name, self.scene.kept(self.job, store, shared), mine

    def settle(self, shared: Shared) -> DeliverySteps:
        if self.moving.is_refused(shared):
            yield from self.look(shared)
        elif self.rules.undone_intent_is_carried_out:
            yield "moves the job", *self.see_to(self.moving.carried_out(shared))
            yield "moves the job, but the answer is lost", self.moving.decided(shared), Delivery(GONE)
        else:
            yield "finds the job not moved", *self.drop(shared)

    def look(self, shared: Shared) -> DeliverySteps:
        if shared.moved and self.rules.moved_intent_is_kept:
            yield self.find_moved(shared)
        elif self.rules.refused_intent_is_dropped:
            yield "is refused the move", *self.drop(shared)
        else:
            yield "is refused the move, and writes the new job", *self.see_to(self.moving.written(shared))
        if not self.rules.unread_look_is_unknown:
            yield "is refused the move, and gets no answer who was quicker", *self.drop(shared)

    def find_moved(self, shared: Shared) -> tuple[str, Shared, Delivery]:
        """Write the new job's row, unless it is there to be read. The cancellation is there: it was read, or asked for.

        A write that takes its time, fails, or loses its answer comes to the same as a look later on.
        """
        if self.moving.is_shown(shared):
            return "finds the job moved", *self.see_to(shared)
        if self.rules.moved_row_is_written:
            return "finds the job moved, writes the new one", *self.see_to(self.moving.carried_out(shared))
        return "finds the job moved, but not the new one", *self.see_to(self.moving.cancelled(shared))

    def see_to(self, shared: Shared) -> tuple[Shared, Delivery]:
        """Go on as with any job, whose row is written."""
        return (shared, Delivery("read_fence", done=self.job)) if self.rules.moved_job_is_seen_to else self.drop(shared)

    def drop(self, shared: Shared) -> tuple[Shared, Delivery]:
        store = self.scene.store_of(self.job, shared).acknowledge(self.job)
        return self.scene.kept(self.job, store, shared), Delivery(GONE)
