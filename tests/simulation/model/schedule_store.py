"""What planners, callers and ticks of a schedule share: rules, head, occurrences, planning jobs and fence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from tests.simulation.model.explore import Steps
from tests.simulation.model.store import rule


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleRules:
    """The rules, in the order of the steps that keep to them."""

    fence_then_head: bool = rule("never both")
    head_is_read_by_write: bool = rule("never both")
    cutover_is_not_by_the_clock: bool = rule("never both")
    cutover_is_not_before_the_last: bool = rule("never both")
    changes_only_within_kept_generations: bool = rule(
        "nothing after a pause", "updated twice and paused, one generation kept"
    )
    intent_then_change: bool = rule("a schedule does not die")
    old_rule_is_planned_to_the_cutover: bool = rule("never neither")
    changes_under_the_fence_alone: bool = rule("nothing after a pause")
    changes_its_generation_alone: bool = rule("a schedule does not die")
    changes_what_is_planned_as_read_alone: bool = rule("nothing after a pause")
    cancels_to_the_next_step: bool = rule("nothing after a pause")
    cancels_what_is_not_written: bool = rule("nothing after a pause")
    pause_cancels_delayed_runs: bool = rule("nothing after a pause")
    pause_cancels_of_all_generations: bool = rule("nothing after a pause")
    generation_is_in_the_id: bool = rule("never neither")

    pending_rows_then_changed: bool = rule("nothing after a pause")
    tick_reads_cancellations_by_write: bool = rule("nothing after a pause")
    late_path_reads_cancellations_by_write: bool = rule("nothing after a pause")

    newer_is_put_back: bool = rule("a schedule does not die")
    generations_are_compared_first: bool = rule("a schedule does not die")
    early_is_put_back: bool = rule("a schedule does not die", "updated and paused, two planners")
    step_is_not_by_the_clock: bool = rule("nothing after a pause")
    submitted_then_planned_to: bool = rule("never neither")
    next_job_then_planned_to: bool = rule("a schedule does not die")
    planned_to_is_conditional: bool = rule("a schedule does not die")


# What becomes of an occurrence. One that is VEILED is cancelled, but a read may not show that yet; it has a row if
# CANCELLED WRITTEN is what it would be.
NONE, WRITTEN, SENT, CANCELLED, VEILED, VEILED_WRITTEN = "-wscvV"
VEILS = {NONE: VEILED, WRITTEN: VEILED_WRITTEN}
CREATED, PAUSED = "AP"

# A planning job: of which generation, and from which time on.
Plan = tuple[int, int]


class Head(NamedTuple):
    """The head: from when each generation serves, its definition by a letter, and up to where the last is planned."""

    froms: tuple[int, ...]
    definitions: str
    planned_to: int

    @property
    def generation(self) -> int:
        return len(self.froms)

    @property
    def is_paused(self) -> bool:
        return self.definitions[-1] == PAUSED


class Shared(NamedTuple):
    """What all processes share. `jobs` has a letter for each occurrence of each generation.

    `plans` are the planning jobs that are not acknowledged. Those are dropped at once that any planner would
    acknowledge. `before` is the head that reads may still show instead of the latest.
    """

    jobs: tuple[str, ...] = ()
    head: Head | None = None
    plans: frozenset[Plan] = frozenset()
    fence: int = 0
    before: Head | None = None

    def job(self, generation: int, time: int) -> str:
        return self.jobs[generation - 1][time - 1]

    def put(self, generation: int, time: int, state: str) -> "Shared":
        jobs, own = list(self.jobs), self.jobs[generation - 1]
        jobs[generation - 1] = own[: time - 1] + state + own[time:]
        return self._replace(jobs=tuple(jobs))

    def announce(self, plan: Plan) -> "Shared":
        return self._replace(plans=self.plans | {plan}).tidy()

    def tidy(self) -> "Shared":
        """Drop the planning jobs that any planner would acknowledge, for ever."""
        head = self.head
        if head is None:
            return self
        first = (head.generation + 1, -1) if head.is_paused else (head.generation, head.planned_to)
        return self._replace(plans=frozenset(plan for plan in self.plans if plan >= first))


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """A world: `callers` has for each caller the definitions that it wants, one after another.

    A planner's step goes over `stride` instants. A definition fires at each instant unless it is in `fires`, and has
    the jitter that is in `jitter`. A caller without an answer tries once more where it `retries`. A transaction cancels
    at most `most` occurrences after its cutover, if there is such a limit. A head keeps `kept` generations.

    `states` is how many there are with every rule kept.
    """

    states: int
    callers: Sequence[str]
    last: int = 3
    stride: int = 1
    planners: int = 2
    is_created: bool = True
    retries: bool = False
    most: int = 0
    kept: int = 20
    fires: Mapping[str, Sequence[int]] = field(default_factory=dict)
    jitter: Mapping[str, int] = field(default_factory=dict)

    @property
    def last_fence(self) -> int:
        return self.last + max(self.jitter.values(), default=0)

    def delayed(self, definition: str) -> int:
        """Return by how much the occurrences of a definition are due after their times."""
        return self.jitter.get(definition, 0)

    def times(self, definition: str, *, after: int = 0, to: int | None = None) -> list[int]:
        until = self.last if to is None else to
        if definition == PAUSED:
            return []
        return [time for time in self.fires.get(definition, range(1, self.last + 1)) if after < time <= until]

    def step(self, definition: str, planned_to: int) -> int:
        """Return up to where the next step goes: to its first time at least."""
        coming = self.times(definition, after=planned_to)
        return min(max(planned_to + self.stride, coming[0]), self.last) if coming else self.last

    def first(self) -> Shared:
        """Return the schedule as it was created, if it was: ahead of the fence."""
        if not self.is_created:
            return Shared()
        return Shared((NONE * self.last,), Head((1,), CREATED, 1), frozenset({(1, 1)}))


class Occurrences:
    """Submit occurrences and send them, unless they are seen to be cancelled."""

    def __init__(self, rules: ScheduleRules, world: World) -> None:
        self.rules, self.world = rules, world
        self.late_path_sees = rules.pending_rows_then_changed and rules.late_path_reads_cancellations_by_write
        self.tick_sees = rules.pending_rows_then_changed and rules.tick_reads_cancellations_by_write

    def submit(self, shared: Shared, generation: int, time: int) -> Shared:
        """Submit an occurrence by the table's route: write its row, and send it if the fence is past it."""
        state = shared.job(generation, time)
        if state in (SENT, CANCELLED) or self.is_cancelled_by_another(shared, time):
            return shared
        if not self.is_past(shared, generation, time):
            return shared.put(generation, time, {NONE: WRITTEN, VEILED: VEILED_WRITTEN}.get(state, state))
        is_seen_cancelled = state in (VEILED, VEILED_WRITTEN) and self.late_path_sees
        return shared if is_seen_cancelled else shared.put(generation, time, SENT)

    def is_cancelled_by_another(self, shared: Shared, time: int) -> bool:
        """Return whether an occurrence is taken for that of another generation, which is cancelled."""
        return not self.rules.generation_is_in_the_id and any(own[time - 1] == CANCELLED for own in shared.jobs)

    def tick(self, shared: Shared, nobody: tuple[()]) -> Steps:
        if shared.fence < self.world.last_fence:
            yield f"tick raises the fence to {shared.fence + 1}", shared._replace(fence=shared.fence + 1), nobody
        yield "tick sends all that it finds", self.send(shared), nobody

    def send(self, shared: Shared) -> Shared:
        states = WRITTEN if self.tick_sees else WRITTEN + VEILED_WRITTEN
        generations, times = range(1, len(shared.jobs) + 1), range(1, self.world.last + 1)
        for job in product(generations, times):
            if shared.job(*job) in states and self.is_past(shared, *job):
                shared = shared.put(*job, SENT)
        return shared

    def is_past(self, shared: Shared, generation: int, time: int) -> bool:
        """Return whether the fence is past the due time of an occurrence."""
        return time + self.world.delayed(shared.head.definitions[generation - 1]) <= shared.fence

    def cancel(self, shared: Shared, generation: int, time: int, *, is_answered: bool) -> Shared:
        """Cancel an occurrence; unless that is answered, plain reads may not show it yet."""
        state = shared.job(generation, time)
        if state == SENT or (state == NONE and not self.rules.cancels_what_is_not_written):
            return shared
        # Nobody takes one for none that is only not to be seen yet.
        is_shown = is_answered or (self.tick_sees and self.late_path_sees)
        return shared.put(generation, time, CANCELLED if is_shown else VEILS.get(state, state))

    def show(self, shared: Shared, nobody: tuple[()]) -> Steps:
        """Show what a transaction did, once that is answered or before: the rows of each table by themselves."""
        yield "reads show the cancellations", self.shown(shared), nobody
        yield "reads show the head", shared._replace(before=None), nobody

    @staticmethod
    def shown(shared: Shared) -> Shared:
        veils = {ord(VEILED): CANCELLED, ord(VEILED_WRITTEN): CANCELLED}
        return shared._replace(jobs=tuple(own.translate(veils) for own in shared.jobs))
