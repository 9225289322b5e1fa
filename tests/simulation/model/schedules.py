"""The fourth model: a schedule, its planners, callers who change it, and ticks, in every state that they can be in.

Runs are at 1, 2, 3 and 4 at most. Planners and callers crash after each step, stall, and begin again. A tick raises the
fence, then queries and sends. Clocks say anything. What a transaction did may not be seen at once.

What the core promises is assumed, for the other models have its steps. A process that has submitted an occurrence
knows that it is sent if the fence is past it, and left to a tick if not, unless it is cancelled. So a submission is one
step: one that ends in the middle is repeated, or never answered. The same holds for planning jobs.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests.simulation.model.explore import GONE, IDLE, Kinds, Model, Steps, together
from tests.simulation.model.schedule_store import (
    CREATED,
    NONE,
    PAUSED,
    SENT,
    Head,
    Occurrences,
    Plan,
    ScheduleRules,
    Shared,
    World,
)


# The cutover: where one generation ends and the next begins, and what ends there.
class Cutover:
    """Choose a change's cutover, and return which occurrences its transaction cancels."""

    def __init__(self, rules: ScheduleRules, world: World) -> None:
        self.rules, self.world = rules, world

    def choices(self, fence: int, head: Head | None, *, is_pause: bool) -> Iterable[int]:
        """Return where a change may choose its cutover: but where there are no runs before it, no clock decides it."""
        if head is None:
            return range(self.world.last)
        last = head.froms[-1] if self.rules.cutover_is_not_before_the_last else 0
        if head.is_paused and not is_pause:
            return range(max(fence, last), self.world.last + 1)
        if self.rules.cutover_is_not_by_the_clock:
            return [max(fence, last, self.least(head))]
        return range(last, self.world.last + 1)

    def is_too_many(self, head: Head, cutover: int) -> bool:
        """Return whether a change at a cutover would forget a generation of which runs are due after it."""
        forgotten = head.generation - self.world.kept
        if not self.rules.changes_only_within_kept_generations or PAUSED in head.definitions[max(0, forgotten - 1) :]:
            return False
        return any(generation == forgotten for generation, _ in self.delayed(head, cutover))

    def least(self, head: Head) -> int:
        """Return the least cutover that leaves no more to be cancelled than a transaction can."""
        definition = head.definitions[-1]
        there = self.world.times(definition, to=self.world.step(definition, head.planned_to))
        return there[-self.world.most - 1] if 0 < self.world.most < len(there) else 0

    def ended(self, head: Head, cutover: int, *, is_pause: bool) -> Iterator[tuple[int, int]]:
        """Yield the generation and the time of each occurrence that ends at a cutover of a head."""
        definition, to = head.definitions[-1], head.planned_to
        to = self.world.step(definition, to) if self.rules.cancels_to_the_next_step else to
        for time in self.world.times(definition, after=cutover, to=to):
            yield head.generation, time
        if is_pause and self.rules.pause_cancels_delayed_runs:
            yield from self.delayed(head, cutover)

    def delayed(self, head: Head, cutover: int) -> Iterator[tuple[int, int]]:
        """Yield what is due after a cutover only for its jitter, of the generations that the head still knows."""
        ends = (*head.froms[1:], cutover)
        for generation, (since, end) in enumerate(zip(head.froms, ends, strict=True), 1):
            if generation < head.generation - self.world.kept:
                continue
            definition = head.definitions[generation - 1]
            since = max(since, cutover - self.world.delayed(definition))
            if generation == head.generation or self.rules.pause_cancels_of_all_generations:
                for time in self.world.times(definition, after=since, to=end):
                    yield generation, time


# A caller.
class Caller(NamedTuple):
    """A caller: which of its changes it is at, whether it tries that again, what it read, and its cutover.

    `done` is up to where it has planned the old rule.
    """

    step: str = IDLE
    change: int = 0
    is_retry: bool = False
    fence: int = 0
    head: Head | None = None
    cutover: int = 0
    done: int = 0


class Changing:
    """Read the fence, then the head; submit the intent; plan the old rule up to the cutover; and the transaction.

    What is refused starts again. Without a head, it is created.
    """

    def __init__(self, rules: ScheduleRules, world: World, occurrences: Occurrences, desired: str) -> None:
        self.rules, self.world, self.occurrences, self.desired = rules, world, occurrences, desired
        self.cutover = Cutover(rules, world)

    def steps(self, shared: Shared, me: Caller, others: tuple[Caller, ...] = ()) -> Steps:
        if me.step == GONE:
            return
        yield from self.begin(shared, me) if me.step == IDLE else getattr(self, me.step)(shared, me)
        if me.step != IDLE:
            yield "crashes", shared, self.over(me)

    def begin(self, shared: Shared, me: Caller) -> Steps:
        if self.rules.fence_then_head:
            yield f"reads the fence {shared.fence}", shared, me._replace(step="read_head", fence=shared.fence)
        else:
            yield from self.read_head(shared, me)

    def read_head(self, shared: Shared, me: Caller) -> Steps:
        may_find = [shared.head]
        if shared.before is not None and not self.rules.head_is_read_by_write:
            may_find.append(shared.before)
        for head in may_find:
            yield from self.find(shared, me, head)

    def find(self, shared: Shared, me: Caller, head: Head | None) -> Steps:
        desired = self.desired[me.change]
        if head is None and desired == PAUSED:
            yield "finds no head, answers 404", shared, self.over(me)
        elif head is not None and head.definitions[-1] == desired:
            yield "finds what it wants, answers 200", shared, self.over(me)
        elif head is not None and not self.rules.fence_then_head:
            yield self.describe(head), shared, me._replace(step="read_fence", head=head)
        else:
            for cutover in self.cutover.choices(me.fence, head, is_pause=desired == PAUSED):
                yield f"{self.describe(head)}, from {cutover} on", shared, self.chosen(me, head, cutover)

    def read_fence(self, shared: Shared, me: Caller) -> Steps:
        for cutover in self.cutover.choices(shared.fence, me.head, is_pause=self.desired[me.change] == PAUSED):
            yield f"reads the fence, from {cutover} on", shared, self.chosen(me, me.head, cutover)

    @staticmethod
    def describe(head: Head | None) -> str:
        return f"finds generation {head.generation}, planned to {head.planned_to}" if head else "finds no head"

    def chosen(self, me: Caller, head: Head | None, cutover: int) -> Caller:
        """Go on once the cutover is known. Of the fence no more is needed."""
        if head is not None and self.desired[me.change] != PAUSED and self.cutover.is_too_many(head, cutover):
            return self.over(me)
        me = me._replace(fence=0, head=head, cutover=cutover, done=head.planned_to if head is not None else 0)
        is_intent_first = self.rules.intent_then_change and self.desired[me.change] != PAUSED
        return me._replace(step="announce") if is_intent_first else self.announced(me)

    def announce(self, shared: Shared, me: Caller) -> Steps:
        generation = me.head.generation + 1 if me.head else 1
        is_over = not self.world.times(self.desired[me.change], after=me.cutover)
        after = shared if is_over else shared.announce((generation, me.cutover))
        mine = self.announced(me) if self.rules.intent_then_change else self.over(me)
        yield f"submits the intent of generation {generation} from {me.cutover}", after, mine

    def announced(self, me: Caller) -> Caller:
        head = me.head
        if head is None:
            return me._replace(step="create")
        is_late = self.left(me, head) and self.rules.old_rule_is_planned_to_the_cutover
        return me._replace(step="plan_old") if is_late else me._replace(step="change", done=0)

    def left(self, me: Caller, head: Head) -> list[int]:
        return self.world.times(head.definitions[-1], after=me.done, to=me.cutover)

    def plan_old(self, shared: Shared, me: Caller) -> Steps:
        time, generation = self.left(me, me.head)[0], me.head.generation
        after = self.occurrences.submit(shared, generation, time)
        yield f"submits {time} of generation {generation}", after, self.announced(me._replace(done=time))

    def create(self, shared: Shared, me: Caller) -> Steps:
        if shared.head is not None:
            yield "finds a head, begins again", shared, Caller(change=me.change, is_retry=me.is_retry)
        else:
            head = Head((me.cutover,), self.desired[me.change], me.cutover)
            created = shared._replace(head=head, jobs=(NONE * self.world.last,)).tidy()
            yield from self.done(created, created, me, f"puts the head from {me.cutover}")

    def change(self, shared: Shared, me: Caller) -> Steps:
        if self.is_refused(shared, me):
            yield "is refused, begins again", shared, Caller(change=me.change, is_retry=me.is_retry)
            return
        shown, unshown = (self.changed(shared, me, is_answered=answered) for answered in (True, False))
        yield from self.done(shown, unshown, me, f"changes generation {me.head.generation} at {me.cutover}")

    def is_refused(self, shared: Shared, me: Caller) -> bool:
        head, rules = shared.head, self.rules
        is_past = shared.fence > me.cutover and rules.changes_under_the_fence_alone
        is_other = head.generation != me.head.generation and rules.changes_its_generation_alone
        is_moved = head.planned_to != me.head.planned_to and rules.changes_what_is_planned_as_read_alone
        return is_past or is_other or is_moved

    def changed(self, shared: Shared, me: Caller, *, is_answered: bool) -> Shared:
        """Return what the transaction leaves; unless it is answered, reads may not show all of it yet."""
        old = me.head
        is_pause = self.desired[me.change] == PAUSED
        for generation, time in self.cutover.ended(old, me.cutover, is_pause=is_pause):
            shared = self.occurrences.cancel(shared, generation, time, is_answered=is_answered)
        head = Head((*old.froms, me.cutover), old.definitions + self.desired[me.change], me.cutover)
        jobs = (*shared.jobs, NONE * self.world.last) if len(shared.jobs) < head.generation else shared.jobs
        before = None if is_answered or self.rules.head_is_read_by_write else shared.head
        return shared._replace(head=head, jobs=jobs, before=before).tidy()

    def done(self, shown: Shared, unshown: Shared, me: Caller, what: str) -> Steps:
        """Answer; without an answer, try again or give up. An answer that takes its time is one that is lost."""
        over = self.over(me) if self.rules.intent_then_change else me._replace(step="announce")
        is_announced = self.rules.intent_then_change or self.desired[me.change] == PAUSED
        yield f"{what}, answers 200", shown, self.over(me) if is_announced else over
        yield f"{what}, but the answer is lost", unshown, self.over(me)
        if self.world.retries and not me.is_retry:
            yield f"{what}, but the answer is lost, tries again", unshown, Caller(change=me.change, is_retry=True)

    def over(self, me: Caller) -> Caller:
        """Go on with the caller's next change, if there is one."""
        next_change = me.change + 1
        return Caller(change=next_change) if next_change < len(self.desired) else Caller(GONE)


# A planner.
class Planner(NamedTuple):
    """A planner with a planning job, which goes from one instant to another; `done` is up to where it has submitted."""

    step: str = IDLE
    generation: int = 0
    definition: str = ""
    since: int = 0
    to: int = 0
    done: int = 0


class Planning:
    """Read the head; submit the occurrences of a step, and the next planning job; set planned_to; acknowledge.

    A planner that reads the head as it was before a transaction is one that read it earlier and stood still. One that
    crashes has its planning job again, for as long as planned_to is not set.
    """

    def __init__(self, rules: ScheduleRules, world: World, occurrences: Occurrences) -> None:
        self.rules, self.world, self.occurrences = rules, world, occurrences
        self.order = ["submit", "announce", "note"]
        if not rules.submitted_then_planned_to:
            self.order = ["announce", "note", "submit"]
        if not rules.next_job_then_planned_to:
            self.order = ["submit", "note", "announce"]

    def steps(self, shared: Shared, me: Planner, others: tuple[Planner, ...] = ()) -> Steps:
        if me.step == IDLE:
            yield from self.begin(shared)
            return
        yield from getattr(self, me.step)(shared, me)
        yield "crashes", shared, Planner()

    def begin(self, shared: Shared) -> Steps:
        head, plan = shared.head, self.plan_in_turn(shared)
        if head is not None and plan:
            generation, since = plan
            first = self.world.step(head.definitions[-1], since)
            for to in range(first, first + 1 if self.rules.step_is_not_by_the_clock else self.world.last + 1):
                started = Planner("begin", generation, head.definitions[-1], since, to, since)
                name = f"begins generation {generation} from {since} to {to}"
                yield name, shared, self.next_step(started)
        for plan in shared.plans:
            if self.is_taken_for_done(plan, shared):
                left = shared._replace(plans=shared.plans - {plan})
                yield f"acknowledges generation {plan[0]} from {plan[1]}", left, Planner()

    @staticmethod
    def plan_in_turn(shared: Shared) -> Plan | None:
        head = shared.head
        if head is None or head.is_paused or (head.generation, head.planned_to) not in shared.plans:
            return None
        return head.generation, head.planned_to

    def is_taken_for_done(self, plan: Plan, shared: Shared) -> bool:
        """Return whether a planning job that is to be put back is acknowledged, where a rule is left out."""
        head, (generation, since) = shared.head, plan
        is_newer = head is None or generation > head.generation
        if is_newer and not self.rules.newer_is_put_back:
            return True
        if head is not None and is_newer and not self.rules.generations_are_compared_first:
            return since < head.planned_to
        return not is_newer and plan != self.plan_in_turn(shared) and not self.rules.early_is_put_back

    def submit(self, shared: Shared, me: Planner) -> Steps:
        time = self.left(me)[0]
        after, mine = self.occurrences.submit(shared, me.generation, time), me._replace(done=time)
        yield f"submits {time} of generation {me.generation}", after, mine if self.left(mine) else self.next_step(me)

    def left(self, me: Planner) -> list[int]:
        return self.world.times(me.definition, after=me.done, to=me.to)

    def announce(self, shared: Shared, me: Planner) -> Steps:
        is_over = not self.world.times(me.definition, after=me.to)
        after = shared if is_over else shared.announce((me.generation, me.to))
        yield f"submits the planning job from {me.to}", after, self.next_step(me)

    def note(self, shared: Shared, me: Planner) -> Steps:
        head = shared.head
        is_as_read = (head.generation, head.planned_to) == (me.generation, me.since)
        if is_as_read or not self.rules.planned_to_is_conditional:
            noted = shared._replace(head=head._replace(planned_to=me.to)).tidy()
            yield f"sets planned_to to {me.to}", noted, self.next_step(me)
        else:
            yield "finds planned_to moved", shared, Planner()

    def next_step(self, me: Planner) -> Planner:
        """Go on with the next thing to do, if any is left."""
        for step in self.order[self.order.index(me.step) + 1 if me.step in self.order else 0 :]:
            if step != "submit" or self.left(me):
                return me._replace(step=step)
        return Planner()


# All processes together.
UPDATE, AGAIN, PAUSE, RESUME, CREATE = "B", "C", PAUSED, "R", CREATED
WORLDS = {
    "updated and paused, one planner": World(states=92_611, callers=[UPDATE, PAUSE], planners=1, jitter={CREATE: 1}),
    "updated and paused, two planners": World(states=444_245, callers=[UPDATE, PAUSE], jitter={CREATE: 1}),
    "updated and paused, each tried again": World(states=667_416, callers=[UPDATE, PAUSE], retries=True),
    "updated and paused, in steps of two": World(states=1_081_612, callers=[UPDATE, PAUSE], last=4, stride=2),
    "updated and paused, one cancellation at most": World(states=1_895_891, callers=[UPDATE, PAUSE], last=4, most=1),
    "updated and paused, to a rule that fires less": World(
        states=5_224_603, callers=[UPDATE, PAUSE], last=4, fires={UPDATE: [2, 4]}, jitter={UPDATE: 1}
    ),
    "updated, paused and resumed at once": World(states=5_489_871, callers=[UPDATE, PAUSE, RESUME]),
    "paused, then resumed": World(states=339_789, callers=[PAUSE + RESUME], last=4, jitter={CREATE: 1}),
    "paused and resumed, then updated": World(states=338_229, callers=[PAUSE + RESUME + UPDATE], jitter={CREATE: 1}),
    "updated twice and paused, one generation kept": World(
        states=436_969, callers=[UPDATE + AGAIN, PAUSE], planners=1, jitter={CREATE: 1}, kept=1
    ),
    "created, then updated or paused": World(
        states=1_073_673, callers=[CREATE + UPDATE, CREATE + PAUSE], planners=1, is_created=False
    ),
}


class ScheduleModel(Model):
    """All processes together."""

    def __init__(self, rules: ScheduleRules, world: World) -> None:
        self.world = world
        self.occurrences = Occurrences(rules, world)
        self.planning = Planning(rules, world, self.occurrences)
        self.changing = [Changing(rules, world, self.occurrences, desired) for desired in world.callers]

    def start(self) -> Shared:
        return self.world.first()

    def kinds(self) -> Kinds:
        return [
            ((Planner(),) * self.world.planners, together("planner", self.planning.steps)),
            *(((Caller(),), together(f"caller of {each.desired}", each.steps)) for each in self.changing),
            ((), self.occurrences.tick),
            ((), self.occurrences.show),
        ]

    def broken(self, shared: Shared) -> str:
        """Return what is broken where an occurrence was sent that is not its generation's."""
        for generation, jobs in enumerate(shared.jobs, 1):
            head = shared.head
            since, until = self.span(head, generation)
            if SENT in jobs[:since]:
                return "never both"
            if SENT in jobs[until:]:
                return "nothing after a pause" if PAUSED in head.definitions[generation - 1 :] else "never both"
        return ""

    def span(self, head: Head, generation: int) -> tuple[int, int]:
        """Return after which time a generation serves, and up to which.

        What came before serves up to its cutover. At a pause that ends, too, which is due after it.
        """
        since = max(head.froms[:generation])
        definition = head.definitions[generation - 1]
        if definition == PAUSED:
            return since, since
        later = list(zip(head.froms, head.definitions, strict=True))[generation:]
        ends = [start - self.world.delayed(definition) for start, what in later if what == PAUSED]
        return since, max(since, min([*head.froms[generation:][:1], *ends, self.world.last]))

    def lost(self, shared: Shared) -> str:
        end = self.undisturbed(shared)
        for generation, jobs in enumerate(end.jobs, 1):
            head = end.head
            since, until = self.span(head, generation)
            own = self.world.times(head.definitions[generation - 1], after=since, to=until)
            if any(jobs[time - 1] != SENT for time in own):
                is_dead = generation == head.generation and head.planned_to < own[-1]
                return "a schedule does not die" if is_dead else "never neither"
        return self.broken(end)

    def undisturbed(self, shared: Shared) -> Shared:
        """Show all, drop what is put back, plan to the end, tick past all, and let nothing go wrong."""
        shared = self.occurrences.shown(shared)._replace(before=None)
        # What is put back is dropped once nobody lives who could make it be in turn.
        in_turn = self.planning.plan_in_turn(shared)
        shared = shared._replace(plans=frozenset({in_turn} if in_turn else ()))
        me = Planner()
        while me.step != IDLE or self.planning.plan_in_turn(shared):
            _, shared, me = next(self.planning.steps(shared, me))
        return self.occurrences.send(shared._replace(fence=self.world.last_fence))
