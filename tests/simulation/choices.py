"""Decisions by number, each in a stream of its own, so that removing one changes no other; and shrinking."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeVar

Option = TypeVar("Option")
Decided = Mapping[tuple[str, int], int]


class Choices:
    """Decisions drawn from a seed, or replayed: 0, the harmless one, wherever `decided` names none.

    `made` holds every decision that was not the harmless one, by stream and place in it.
    """

    def __init__(self, *, seed: int | None = None, decided: Decided | None = None) -> None:
        self._seed = seed
        self.decided = decided or {}
        self.made: dict[tuple[str, int], int] = {}

    def stream(self, name: str) -> "Stream":
        return Stream(name, None if self._seed is None else Random(f"{self._seed} {name}"), self)


class Stream:
    """The decisions of one process, or on one matter."""

    def __init__(self, name: str, random: Random | None, choices: Choices) -> None:
        self._name = name
        self._random = random
        self._choices = choices
        self._place = 0

    def below(self, count: int) -> int:
        """Decide on a number from 0 to `count` - 1, each as likely."""
        return min(self._decide(int(self._random.random() * count) if self._random else 0), count - 1)

    def once_in(self, times: int) -> bool:
        """Decide to do what is done once in so many times; 0 is never."""
        return times > 0 and bool(self._decide(int(self._random.random() * times < 1) if self._random else 0))

    def pick(self, options: Sequence[Option]) -> Option:
        return options[self.below(len(options))]

    def some(self, options: Sequence[Option], *, once_in: int = 2) -> list[Option]:
        return [option for option in options if self.once_in(once_in)]

    def _decide(self, drawn: int) -> int:
        place, self._place = self._place, self._place + 1
        decision = drawn if self._random else self._choices.decided.get((self._name, place), 0)
        if decision:
            self._choices.made[self._name, place] = decision
        return decision


# Shrinking: make a failing run short.
Breaks = Callable[[Decided], bool]


def shrink(decided: Decided, breaks: Breaks) -> Decided:
    """Return the fewest decisions that still break the promise: remove half of them first, then fewer."""
    kept = sorted(decided.items())
    size = len(kept)
    while size:
        start = 0
        while start < len(kept):
            fewer = kept[:start] + kept[start + size :]
            if breaks(dict(fewer)):
                kept = fewer
            else:
                start += size
        size //= 2
    return _lowered(dict(kept), breaks)


def _lowered(decided: Decided, breaks: Breaks) -> Decided:
    """Return the same decisions, each as near to the harmless one as it may be."""
    lowered = dict(decided)
    for key, value in decided.items():
        for less in range(1, value):
            if breaks({**lowered, key: less}):
                lowered[key] = less
                break
    return lowered
