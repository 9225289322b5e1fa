"""Where one generation ends and the next begins, and what ends there."""

from collections.abc import Iterable, Iterator

from tests.simulation.model.schedules.rules import ScheduleRules
from tests.simulation.model.schedules.shared import PAUSED, Head, World


class Cutting:
    """Choose a change's cut, and tell which occurrences its transaction cancels."""

    def __init__(self, rules: ScheduleRules, world: World) -> None:
        self.rules, self.world = rules, world

    def choices(self, fence: int, head: Head | None, *, is_pause: bool) -> Iterable[int]:
        """Return where a change may choose its cut: but where there are no runs before it, no clock decides it."""
        if head is None:
            return range(self.world.last)
        last = head.froms[-1] if self.rules.cut_is_not_before_the_last else 0
        if head.is_paused and not is_pause:
            return range(max(fence, last), self.world.last + 1)
        if self.rules.cut_is_not_by_the_clock:
            return [max(fence, last, self.least(head))]
        return range(last, self.world.last + 1)

    def is_too_many(self, head: Head, cut: int) -> bool:
        """Tell whether a change at a cut would forget a generation of which runs are due after it."""
        forgotten = head.generation - self.world.kept
        if not self.rules.changes_what_is_still_known_alone or PAUSED in head.definitions[max(0, forgotten - 1) :]:
            return False
        return any(generation == forgotten for generation, _ in self.put_off(head, cut))

    def least(self, head: Head) -> int:
        """Return the least cut that leaves no more to be cancelled than a transaction can."""
        definition = head.definitions[-1]
        there = self.world.nominals(definition, to=self.world.step(definition, head.planned_to))
        return there[-self.world.most - 1] if 0 < self.world.most < len(there) else 0

    def ended(self, head: Head, cut: int, *, is_pause: bool) -> Iterator[tuple[int, int]]:
        """Yield the generation and the nominal of each occurrence that ends at a cut of a head."""
        definition, to = head.definitions[-1], head.planned_to
        to = self.world.step(definition, to) if self.rules.cancels_to_the_next_step else to
        for nominal in self.world.nominals(definition, after=cut, to=to):
            yield head.generation, nominal
        if is_pause and self.rules.pause_cancels_what_is_put_off:
            yield from self.put_off(head, cut)

    def put_off(self, head: Head, cut: int) -> Iterator[tuple[int, int]]:
        """Yield what is due after a cut only for its jitter, of the generations that the head still knows."""
        ends = (*head.froms[1:], cut)
        for generation, (since, end) in enumerate(zip(head.froms, ends, strict=True), 1):
            if generation < head.generation - self.world.kept:
                continue
            definition = head.definitions[generation - 1]
            since = max(since, cut - self.world.put_off(definition))
            if generation == head.generation or self.rules.pause_cancels_of_all_generations:
                for nominal in self.world.nominals(definition, after=since, to=end):
                    yield generation, nominal
