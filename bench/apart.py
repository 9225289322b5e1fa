"""A process of its own, in which nothing else computes. It tells its progress, and then what came out, in JSON."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.part import Progress
from local.template import ROOT


def measured_apart(
    module: str, *arguments: str, log: Path, progress: Progress, environment: Mapping[str, str] | None = None
) -> Any:
    """Run a module as a process; return what came out. Raises RuntimeError with what it said if it failed."""
    command, told = [sys.executable, "-m", module, *arguments], {}
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        for line in process.stdout or ():
            told = json.loads(line)
            if "progress" in told:
                progress(*told["progress"])
    if process.returncode or "result" not in told:
        raise RuntimeError(f"{module} failed: {log.read_text()[-2000:]}")
    return told["result"]


def tell_progress(what: str, done: int, of: int) -> None:
    _say(progress=[what, done, of])


def tell_result(result: Any) -> None:
    _say(result=result)


def _say(**told: Any) -> None:
    # What functions log goes to `sys.stdout`, which whoever measures them has put something else in place of.
    print(json.dumps(told), file=sys.__stdout__, flush=True)
