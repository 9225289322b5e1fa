"""Measure Dueline, compare two results, and write the docs' tables: `python -m bench --help`."""

import importlib
import json
import os
import platform
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from bench.harness import RESULTS, Result, Run, save
from bench.report import SCRIPTS, report, tables
from local.template import ROOT

QUICK = ROOT / ".local" / "bench"
VERSIONS = ("boto3", "aws_lambda_powertools", "ministack")
INSTALLED_FOR_BENCH = ("celery", "redis")
DIFFERS = 0.05

console = Console()
app = typer.Typer(add_completion=False, no_args_is_help=True, help="Measure Dueline.")
Names = Annotated[
    list[str] | None, typer.Argument(metavar="[SCRIPT]...", help=f"Of {', '.join(SCRIPTS)}; all by default.")
]


@app.command("run")
def run(
    scripts: Names = None,
    quick: Annotated[bool, typer.Option("--quick", help="Rough figures, in 2 minutes, into .local/bench.")] = False,
) -> None:
    """Measure, write the figures as JSON into bench/results, and from there into the docs."""
    _check(scripts or [])
    # What is started meanwhile ends with this process, whatever ends it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder, on = QUICK if quick else RESULTS, machine()
    for name in [name for name in SCRIPTS if not scripts or name in scripts]:
        result = _measure(name, quick=quick, on=on)
        save(result, folder=folder)
        console.rule(f"{name}: {result.seconds:.0f} s", align="left")
        console.print(Markdown(tables(result)))
    if not quick:
        report()
    console.print(f"written to {folder}")


@app.command("report")
def write_report() -> None:
    """Write the tables of docs/benchmarks.md and docs/cost.md, and README's figures, out of bench/results."""
    report()


@app.command()
def compare(before: Path, after: Path) -> None:
    """Show the figures of two results of a script that differ by over 5 %."""
    old, new = (dict(_numbers(json.loads(path.read_text())["figures"])) for path in (before, after))
    table = Table("figure", "before", "after", "ratio")
    for name in [*old, *(new.keys() - old.keys())]:
        was, now = old.get(name), new.get(name)
        if was is None or now is None or abs(now - was) > DIFFERS * abs(was):
            ratio = f"{now / was:.2f}" if was and now is not None else ""
            table.add_row(name, *("" if each is None else f"{each:.5g}" for each in (was, now)), ratio)
    console.print(table)


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _numbers(each, f"{name}/{key}".removeprefix("/"))
    elif isinstance(value, int | float):
        yield name, float(value)


def _check(names: list[str]) -> None:
    if unknown := set(names) - set(SCRIPTS):
        raise typer.BadParameter(f"there is no script {sorted(unknown)[0]!r}: choose from {', '.join(SCRIPTS)}")
    if missing := [name for name in INSTALLED_FOR_BENCH if find_spec(name) is None]:
        raise typer.BadParameter(f"{', '.join(missing)} is not installed: pip install -r bench/requirements.txt")


def _measure(name: str, *, quick: bool, on: dict[str, str]) -> Result:
    script, begun = importlib.import_module(f"bench.{name}"), time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, console.status(name) as status:
        run = Run(quick=quick, scratch=Path(scratch), progress=lambda text: status.update(f"{name}: {text}"))
        figures = script.measure(run)
    # As read back from JSON, whose keys are text.
    figures, seconds = json.loads(json.dumps(figures)), round(time.monotonic() - begun, 1)
    targets = script.targets(figures)
    return Result(script=name, quick=quick, on=on, seconds=seconds, figures=figures, targets=targets)


def machine() -> dict[str, str]:
    """Return the machine, the versions, and the time."""
    cpus = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in cpus if line.startswith("model name")]
    describe = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": platform.platform(terse=True),
        "Python": platform.python_version(),
        **{name: version(name) for name in VERSIONS},
        "commit": commit or "unknown",
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
    }


if __name__ == "__main__":
    app()
