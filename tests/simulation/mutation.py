"""Mutation testing: break one rule in a copy of the code, and show that the simulation reports the promise it keeps."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from tests.simulation.choices import Decided

ROOT = Path(__file__).parents[2]
# The lists of the last proof of all mutations.
CAUGHT = Path(__file__).parent / "caught.md"
_LINE = re.compile(r"^- (.+): (\d+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One place in a file of dueline/: the text that is there, and what replaces it."""

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
    """What is broken, and which promises break. Some can be caught only where a world has schedules.

    `decided` is the run that catches one which tens of thousands of seeds may miss.
    """

    name: str
    breaks: Sequence[str]
    edits: list[Edit]
    needs_schedules: bool = False
    decided: Decided = field(default_factory=dict)


def kept(**streams: str) -> Decided:
    """Return the decisions of a run from `place=decision` by stream; `_` stands for a comma in its name."""
    made = {(name.replace("_", ", "), *map(int, each.split("="))) for name in streams for each in streams[name].split()}
    return {(stream, place): decision for stream, place, decision in made}


def mutations_of(
    text: str, *, breaks: Sequence[str] = (), needs_schedules: bool = False, decided: Mapping[str, Decided] = {}
) -> list[Mutation]:
    """Return mutations that are written as diffs, whose lines may begin in their midst; a blank line parts two edits.

    `@@` names a file of dueline/, `#` a mutation and behind `->` the promises that break, or else `breaks`.
    """
    mutations, file = list[Mutation](), ""
    for mark, group in groupby(text.splitlines(), key=lambda line: "diff" if line[:1] in {*" -+"} else line[:1]):
        lines = list(group)
        match mark:
            case "@":
                file = lines[0].removeprefix("@@ ")
            case "#":
                name, _, own = " ".join(line[1:].strip() for line in lines).partition(" -> ")
                promises, run = own.split(", ") if own else breaks, decided.get(name, {})
                mutations.append(
                    Mutation(name=name, breaks=promises, edits=[], needs_schedules=needs_schedules, decided=run)
                )
            case "diff":
                old, new = ("\n".join(line[1:] for line in lines if line[0] in marks) for marks in (" -", " +"))
                mutations[-1].edits.append(Edit(file=file, old=old, new=new))
    return mutations


@dataclass(frozen=True, kw_only=True)
class Caught:
    """The promise that a mutation broke, and by which seed, or by its own decisions."""

    promise: str
    seed: int | None


def prove(mutation: Mutation, first: int | None = None, *, number: int) -> Caught | None:
    """Run up to so many seeds against a mutation; return the first that broke a promise that it names.

    Its own decisions come first, if it has any, and then the seed `first`.
    """
    with tempfile.TemporaryDirectory() as folder:
        for part in ("dueline", "tests"):
            shutil.copytree(
                ROOT / part, Path(folder) / part, ignore=shutil.ignore_patterns("node_modules", "__pycache__")
            )
        for edit in mutation.edits:
            edit.apply(Path(folder))
        command = [sys.executable, "-m", "tests.simulation", "catch", mutation.name, str(number)]
        command += [] if first is None else ["--first", str(first)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.stderr:
        raise RuntimeError(f"{mutation.name}: {done.stderr}")
    return Caught(**json.loads(done.stdout)) if done.returncode == 0 else None


def documented_seeds(page: str) -> dict[str, int]:
    """Return the seed that caught each mutation, from the lists of `lists_of`."""
    return {name: int(runs) - 1 for name, runs in _LINE.findall(page)}


def lists_of(mutations: Sequence[Mutation], results: Sequence[Caught | None]) -> str:
    """Return a list in Markdown for each promise: the mutations that it caught, and in which run."""
    lists: dict[str, list[str]] = {}
    for mutation, caught in zip(mutations, results, strict=True):
        promise, run = "**not caught**", "none"
        if caught:
            promise, run = caught.promise, "kept" if caught.seed is None else str(caught.seed + 1)
        lists.setdefault(promise, []).append(f"- {mutation.name}: {run}")
    return "\n\n".join("\n".join([f"## {promise}", "", *lines]) for promise, lines in lists.items())
