"""What a reschedule has to do with: the rules for it, where both jobs are, what all processes share, and the move."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from tests.simulation.model.store import BEFORE, BETWEEN, END_OF, JOBS, PAST, Rules, Store, union

MOVED, REFUSED = "200", "409"
ASKED, AWAITED = "asked", "awaited"


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveRules(Rules):
    """What the protocol asks of a move, of who may not see it yet, of its caller, and of ingest; each may be left out.

    A move in two steps is none: without one of the first two rules, there is no transaction, and ingest takes the
    intent for any other job.
    """

    not_cancelled_then_submitted: bool = True
    not_submitted_then_cancelled: bool = True
    moves_before_the_fence_alone: bool = True
    moves_what_is_not_cancelled: bool = True
    moves_whole_before_both_alone: bool = True

    asked_then_moved: bool = True
    awaited_then_moved: bool = True
    tick_asks_whether_moved: bool = True
    tick_asks_for_the_awaited: bool = True
    late_path_asks_whether_moved: bool = True

    intent_then_move: bool = True
    unanswered_move_is_unknown: bool = True
    caller_looks_who_was_quicker: bool = True
    looks_again_before_409: bool = True

    undone_intent_is_carried_out: bool = True
    refused_intent_is_dropped: bool = True
    moved_intent_is_kept: bool = True
    moved_row_is_written: bool = True
    unread_look_is_unknown: bool = True
    moved_job_is_seen_to: bool = True

    @classmethod
    def own(cls) -> list[str]:
        """Return the rules for moves alone."""
        return [rule.name for rule in fields(cls) if rule not in fields(Rules)]

    def has_transaction(self) -> bool:
        return self.not_cancelled_then_submitted and self.not_submitted_then_cancelled


class Shared(NamedTuple):
    """What all processes share: a store a partition, whether the intent was sent, and what its sender was told.

    `accepted` tells whether the old job's message waits or was acknowledged, `moved` whether its cancellation names the
    new one, `over` whether a cancel of it that was not moved was promised.
    """

    stores: tuple[Store, ...]
    accepted: bool = True
    announced: bool = False
    moved: bool = False
    told: str = ""
    over: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """The old job and the new one, due in the order of their letters unless they are of two partitions."""

    old: str
    new: str
    apart: bool = False

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
    may show one row without the other adds nothing: who meets the old job asks for its cancellation, and the new row is
    a row like any other. An answer that takes its time is one that is lost: who asks again, or the intent that comes
    again, finds what it would tell.
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
        """Tell whether reads show the new job's row."""
        return f"{self.scene.new}#job" in self.scene.store_of(self.scene.new, shared).rows

    def carried_out(self, shared: Shared) -> Shared:
        return self.written(self.cancelled(shared))

    def show(self, shared: Shared) -> Iterator[tuple[str, Shared]]:
        """Show the rest of a move."""
        if shared.moved and self.rules.has_transaction() and shared != (shown := self.carried_out(shared)):
            yield "reads show all of the move", shown

    def cancelled(self, shared: Shared) -> Shared:
        """Put the old job's cancellation; it is a promise, and names the new job."""
        old, decided = self.scene.old, self.decided(shared)
        return self.scene.kept(old, self.scene.store_of(old, decided).put("cancelled", old), decided)

    def decided(self, shared: Shared) -> Shared:
        """Take a move's effect upon whoever writes what it writes: they meet it, whatever a tick's page shows."""
        store = self.scene.store_of(self.scene.old, shared)
        store = store._replace(exact=union(store.exact, self.scene.old))
        store = store.put(ASKED, self.scene.old if self.rules.asked_then_moved else "")
        return self.scene.kept(self.scene.old, store, shared)._replace(moved=True)

    def decided_whole(self, shared: Shared) -> Shared:
        """Move the job where a later tick is to see the new one, which it may have to ask for."""
        new, decided = self.scene.new, self.decided(shared)
        awaited = new if self.rules.awaited_then_moved else ""
        return self.scene.kept(new, self.scene.store_of(new, decided).put(AWAITED, awaited), decided)

    def written(self, shared: Shared) -> Shared:
        """Put the new job's row. That it is awaited tells nobody anything any more."""
        new = self.scene.new
        store = self.scene.store_of(new, shared).put("job", new)
        return self.scene.kept(new, store._replace(rows=store.rows - {f"{new}#{AWAITED}"}), shared)
