"""The fourth model: a schedule, its planners, callers who change it, and ticks, in every state that they can be in.

Runs are at 1, 2, 3 and 4 at most. Planners and callers crash after each step, stall, and begin again. A tick raises the
fence, then queries and sends. Clocks say anything. What a transaction did may not be seen at once.

What the core promises is assumed, for the other models have its steps. A process that has submitted an occurrence
knows that it is sent if the fence is past it, and left to a tick if not, unless it is cancelled. So a submission is one
step: one that ends in the middle is repeated, or never answered. The same holds for planning jobs.
"""

from tests.simulation.model.explore import IDLE, Kinds, Model, together
from tests.simulation.model.schedule_processes import Caller, Changing, Planner, Planning
from tests.simulation.model.schedule_store import CREATED, PAUSED, SENT, Head, Occurrences, ScheduleRules, Shared, World

UPDATE, AGAIN, PAUSE, RESUME, CREATE = "B", "C", PAUSED, "R", CREATED
ONE_PLANNER = "updated and paused, one planner"
WORLDS = {
    ONE_PLANNER: World(states=92_611, callers=[UPDATE, PAUSE], planners=1, jitter={CREATE: 1}),
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
            head = head_of(shared)
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
            head = head_of(end)
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


def head_of(shared: Shared) -> Head:
    """Return the head, which there is where there are occurrences."""
    assert shared.head is not None
    return shared.head
