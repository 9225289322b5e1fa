"""Search: visit every state that processes can reach, nearest first, up to the first that breaks a promise."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

# What a step is called, what all processes share after it, and what the processes of its kind keep to themselves.
Step = tuple[str, Any, Any]
Steps = Callable[[Any, Any], Iterable[Step]]
BITS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Explored:
    """What a search visited: all there is, or all up to `broken`, the first promise that it saw broken, by `trace`.

    `depth` is how many steps the last state is from the first, and `shared` what all processes share in it.
    """

    states: int
    transitions: int
    depth: int
    broken: str
    trace: Sequence[str]
    shared: Any


class Numbers:
    """Numbers for the parts of states, of which there are few: a state is their numbers side by side in one integer."""

    def __init__(self) -> None:
        self._of: dict[Hashable, int] = {}
        self._parts: list[Any] = []

    def state(self, *parts: Hashable) -> int:
        return sum(self._number(part) << BITS * place for place, part in enumerate(parts))

    def part(self, state: int, place: int) -> Any:
        return self._parts[state >> BITS * place & (1 << BITS) - 1]

    def _number(self, part: Hashable) -> int:
        number = self._of.setdefault(part, len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        if number >> BITS:
            raise OverflowError(f"more than {number} parts: {BITS} bits cannot number them")
        return number


class Search:
    """A search from a start, whose first part is shared; each kind of process has one other part, and its steps."""

    def __init__(self, start: Sequence[Hashable], kinds: Sequence[Steps], broken: Callable[..., str]) -> None:
        self._numbers = Numbers()
        self._kinds: list[tuple[int, Steps, int, dict[int, dict[int, str]]]] = [
            (place, steps, self._mask(place), {}) for place, steps in enumerate(kinds, start=1)
        ]
        self._broken = broken
        self._start = self._numbers.state(*start)
        self._parents = {self._start: self._start}

    def run(self) -> Explored:
        waiting, transitions, broken = deque([self._start]), 0, ""
        while waiting:
            state = waiting.popleft()
            broken = self._broken(*self._parts(state))
            if broken:
                break
            for after in self._successors(state):
                transitions += 1
                if after not in self._parents:
                    self._parents[after] = state
                    waiting.append(after)
        return self._explored(state, transitions, broken)

    def _explored(self, last: int, transitions: int, broken: str) -> Explored:
        trace = self._way_to(last)
        return Explored(
            states=len(self._parents),
            transitions=transitions,
            depth=len(trace),
            broken=broken,
            trace=trace,
            shared=self._numbers.part(last, 0),
        )

    def _successors(self, state: int) -> list[int]:
        after: list[int] = []
        for place, steps, mask, known in self._kinds:
            here = state & mask
            if here not in known:
                known[here] = self._steps(here, place, steps)
            elsewhere = state - here
            after += [elsewhere + moved for moved in known[here]]
        return after

    def _steps(self, here: int, place: int, steps: Steps) -> dict[int, str]:
        """Return the steps of one kind of process; what the others keep is left zero."""
        after: dict[int, str] = {}
        for name, shared, own in steps(self._numbers.part(here, 0), self._numbers.part(here, place)):
            after.setdefault(self._numbers.state(shared) + (self._numbers.state(own) << BITS * place), name)
        after.pop(here, None)
        return after

    def _way_to(self, state: int) -> list[str]:
        names = []
        while state != self._start:
            parent = self._parents[state]
            names.append(self._name(parent, state))
            state = parent
        return names[::-1]

    def _name(self, parent: int, state: int) -> str:
        found = (known[parent & mask].get(state - (parent & ~mask)) for _, _, mask, known in self._kinds)
        return str(next(name for name in found if name))

    def _parts(self, state: int) -> list[Any]:
        return [self._numbers.part(state, place) for place in range(len(self._kinds) + 1)]

    @staticmethod
    def _mask(place: int) -> int:
        part = (1 << BITS) - 1
        return part | part << BITS * place
