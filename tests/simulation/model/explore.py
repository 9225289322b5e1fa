"""Search: visit every state that processes can reach, nearest first, up to the first that breaks a promise."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# What a step is called, what all processes share after it, and what its process keeps, or all of its kind.
Step = tuple[str, Any, Any]
Steps = Iterator[Step]
StepsOf = Callable[..., Steps]
Kinds = Sequence[tuple[Any, StepsOf]]
IDLE, RUNS, GONE = "idle", "runs", "gone"
BITS = 20
PART = (1 << BITS) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Explored:
    """What a search visited: all there is, or all up to `broken`, the first promise that it saw broken, by `trace`.

    `depth` is how many steps the last state is from the first.
    """

    states: int
    transitions: int
    depth: int
    broken: str
    trace: Sequence[str]


class Model(ABC):
    """Processes that share something, and the promises that a state of it breaks."""

    @abstractmethod
    def start(self) -> Any:
        """Return what is shared at first."""

    @abstractmethod
    def kinds(self) -> Kinds:
        """Return each kind of process: what its processes keep at first, and their steps."""

    @abstractmethod
    def broken(self, shared: Any) -> str:
        """Return the promise that a state breaks at any time."""

    @abstractmethod
    def lost(self, shared: Any) -> str:
        """Return the promise that a state breaks where no process is underway."""

    def is_underway(self, processes: Any) -> bool:
        """Return whether one of several processes has started and not ended."""
        return any(process.step not in (IDLE, GONE) for process in processes)

    def search(self) -> Explored:
        return Search(self).run()


def together(name: str, steps: StepsOf, *, begins_again: bool = False) -> StepsOf:
    """Return the steps of processes that are alike: they are sorted, as it does not matter which is which.

    The steps of one are by what is shared, itself and the others. One that has ended `begins_again`, or never.
    """

    def of_all(shared: Any, processes: tuple[Any, ...]) -> Steps:
        for index, me in enumerate(processes):
            others = processes[:index] + processes[index + 1 :]
            for what, after, mine in steps(shared, me, others):
                left = restarted(mine) if begins_again else mine
                yield f"{name} {what}", after, tuple(sorted((left, *others)))

    return of_all


def restarted(process: Any) -> Any:
    return type(process)() if process.step == GONE else process


def run_undisturbed(steps: StepsOf, shared: Any, me: Any) -> Any:
    """Return what is shared after all steps of a process with which nothing goes wrong, none other underway."""
    while me.step != GONE:
        _, shared, me = next(iter(steps(shared, me)))
    return shared


class Numbers:
    """Numbers for the parts of states, of which there are few: a state is their numbers side by side in one integer.

    The lowest bit of a number flags its part.
    """

    def __init__(self) -> None:
        self._of: dict[Hashable, int] = {}
        self._parts: list[Any] = []

    def part(self, state: int, place: int) -> Any:
        return self._parts[(state >> BITS * place & PART) >> 1]

    def number(self, part: Hashable, is_flagged: Callable[[Any], object]) -> int:
        number = self._of.get(part)
        if number is None:
            number = self._of[part] = len(self._parts) << 1 | bool(is_flagged(part))
            self._parts.append(part)
        if number > PART:
            raise OverflowError(f"more than {number >> 1} parts: {BITS} bits cannot number them and flag them")
        return number


class Moves(dict[int, tuple[int, ...]]):
    """What the steps of one kind of process add to a state's number, by what that kind sees of the state."""

    def __init__(self, numbers: Numbers, place: int, steps: StepsOf, model: "Model") -> None:
        super().__init__()
        self._numbers, self._place, self._steps, self._model = numbers, place, steps, model
        self.mask = PART | PART << BITS * place

    def __missing__(self, here: int) -> tuple[int, ...]:
        moves = dict.fromkeys(after - here for _, after in self.named(here) if after != here)
        return self.setdefault(here, tuple(moves))

    def named(self, here: int) -> Iterable[tuple[str, int]]:
        """Return the steps from a state, each with the state after it; what other kinds keep is left zero."""
        number, shift, model = self._numbers.number, BITS * self._place, self._model
        for name, shared, own in self._steps(self._numbers.part(here, 0), self._numbers.part(here, self._place)):
            yield name, number(shared, model.broken) | number(own, model.is_underway) << shift


class Search:
    """A search from a model's start, whose first part is shared; each kind of process has one other part."""

    def __init__(self, model: "Model") -> None:
        numbers, kinds = Numbers(), model.kinds()
        self._numbers, self._model = numbers, model
        self._kinds = [Moves(numbers, place, steps, model) for place, (_, steps) in enumerate(kinds, start=1)]
        self._start = numbers.number(model.start(), model.broken)
        for place, (own, _) in enumerate(kinds, start=1):
            self._start |= numbers.number(own, model.is_underway) << BITS * place
        self._underway = sum(1 << BITS * place for place, _ in enumerate(kinds, start=1))
        self._parents = {self._start: self._start}
        self._kept_at_rest: set[int] = set()

    # Ten million turns go by here.
    def run(self) -> Explored:
        parents, underway, kinds = self._parents, self._underway, [(moves.mask, moves) for moves in self._kinds]
        waiting, transitions, broken = deque([self._start]), 0, ""
        while waiting:
            state = waiting.popleft()
            if (state & 1 or not state & underway) and (broken := self._verdict(state)):
                break
            for mask, moves in kinds:
                here = moves[state & mask]
                transitions += len(here)
                for move in here:
                    if (after := state + move) not in parents:
                        parents[after] = state
                        waiting.append(after)
        trace, states = self._way_to(state), len(parents)
        return Explored(states=states, transitions=transitions, depth=len(trace), broken=broken, trace=trace)

    def has_circle(self) -> bool:
        """Return whether a visited state leads back to itself, so that something may go on for ever."""
        waits_for = dict.fromkeys(self._parents, 0)
        for state in self._parents:
            for after in self._after(state):
                waits_for[after] += 1
        ready, passed = [self._start], 0
        while ready:
            passed += 1
            for after in self._after(ready.pop()):
                waits_for[after] -= 1
                if not waits_for[after]:
                    ready.append(after)
        return passed < len(waits_for)

    def _after(self, state: int) -> Iterator[int]:
        return (state + move for moves in self._kinds for move in moves[state & moves.mask])

    def _verdict(self, state: int) -> str:
        """Return the promise that a state breaks of which the shared part is flagged, or the others are not."""
        number = state & PART
        if number in self._kept_at_rest:
            return ""
        shared = self._numbers.part(state, 0)
        broken = self._model.broken(shared) or self._model.lost(shared)
        if not broken:
            self._kept_at_rest.add(number)
        return broken

    def _way_to(self, state: int) -> list[str]:
        names = []
        while state != self._start:
            parent = self._parents[state]
            names.append(self._name(parent, state))
            state = parent
        return names[::-1]

    def _name(self, parent: int, state: int) -> str:
        for moves in self._kinds:
            here = parent & moves.mask
            for name, after in moves.named(here):
                if after - here == state - parent:
                    return name
        raise LookupError("no step leads from the one state to the other")
