"""A reschedule of a job whose row its producers write: all processes together, in every state that they can be in."""

from tests.simulation.model.ingest import Delivery
from tests.simulation.model.move import MOVED, Shared
from tests.simulation.model.moves import MoveModel, SharedSteps, anew
from tests.simulation.model.store import IDLE

# How many states there are of each with every rule kept.
SUBMITTED_MOVE_STATES = {"later": 4_204_553, "sooner": 3_333_413, "elsewhere": 6_569_799}


class SubmittedMoveModel(MoveModel):
    """As a MoveModel, but the old job is no message to begin with.

    Its producers and its deliveries take the same steps with it, any number, two at a time, at any time: a put or a
    message that comes late is one of them that took its time. Whatever fails ends in a crash, or in the buffer.
    """

    deliveries = (Delivery(), Delivery())

    def start(self) -> Shared:
        return super().start()._replace(accepted=False)

    def deliver(self, shared: Shared, deliveries: tuple[Delivery, ...]) -> SharedSteps:
        if not shared.accepted:
            yield "producer fills the buffer, answers accepted", shared._replace(accepted=True), deliveries
        for index, me in enumerate(deliveries):
            others = deliveries[:index] + deliveries[index + 1 :]
            if me.step == IDLE:
                begun = me._replace(step="write_rows", todo=self.scene.old)
                yield "producer or ingest begins", shared, tuple(sorted((begun, *others)))
                continue
            for name, after, mine in self.ingested(shared, me):
                is_answered = self.scene.old in self.scene.store_of(self.scene.old, after).acknowledged
                kept = after._replace(accepted=after.accepted or is_answered)
                yield f"producer or ingest {name}", kept, tuple(sorted((anew(mine), *others)))

    def lost(self, shared: Shared) -> str:
        """Return the promise that a state breaks where no process is underway; of the old job none was made before."""
        is_promised = shared.accepted or shared.moved or shared.told == MOVED
        return super().lost(shared) if is_promised else ""
