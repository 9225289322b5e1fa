"""A job, and a reschedule of it: all processes together, in every state that they can be in."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from tests.simulation.model.explore import IDLE, Kinds, Model, restarted, run_undisturbed, together
from tests.simulation.model.move import (
    MOVED,
    REFUSED,
    Caller,
    MoveIngest,
    MoveRules,
    MoveTicking,
    Moving,
    Rescheduling,
    Scene,
    Settling,
    Shared,
)
from tests.simulation.model.processes import Cancel, Cancelling, Delivery, Tick
from tests.simulation.model.store import Store

SCENES = {
    "sooner, one at a time": Scene(old="b", new="a", states=92_349, at_once=1),
    "sooner": Scene(old="b", new="a", states=662_043),
    "later": Scene(old="a", new="b", states=812_481),
    "elsewhere": Scene(old="a", new="b", apart=True, states=1_255_720),
    "sooner, submitted": Scene(old="b", new="a", states=3_333_413, is_submitted=True),
    "later, submitted": Scene(old="a", new="b", states=4_204_553, is_submitted=True),
    "elsewhere, submitted": Scene(old="a", new="b", apart=True, states=6_569_799, is_submitted=True),
}
SharedSteps = Iterator[tuple[str, Shared, Any]]


class MoveModel(Model):
    """All processes together. One that has ended begins again, but for the caller, who reschedules once.

    Simpler than with two jobs: a tick reads one page, and writes its cursor at its end; repeats are not looked at.
    """

    def __init__(self, rules: MoveRules, scene: Scene) -> None:
        # A note of the late path spares repeats and nothing else, and repeats are not looked at.
        rules = replace(rules, late_path_leaves_a_note=False)
        moving = self.moving = Moving(rules, scene)
        self.scene = scene
        self.ingest, self.settling = MoveIngest(rules), Settling(rules, moving)
        self.rescheduling = Rescheduling(rules, moving)
        self.ticking = MoveTicking(rules, fences=scene.fences, at_once=True)
        self.cancelling = {job: Cancelling(rules, job=job) for job in (scene.old, scene.new)}

    def kinds(self) -> Kinds:
        # Where the new job is alone, one tick.
        ticks = [(Tick(),) * (self.scene.at_once if self.scene.old in jobs else 1) for jobs in self.scene.partitions]
        return [
            *self.kinds_of_old(),
            ((Delivery(),) * self.scene.at_once, together("ingest", self.settling.steps, begins_again=True)),
            *((each, partial(self.tick, place)) for place, each in enumerate(ticks)),
            ((Caller(),), together("reschedule", self.rescheduling.steps)),
            ((Cancel(),), together("cancel", self.cancel)),
            ((), self.show),
        ]

    def kinds_of_old(self) -> Kinds:
        """Return what brings the old job's row."""
        return [((Delivery(),), together("ingest", self.ingested, begins_again=True))]

    def start(self) -> Shared:
        return Shared((Store(),) * len(self.scene.partitions))

    def tick(self, place: int, shared: Shared, ticks: tuple[Tick, ...]) -> SharedSteps:
        for name, store, after in self.ticking.together(shared.stores[place], ticks):
            yield name, self.scene.put(place, store, shared), tuple(sorted(map(restarted, after)))

    def cancel(self, shared: Shared, cancel: Cancel, others: tuple[Cancel, ...] = ()) -> SharedSteps:
        """Cancel the old job, or the new one once the caller may know of it; one cancel after another."""
        jobs = [self.scene.old, self.scene.new] if shared.announced or shared.moved else [self.scene.old]
        for job in [cancel.job] if cancel.job else jobs:
            for name, store, mine in self.cancelling[job].steps(self.scene.store_of(job, shared), cancel):
                mine = mine if mine == Cancel() else mine._replace(job=job)
                is_over = not shared.moved and self.scene.old in store.promised
                after = self.scene.kept(job, store, shared)._replace(over=shared.over or is_over)
                yield f"of {job} {name}", after, mine

    def show(self, shared: Shared, nobody: tuple[()]) -> SharedSteps:
        for name, after in self.moving.show(shared):
            yield name, after, nobody

    def broken(self, shared: Shared) -> str:
        sent = [job for store in shared.stores for job in store.sent]
        if (shared.answer == MOVED and self.scene.old in sent) or (shared.over and self.scene.new in sent):
            return "exact cancel"
        if any(store.promise_withdrawn or set(store.promised) & set(store.sent) for store in shared.stores):
            return "exact cancel"
        if shared.answer == REFUSED and self.scene.new in sent:
            return "no second job"
        return "never both" if len(sent) > 1 else ""

    def lost(self, shared: Shared) -> str:
        end = self.undisturbed(shared)
        sent = [job for store in end.stores for job in store.sent]
        cancelled = [job for store in end.stores for job in store.cancelled()]
        left = self.scene.new if end.moved or end.answer == MOVED else self.scene.old
        return self.broken(end) or ("" if left in sent or left in cancelled else "never neither")

    def undisturbed(self, shared: Shared) -> Shared:
        """Show all, deliver once more what is not acknowledged, tick once more past due, and let nothing go wrong."""
        for _, after in self.moving.show(shared):
            shared = after
        old, new = self.scene.store_of(self.scene.old, shared), self.scene.store_of(self.scene.new, shared)
        if shared.accepted and self.scene.old not in old.acknowledged:
            shared = run_undisturbed(self.ingested, shared, Delivery())
        if shared.announced and self.scene.new not in new.acknowledged:
            shared = run_undisturbed(self.settling.steps, shared, Delivery())
        for place in range(len(shared.stores)):
            shared = run_undisturbed(partial(self.ticked, place), shared, Tick())
        return shared

    def ingested(self, shared: Shared, me: Delivery, others: tuple[Delivery, ...] = ()) -> SharedSteps:
        job = self.scene.old
        me = me if me.step != IDLE else Delivery("write_rows", todo=job)
        for name, store, mine in self.ingest.steps(self.scene.store_of(job, shared), me):
            yield name, self.scene.kept(job, store, shared), mine

    def ticked(self, place: int, shared: Shared, me: Tick) -> SharedSteps:
        for name, store, mine in self.ticking.steps(shared.stores[place], me):
            yield name, self.scene.put(place, store, shared), mine


class SubmittedMoveModel(MoveModel):
    """As a MoveModel, but the old job is no message to begin with.

    Its producers and its deliveries take the same steps with it, any number, two at a time, at any time: a put or a
    message that comes late is one of them that took its time. Whatever fails ends in a crash, or in the buffer.
    """

    def start(self) -> Shared:
        return super().start()._replace(accepted=False)

    def kinds_of_old(self) -> Kinds:
        submitted = together("producer or ingest", self.submitted, begins_again=True)
        return [((Delivery(), Delivery()), submitted), ((), self.buffer)]

    def buffer(self, shared: Shared, nobody: tuple[()]) -> SharedSteps:
        if not shared.accepted:
            yield "producer fills the buffer, answers accepted", shared._replace(accepted=True), nobody

    def submitted(self, shared: Shared, me: Delivery, others: tuple[Delivery, ...]) -> SharedSteps:
        if me.step == IDLE:
            yield "begins", shared, me._replace(step="write_rows", todo=self.scene.old)
            return
        for name, after, mine in self.ingested(shared, me):
            is_answered = self.scene.old in self.scene.store_of(self.scene.old, after).acknowledged
            yield name, after._replace(accepted=after.accepted or is_answered), mine

    def lost(self, shared: Shared) -> str:
        """Return the promise that a state breaks where no process is underway; of the old job none was made before."""
        is_promised = shared.accepted or shared.moved or shared.answer == MOVED
        return super().lost(shared) if is_promised else ""


def move_model(rules: MoveRules, scene: Scene) -> MoveModel:
    return (SubmittedMoveModel if scene.is_submitted else MoveModel)(rules, scene)
