"""A planner, step by step."""

from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.model.schedules.rules import ScheduleRules
from tests.simulation.model.schedules.shared import Occurrences, Plan, Shared, SharedSteps, World
from tests.simulation.model.store import IDLE


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

    def together(self, shared: Shared, planners: tuple[Planner, ...]) -> SharedSteps:
        for index, me in enumerate(planners):
            others = planners[:index] + planners[index + 1 :]
            for name, after, mine in self.steps(shared, me):
                yield f"planner {name}", after, tuple(sorted((mine, *others)))

    def steps(self, shared: Shared, me: Planner) -> SharedSteps:
        if me.step == IDLE:
            yield from self.begin(shared)
            return
        step: Callable[[Shared, Planner], SharedSteps] = getattr(self, me.step)
        yield from step(shared, me)
        yield "crashes", shared, Planner()

    def begin(self, shared: Shared) -> SharedSteps:
        head, plan = shared.head, self.plan_in_turn(shared)
        if head is not None and plan:
            generation, since = plan
            first = self.world.step(head.definitions[-1], since)
            for to in range(first, first + 1 if self.rules.step_is_not_by_the_clock else self.world.last + 1):
                begun = Planner("begin", generation, head.definitions[-1], since, to, since)
                name = f"begins generation {generation} from {since} to {to}"
                yield name, shared, self.next_step(begun)
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
        """Tell whether a planning job that is to be put back is acknowledged, where a rule is left out."""
        head, (generation, since) = shared.head, plan
        is_newer = head is None or generation > head.generation
        if is_newer and not self.rules.newer_is_put_back:
            return True
        if head is not None and is_newer and not self.rules.generations_are_compared_first:
            return since < head.planned_to
        return not is_newer and plan != self.plan_in_turn(shared) and not self.rules.early_is_put_back

    def submit(self, shared: Shared, me: Planner) -> SharedSteps:
        nominal = self.left(me)[0]
        after, mine = self.occurrences.submit(shared, me.generation, nominal), me._replace(done=nominal)
        yield f"submits {nominal} of generation {me.generation}", after, mine if self.left(mine) else self.next_step(me)

    def left(self, me: Planner) -> list[int]:
        return self.world.nominals(me.definition, after=me.done, to=me.to)

    def announce(self, shared: Shared, me: Planner) -> SharedSteps:
        is_over = not self.world.nominals(me.definition, after=me.to)
        after = shared if is_over else shared.announce((me.generation, me.to))
        yield f"submits the planning job from {me.to}", after, self.next_step(me)

    def note(self, shared: Shared, me: Planner) -> SharedSteps:
        head = shared.head
        assert head is not None
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
