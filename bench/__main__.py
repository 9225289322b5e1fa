"""Measure Dueline, and write the docs' tables: `python -m bench --help`."""

import importlib
import json
import os
import platform
import signal
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from bench.harness import Result, save
from bench.report import SCRIPTS, report, tables
from local.template import ROOT

VERSIONS = ("boto3", "aws_lambda_powertools", "ministack")

console = Console()
app = typer.Typer(add_completion=False, no_args_is_help=True, help="Measure Dueline.")
Names = Annotated[
    list[str] | None, typer.Argument(metavar="[SCRIPT]...", help=f"Of {', '.join(SCRIPTS)}; all by default.")
]


@app.command("run")
def run(scripts: Names = None) -> None:
    """Measure, write the figures as JSON into bench/results, and from there into the docs."""
    if unknown := set(scripts or []) - set(SCRIPTS):
        raise typer.BadParameter(f"there is no script {sorted(unknown)[0]!r}: choose from {', '.join(SCRIPTS)}")
    # What is started meanwhile ends with this process, whatever ends it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    on = machine()
    for name in [name for name in SCRIPTS if not scripts or name in scripts]:
        result = _measure(name, on=on)
        save(result)
        console.rule(f"{name}: {result.seconds:.0f} s", align="left")
        console.print(Markdown(tables(result)))
    report()


@app.command("report")
def write_report() -> None:
    """Write the tables of docs/benchmarks.md and docs/cost.md, and README's figures, out of bench/results."""
    report()


def _measure(name: str, *, on: dict[str, str]) -> Result:
    script, start = importlib.import_module(f"bench.{name}"), time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, console.status(name):
        figures = script.measure(Path(scratch))
    # As read back from JSON, whose keys are text.
    figures, seconds = json.loads(json.dumps(figures)), round(time.monotonic() - start, 1)
    targets = script.targets(figures) if hasattr(script, "targets") else []
    return Result(script=name, on=on, seconds=seconds, figures=figures, targets=targets)


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
