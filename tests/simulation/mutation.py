"""One thing in the code that is broken, and the promises that then break."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.simulation.choices import Decided


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One place in a file of dueline/: what stands there, and what takes its place."""

    file: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        path = root / "dueline" / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} holds {self.old!r} {text.count(self.old)} times: it must be once")
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """What is broken, and what must be caught. Some can be caught only where a world has schedules.

    `decided` is the run that catches one which seeds seldom do: tens of thousands may miss it.
    """

    name: str
    breaks: Sequence[str]
    edits: Sequence[Edit]
    needs_schedules: bool = False
    decided: Decided = field(default_factory=dict)


def kept(**streams: str) -> Decided:
    """Return the decisions of a run, told as `place=decision` by stream; `_` stands for a comma in its name."""
    made = {(name.replace("_", ", "), *map(int, each.split("="))) for name in streams for each in streams[name].split()}
    return {(stream, place): decision for stream, place, decision in made}


LOST, EXACT, EARLY, TWICE = "never lost", "exact cancel", "never early", "at least once"
ONCE = "once by key"
LEVEL = "own level"
ONE = "one job"
NEITHER, BOTH, SECOND = "never neither", "never both", "no second job"


def mutation(name: str, file: str, old: str, new: str, *breaks: str) -> Mutation:
    return Mutation(name=name, breaks=breaks, edits=[Edit(file=file, old=old, new=new)])
