"""A job, and a reschedule of it: all processes together, in every state that they can be in."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from tests.simulation.model.explore import GONE, IDLE, Kinds, Model, Steps, restarted, run_undisturbed, together
from tests.simulation.model.jobs import Cancel, Cancelling, Delivery, Ingest, Tick, Ticking, job_of
from tests.simulation.model.store import BEFORE, BETWEEN, END_OF, JOBS, PAST, Rules, Store, rule, union

MOVED, REFUSED = "200", "409"
# They sort before the rows of their jobs.
MOVE_PENDING, MOVE_TARGET = "!move-pending", "!move-target"


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveRules(Rules):
    """What the protocol requires of a move, its readers, its caller, and ingest; each may be left out."""

    moves_before_the_fence_alone: bool = rule("never both")
    moves_what_is_not_cancelled: bool = rule("exact cancel")
    moves_whole_before_both_alone: bool = rule("never neither")

    pending_row_then_moved: bool = rule("exact cancel")
    target_row_then_moved: bool = rule("never neither")
    tick_reads_pending_moves_by_write: bool = rule("exact cancel")
    tick_reads_move_targets_by_write: bool = rule("never neither")
    late_path_reads_pending_moves_by_write: bool = rule("exact cancel")

    intent_then_move: bool = rule("never neither")
    unanswered_move_is_unknown: bool = rule("no second job")
    caller_looks_who_was_quicker: bool = rule("no second job")
    looks_again_before_409: bool = rule("no second job")

    undone_intent_is_carried_out: bool = rule("never neither")
    refused_intent_is_dropped: bool = rule("never both")
    moved_intent_is_kept: bool = rule("never neither")
    moved_row_is_written: bool = rule("never neither")
    unread_look_is_unknown: bool = rule("never neither")
    moved_job_is_completed: bool = rule("never neither")


class Shared(NamedTuple):
    """What all processes share: a store a partition, whether the intent was sent, and what its sender was answered.

    `accepted` is whether the old job's message waits or was acknowledged, `moved` whether its cancellation names the
    new one, `over` whether a cancel of it that was not moved was promised.
    """

    stores: tuple[Store, ...]
    accepted: bool = True
    announced: bool = False
    moved: bool = False
    answer: str = ""
    over: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """The old job and the new one, due in the order of their letters unless they are of two partitions.

    The old job is a message to begin with, unless it `is_submitted` by producers. So many deliveries of the intent, and
    ticks of the old job's partition, are made `at_once`. `states` is how many there are with every rule kept.
    """

    old: str
    new: str
    states: int
    apart: bool = False
    is_submitted: bool = False
    at_once: int = 2

    @property
    def partitions(self) -> Sequence[str]:
        """Return the jobs of each partition."""
        return (self.old, self.new) if self.apart else (union(self.old, self.new),)

    @property
    def fences(self) -> Sequence[str]:
        return (PAST, BEFORE) if self.apart else (PAST, BETWEEN, BEFORE)

    def place_of(self, job: str) -> int:
        return next(place for place, jobs in enumerate(self.partitions) if job in jobs)

    def store_of(self, job: str, shared: Shared) -> Store:
        """Return the store of a job's partition; of its fence, no more than whether the job is past it."""
        store = shared.stores[self.place_of(job)]
        return store._replace(fence=PAST if f"{job}#job" < END_OF[store.fence] else BEFORE)

    def kept(self, job: str, store: Store, shared: Shared) -> Shared:
        """Return what is shared after a step that left a job's partition so; only ticks move fences."""
        place = self.place_of(job)
        return self.put(place, store._replace(fence=shared.stores[place].fence), shared)

    @staticmethod
    def put(place: int, store: Store, shared: Shared) -> Shared:
        """Repeats are not looked at: one that has a cause is one state with one that has none."""
        stores = list(shared.stores)
        stores[place] = store._replace(excused=JOBS)
        return shared._replace(stores=tuple(stores))


class Moving:
    """The transaction that lets one job take the other's place.

    Reads show all of it once it is answered. Before, they may show nothing of it for as long as they like. That they
    may show one row without the other adds nothing: the old job's cancellation is read by a write, and the new row is
    a row like any other. An answer that takes its time is one that is lost: a retry, or the intent that comes again,
    finds the same.
    """

    def __init__(self, rules: MoveRules, scene: Scene) -> None:
        self.rules, self.scene = rules, scene

    def is_written(self, shared: Shared) -> bool:
        return f"{self.scene.old}#job" in self.scene.store_of(self.scene.old, shared).rows

    def is_cancelled(self, shared: Shared) -> bool:
        return shared.moved or self.is_seen_cancelled(shared)

    def is_seen_cancelled(self, shared: Shared) -> bool:
        return self.scene.old in self.scene.store_of(self.scene.old, shared).cancelled()

    def is_past(self, shared: Shared) -> bool:
        return self.scene.store_of(self.scene.old, shared).fence == PAST

    def is_new_past(self, shared: Shared) -> bool:
        return self.scene.store_of(self.scene.new, shared).fence == PAST

    def is_refused(self, shared: Shared) -> bool:
        is_late = self.is_past(shared) and self.rules.moves_before_the_fence_alone
        return is_late or (self.is_cancelled(shared) and self.rules.moves_what_is_not_cancelled)

    def is_refused_whole(self, shared: Shared) -> bool:
        is_late = self.is_new_past(shared) and self.rules.moves_whole_before_both_alone
        return is_late or self.is_refused(shared)

    def is_shown(self, shared: Shared) -> bool:
        """Return whether reads show the new job's row."""
        return f"{self.scene.new}#job" in self.scene.store_of(self.scene.new, shared).rows

    def carried_out(self, shared: Shared) -> Shared:
        return self.written(self.cancelled(shared))

    def show(self, shared: Shared, nobody: tuple[()] = ()) -> Steps:
        """Show the rest of a move."""
        if shared.moved and shared != (shown := self.carried_out(shared)):
            yield "reads show all of the move", shown, nobody

    def cancelled(self, shared: Shared) -> Shared:
        """Put the old job's cancellation; it is a promise, and names the new job."""
        old, decided = self.scene.old, self.decided(shared)
        return self.scene.kept(old, self.scene.store_of(old, decided).put("cancelled", old), decided)

    def decided(self, shared: Shared) -> Shared:
        """Take a move's effect on all that write the same rows: they see it, whatever a tick's page shows."""
        store = self.scene.store_of(self.scene.old, shared)
        store = store._replace(exact=union(store.exact, self.scene.old))
        store = store.put(MOVE_PENDING, self.scene.old if self.rules.pending_row_then_moved else "")
        return self.scene.kept(self.scene.old, store, shared)._replace(moved=True)

    def decided_whole(self, shared: Shared) -> Shared:
        """Move the job where a later tick is to see the new one, which it may have to read by a write."""
        new, decided = self.scene.new, self.decided(shared)
        target = new if self.rules.target_row_then_moved else ""
        return self.scene.kept(new, self.scene.store_of(new, decided).put(MOVE_TARGET, target), decided)

    def written(self, shared: Shared) -> Shared:
        """Put the new job's row. The row of its target has no more use."""
        new = self.scene.new
        store = self.scene.store_of(new, shared).put("job", new)
        return self.scene.kept(new, store._replace(rows=store.rows - {f"{new}#{MOVE_TARGET}"}), shared)


# Reads by a write, where a plain read may not show a move yet. One without an answer leaves the job for later, as one
# that cannot be sent. So a row that says only that a move is pending changes nothing, and is put with the move.
def moved_of(rows: list[str], store: Store) -> str:
    """Return the jobs of which a row says that a move is pending, and that were moved."""
    return "".join(job_of(key) for key in rows if key.endswith(MOVE_PENDING) and job_of(key) in store.exact)


class MoveTicking(Ticking):
    rules: MoveRules

    def apply_rows(self, store: Store, me: Tick, rows: list[str]) -> tuple[Store, Tick]:
        shown = {key for key in rows if not key.endswith((MOVE_PENDING, MOVE_TARGET))}
        if self.rules.tick_reads_pending_moves_by_write:
            shown |= {f"{job}#cancelled" for job in moved_of(rows, store)}
        if self.rules.tick_reads_move_targets_by_write:
            shown |= {f"{job_of(key)}#job" for key in rows if key.endswith(MOVE_TARGET)}
        return super().apply_rows(store, me, sorted(shown))


class MoveIngest(Ingest):
    rules: MoveRules

    def cancelled(self, store: Store) -> str:
        moved = moved_of(sorted(store.rows), store) if self.rules.late_path_reads_pending_moves_by_write else ""
        return union(store.cancelled(), moved)


# The caller.


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

    def steps(self, shared: Shared, me: Caller, others: tuple[Caller, ...] = ()) -> Steps:
        if me.step == IDLE and self.moving.is_written(shared):
            yield from self.begin(shared)
        if me.step == GONE and (shared.announced or shared.moved) and not shared.answer:
            yield from self.retry(shared)
        if me.step not in (IDLE, GONE):
            yield from getattr(self, me.step)(shared)
        if me.step in ("move_whole", "look_whole", "announce", "move"):
            yield "crashes", shared, Caller(GONE)

    def begin(self, shared: Shared) -> Steps:
        yield from getattr(self, self.first)(shared)
        if not self.moving.scene.apart and not self.moving.is_new_past(shared):
            yield "finds the fence before the new job", shared, Caller("move_whole")

    def move_whole(self, shared: Shared) -> Steps:
        """Move the job without an intent. Its client may try again by itself when an answer is lost."""
        if self.moving.is_refused_whole(shared):
            yield "cannot move the job whole", shared, Caller("look_whole")
        else:
            moved = self.moving.decided_whole(shared)
            yield "moves the job whole", *self.answered(self.moving.carried_out(moved), MOVED)
            yield "moves the job whole, but the answer is lost", moved, Caller(GONE)
            yield "moves the job whole, but the answer is lost, tries again", moved, Caller("move_whole")

    def look_whole(self, shared: Shared) -> Steps:
        """Look whether an earlier try moved the job; no harm is done by looking too early."""
        if shared.moved:
            yield "finds that it moved the job, answers 200", *self.answered(shared, MOVED)
        yield "finds the job not moved", shared, Caller(self.first)

    def retry(self, shared: Shared) -> Steps:
        """Look at the job once more, row by row, for one request's reads are not of one instant.

        What comes after a look that finds it still to be moved is not followed.
        """
        if self.moving.is_cancelled(shared) or self.moving.is_past(shared):
            yield self.look(shared, first="tries again, and ")
        if not self.moving.is_seen_cancelled(shared) and not self.moving.is_past(shared):
            yield "tries again, and finds no cancellation", shared, Caller("look_at_the_fence")

    def look_at_the_fence(self, shared: Shared) -> Steps:
        """Read the fence; where it is past due, look again, at once: what there is to see is final by then."""
        if self.moving.is_past(shared) and self.rules.looks_again_before_409:
            yield self.look(shared, first="finds the fence past due, looks again, and ")
        elif self.moving.is_past(shared):
            yield "finds the fence past due, answers 409", *self.answered(shared, REFUSED)

    def announce(self, shared: Shared) -> Steps:
        sent = shared._replace(announced=True)
        yield "sends the intent", *self.next_after("announce", sent)
        yield "sends the intent, but the answer is lost", sent, Caller(GONE)

    def move(self, shared: Shared) -> Steps:
        if self.moving.is_refused(shared):
            yield self.look(shared)
        else:
            yield "moves the job", *self.next_after("move", self.moving.carried_out(shared))
            moved = self.moving.decided(shared)
            unknown = (moved, Caller(GONE)) if self.rules.unanswered_move_is_unknown else self.answered(moved, REFUSED)
            yield "moves the job, but the answer is lost", *unknown

    def look(self, shared: Shared, *, first: str = "") -> tuple[str, Shared, Caller]:
        if shared.moved and self.rules.caller_looks_who_was_quicker:
            return f"{first}finds the job moved, answers 200", *self.answered(shared, MOVED)
        return f"{first}finds it not moved, answers 409", *self.answered(shared, REFUSED)

    def next_after(self, step: str, shared: Shared) -> tuple[Shared, Caller]:
        return (shared, Caller(self.second)) if step == self.first else self.answered(shared, MOVED)

    @staticmethod
    def answered(shared: Shared, answer: str) -> tuple[Shared, Caller]:
        return shared._replace(answer=answer), Caller(GONE)


# Ingest of an intent.


class Settling:
    """Carry the intent out; where that is refused look who was quicker, and drop it or see to its job as to any other.

    That it looks before, too, is left out: what it may find is final, and a move is refused for it. So is a look that
    was too early for the new job's row alone: it is as good as one before reads show that.
    """

    def __init__(self, rules: MoveRules, moving: Moving) -> None:
        self.rules, self.moving = rules, moving
        self.scene, self.job = moving.scene, moving.scene.new
        self.ingest = Ingest(rules)

    def steps(self, shared: Shared, me: Delivery, others: tuple[Delivery, ...] = ()) -> Steps:
        if me.step == IDLE:
            yield from self.settle(shared) if shared.announced else ()
        else:
            for name, store, mine in self.ingest.steps(self.scene.store_of(self.job, shared), me):
                yield name, self.scene.kept(self.job, store, shared), mine

    def settle(self, shared: Shared) -> Steps:
        if self.moving.is_refused(shared):
            yield from self.look(shared)
        elif self.rules.undone_intent_is_carried_out:
            yield "moves the job", *self.see_to(self.moving.carried_out(shared))
            yield "moves the job, but the answer is lost", self.moving.decided(shared), Delivery(GONE)
        else:
            yield "finds the job not moved", *self.drop(shared)

    def look(self, shared: Shared) -> Steps:
        if shared.moved and self.rules.moved_intent_is_kept:
            yield self.find_moved(shared)
        elif self.rules.refused_intent_is_dropped:
            yield "is refused the move", *self.drop(shared)
        else:
            yield "is refused the move, and writes the new job", *self.see_to(self.moving.written(shared))
        if not self.rules.unread_look_is_unknown:
            yield "is refused the move, and gets no answer who was quicker", *self.drop(shared)

    def find_moved(self, shared: Shared) -> tuple[str, Shared, Delivery]:
        """Write the new job's row, unless it is there to be read. The cancellation is there: it was read.

        A write that takes its time, fails, or loses its answer comes to the same as a look later on.
        """
        if self.moving.is_shown(shared):
            return "finds the job moved", *self.see_to(shared)
        if self.rules.moved_row_is_written:
            return "finds the job moved, writes the new one", *self.see_to(self.moving.carried_out(shared))
        return "finds the job moved, but not the new one", *self.see_to(self.moving.cancelled(shared))

    def see_to(self, shared: Shared) -> tuple[Shared, Delivery]:
        """Go on as with any job, whose row is written."""
        return (
            (shared, Delivery("read_fence", done=self.job)) if self.rules.moved_job_is_completed else self.drop(shared)
        )

    def drop(self, shared: Shared) -> tuple[Shared, Delivery]:
        store = self.scene.store_of(self.job, shared).acknowledge(self.job)
        return self.scene.kept(self.job, store, shared), Delivery(GONE)


# All processes together.
SCENES = {
    "sooner": Scene(old="b", new="a", states=662_043),
    "sooner, one at a time": Scene(old="b", new="a", states=92_349, at_once=1),
    "later": Scene(old="a", new="b", states=812_481),
    "elsewhere": Scene(old="a", new="b", apart=True, states=1_255_720),
    "sooner, submitted": Scene(old="b", new="a", states=3_333_413, is_submitted=True),
    "later, submitted": Scene(old="a", new="b", states=4_204_553, is_submitted=True),
    "elsewhere, submitted": Scene(old="a", new="b", apart=True, states=6_569_799, is_submitted=True),
}


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
            ((), self.moving.show),
        ]

    def kinds_of_old(self) -> Kinds:
        """Return what brings the old job's row."""
        return [((Delivery(),), together("ingest", self.ingested, begins_again=True))]

    def start(self) -> Shared:
        return Shared((Store(),) * len(self.scene.partitions))

    def tick(self, place: int, shared: Shared, ticks: tuple[Tick, ...]) -> Steps:
        for name, store, after in self.ticking.together(shared.stores[place], ticks):
            yield name, self.scene.put(place, store, shared), tuple(sorted(map(restarted, after)))

    def cancel(self, shared: Shared, cancel: Cancel, others: tuple[Cancel, ...] = ()) -> Steps:
        """Cancel the old job, or the new one once the caller may know of it; one cancel after another."""
        jobs = [self.scene.old, self.scene.new] if shared.announced or shared.moved else [self.scene.old]
        for job in [cancel.job] if cancel.job else jobs:
            for name, store, mine in self.cancelling[job].steps(self.scene.store_of(job, shared), cancel):
                mine = mine if mine == Cancel() else mine._replace(job=job)
                is_over = not shared.moved and self.scene.old in store.promised
                after = self.scene.kept(job, store, shared)._replace(over=shared.over or is_over)
                yield f"of {job} {name}", after, mine

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
        for _, after, _ in self.moving.show(shared):
            shared = after
        old, new = self.scene.store_of(self.scene.old, shared), self.scene.store_of(self.scene.new, shared)
        if shared.accepted and self.scene.old not in old.acknowledged:
            shared = run_undisturbed(self.ingested, shared, Delivery())
        if shared.announced and self.scene.new not in new.acknowledged:
            shared = run_undisturbed(self.settling.steps, shared, Delivery())
        for place in range(len(shared.stores)):
            shared = run_undisturbed(partial(self.ticked, place), shared, Tick())
        return shared

    def ingested(self, shared: Shared, me: Delivery, others: tuple[Delivery, ...] = ()) -> Steps:
        job = self.scene.old
        me = me if me.step != IDLE else Delivery("write_rows", todo=job)
        for name, store, mine in self.ingest.steps(self.scene.store_of(job, shared), me):
            yield name, self.scene.kept(job, store, shared), mine

    def ticked(self, place: int, shared: Shared, me: Tick) -> Steps:
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

    def buffer(self, shared: Shared, nobody: tuple[()]) -> Steps:
        if not shared.accepted:
            yield "producer fills the buffer, answers accepted", shared._replace(accepted=True), nobody

    def submitted(self, shared: Shared, me: Delivery, others: tuple[Delivery, ...]) -> Steps:
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
