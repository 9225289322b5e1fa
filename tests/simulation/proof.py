"""Show that the simulation catches a mutation: in a copy of the code, which alone is broken."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.mutation import Mutation

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| (.+) \| .+ \| (\d+) \| .+ \|$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Caught:
    """The promise that a mutation broke, by which seed or by its own decisions, and by how few when shortened."""

    promise: str
    seed: int | None
    decisions: int


def prove(mutation: Mutation, number: int, *, told: int | None = None) -> Caught | None:
    """Run up to so many seeds against a mutation; return the first that broke a promise that it names.

    Its own decisions come first, if it has any, and then the seed `told`.
    """
    with tempfile.TemporaryDirectory() as folder:
        for part in ("dueline", "tests"):
            shutil.copytree(
                ROOT / part, Path(folder) / part, ignore=shutil.ignore_patterns("node_modules", "__pycache__")
            )
        for edit in mutation.edits:
            edit.apply(Path(folder))
        command = [sys.executable, "-m", "tests.simulation", "catch", str(number), *mutation.breaks]
        command += ["--scheduled"] if mutation.needs_schedules else []
        command += [] if told is None else ["--told", str(told)]
        command += ["--decided", json.dumps(list(mutation.decided.items()))] if mutation.decided else []
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.stderr:
        raise RuntimeError(f"{mutation.name}: {done.stderr}")
    return Caught(**json.loads(done.stdout)) if done.returncode == 0 else None


def told_seeds(docs: str) -> dict[str, int]:
    """Return by which seed each mutation was caught, as a page tells it in the table of `table_of`."""
    return {name: int(runs) - 1 for name, runs in _ROW.findall(docs)}


def table_of(mutations: Sequence[Mutation], results: Mapping[str, Caught | None]) -> str:
    """Return a table in Markdown of what was caught, by which seed."""
    lines = ["| what is broken | promise that breaks | runs until it was caught | decisions that it takes |"]
    lines.append("|---|---|---|---|")
    for mutation in mutations:
        caught = results[mutation.name]
        found = f"{caught.promise} | {_runs(caught)} | {caught.decisions}" if caught else "**not caught** | |"
        lines.append(f"| {mutation.name} | {found} |")
    return "\n".join(lines)


def _runs(caught: Caught) -> str:
    return "by a kept run" if caught.seed is None else str(caught.seed + 1)
