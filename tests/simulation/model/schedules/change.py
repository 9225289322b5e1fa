"""A caller who changes the schedule, step by step."""

from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.model.schedules.cut import Cutting
from tests.simulation.model.schedules.rules import ScheduleRules
from tests.simulation.model.schedules.shared import NONE, PAUSED, Head, Occurrences, Shared, SharedSteps, World
from tests.simulation.model.store import GONE, IDLE


class Caller(NamedTuple):
    """A caller: which of its changes it is at, whether it tries that again, what it read, and its cut.

    `done` is up to where it has planned the old rule.
    """

    step: str = IDLE
    change: int = 0
    is_retry: bool = False
    fence: int = 0
    head: Head | None = None
    cut: int = 0
    done: int = 0


class Changing:
    """Read the fence, then the head; submit the intent; plan the old rule up to the cut; and the transaction.

    What is refused is begun again. Who finds no head creates it.
    """

    def __init__(self, rules: ScheduleRules, world: World, occurrences: Occurrences, wanted: str) -> None:
        self.rules, self.world, self.occurrences, self.wanted = rules, world, occurrences, wanted
        self.cutting = Cutting(rules, world)

    def steps(self, shared: Shared, me: Caller) -> SharedSteps:
        if me.step == GONE:
            return
        name = {PAUSED: "pause", "A": "create", "R": "resume"}.get(self.wanted[me.change], "update")
        step: Callable[[Shared, Caller], SharedSteps] = self.begin if me.step == IDLE else getattr(self, me.step)
        for told, after, mine in step(shared, me):
            yield f"{name} {told}", after, mine
        if me.step != IDLE:
            yield f"{name} crashes", shared, self.over(me)

    def begin(self, shared: Shared, me: Caller) -> SharedSteps:
        if self.rules.fence_then_head:
            yield f"reads the fence {shared.fence}", shared, me._replace(step="read_head", fence=shared.fence)
        else:
            yield from self.read_head(shared, me)

    def read_head(self, shared: Shared, me: Caller) -> SharedSteps:
        may_find = [shared.head]
        if shared.before is not None and not self.rules.head_is_asked_for:
            may_find.append(shared.before)
        for head in may_find:
            yield from self.find(shared, me, head)

    def find(self, shared: Shared, me: Caller, head: Head | None) -> SharedSteps:
        wanted = self.wanted[me.change]
        if head is None and wanted == PAUSED:
            yield "finds no head, answers 404", shared, self.over(me)
        elif head is not None and head.definitions[-1] == wanted:
            yield "finds what it wants, answers 200", shared, self.over(me)
        elif head is not None and not self.rules.fence_then_head:
            yield self.told(head), shared, me._replace(step="read_fence", head=head)
        else:
            for cut in self.cutting.choices(me.fence, head, is_pause=wanted == PAUSED):
                yield f"{self.told(head)}, from {cut} on", shared, self.chosen(me, head, cut)

    def read_fence(self, shared: Shared, me: Caller) -> SharedSteps:
        for cut in self.cutting.choices(shared.fence, me.head, is_pause=self.wanted[me.change] == PAUSED):
            yield f"reads the fence, from {cut} on", shared, self.chosen(me, me.head, cut)

    @staticmethod
    def told(head: Head | None) -> str:
        return f"finds generation {head.generation}, planned to {head.planned_to}" if head else "finds no head"

    def chosen(self, me: Caller, head: Head | None, cut: int) -> Caller:
        """Go on once the cut is known. Of the fence no more is needed."""
        if head is not None and self.wanted[me.change] != PAUSED and self.cutting.is_too_many(head, cut):
            return self.over(me)
        me = me._replace(fence=0, head=head, cut=cut, done=head.planned_to if head is not None else 0)
        is_intent_first = self.rules.intent_then_change and self.wanted[me.change] != PAUSED
        return me._replace(step="announce") if is_intent_first else self.announced(me)

    def announce(self, shared: Shared, me: Caller) -> SharedSteps:
        generation = me.head.generation + 1 if me.head else 1
        is_over = not self.world.nominals(self.wanted[me.change], after=me.cut)
        after = shared if is_over else shared.announce((generation, me.cut))
        mine = self.announced(me) if self.rules.intent_then_change else self.over(me)
        yield f"submits the intent of generation {generation} from {me.cut}", after, mine

    def announced(self, me: Caller) -> Caller:
        head = me.head
        if head is None:
            return me._replace(step="create")
        is_late = self.left(me, head) and self.rules.old_rule_is_planned_to_the_cut
        return me._replace(step="plan_old") if is_late else me._replace(step="change", done=0)

    def left(self, me: Caller, head: Head) -> list[int]:
        return self.world.nominals(head.definitions[-1], after=me.done, to=me.cut)

    def plan_old(self, shared: Shared, me: Caller) -> SharedSteps:
        assert me.head is not None
        nominal, generation = self.left(me, me.head)[0], me.head.generation
        after = self.occurrences.submit(shared, generation, nominal)
        yield f"submits {nominal} of generation {generation}", after, self.announced(me._replace(done=nominal))

    def create(self, shared: Shared, me: Caller) -> SharedSteps:
        if shared.head is not None:
            yield "finds a head, begins again", shared, Caller(change=me.change, is_retry=me.is_retry)
        else:
            head = Head((me.cut,), self.wanted[me.change], me.cut)
            created = shared._replace(head=head, jobs=(NONE * self.world.last,)).tidy()
            yield from self.done(created, created, me, f"puts the head from {me.cut}")

    def change(self, shared: Shared, me: Caller) -> SharedSteps:
        assert me.head is not None
        if self.is_refused(shared, me):
            yield "is refused, begins again", shared, Caller(change=me.change, is_retry=me.is_retry)
            return
        shown, unshown = (self.changed(shared, me, is_answered=answered) for answered in (True, False))
        yield from self.done(shown, unshown, me, f"changes generation {me.head.generation} at {me.cut}")

    def is_refused(self, shared: Shared, me: Caller) -> bool:
        head, rules = shared.head, self.rules
        assert head is not None
        assert me.head is not None
        is_past = shared.fence > me.cut and rules.changes_under_the_fence_alone
        is_other = head.generation != me.head.generation and rules.changes_its_generation_alone
        is_moved = head.planned_to != me.head.planned_to and rules.changes_what_is_planned_as_read_alone
        return is_past or is_other or is_moved

    def changed(self, shared: Shared, me: Caller, *, is_answered: bool) -> Shared:
        """Return what the transaction leaves; unless it is answered, reads may not show all of it yet."""
        old = me.head
        assert old is not None
        is_pause = self.wanted[me.change] == PAUSED
        for generation, nominal in self.cutting.ended(old, me.cut, is_pause=is_pause):
            shared = self.occurrences.cancel(shared, generation, nominal, is_answered=is_answered)
        head = Head((*old.froms, me.cut), old.definitions + self.wanted[me.change], me.cut)
        jobs = (*shared.jobs, NONE * self.world.last) if len(shared.jobs) < head.generation else shared.jobs
        before = None if is_answered or self.rules.head_is_asked_for else shared.head
        return shared._replace(head=head, jobs=jobs, before=before).tidy()

    def done(self, shown: Shared, unshown: Shared, me: Caller, told: str) -> SharedSteps:
        """Answer; without an answer, try again or give up. An answer that takes its time is one that is lost."""
        over = self.over(me) if self.rules.intent_then_change else me._replace(step="announce")
        is_announced = self.rules.intent_then_change or self.wanted[me.change] == PAUSED
        yield f"{told}, answers 200", shown, self.over(me) if is_announced else over
        yield f"{told}, but the answer is lost", unshown, self.over(me)
        if self.world.retries and not me.is_retry:
            yield f"{told}, but the answer is lost, tries again", unshown, Caller(change=me.change, is_retry=True)

    def over(self, me: Caller) -> Caller:
        """Go on with the caller's next change, if there is one."""
        next_change = me.change + 1
        return Caller(change=next_change) if next_change < len(self.wanted) else Caller(GONE)
