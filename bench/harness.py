"""What scripts share: how they are run, what is kept of a run, and processes that end with it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from local.emulator import CREDENTIALS, REGION, Emulator
from local.template import ROOT

RESULTS = Path(__file__).parent / "results"
_STOP_SECONDS = 10

Figures = dict[str, Any]
Process = subprocess.Popen[bytes]
A = TypeVar("A")


class Target(NamedTuple):
    """What a figure is to reach: `bound`, at most or at least."""

    what: str
    got: float
    bound: float
    at_most: bool = True
    unit: str = ""

    @property
    def is_met(self) -> bool:
        return self.got <= self.bound if self.at_most else self.got >= self.bound


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What is kept of a run; `on` is the machine, the versions and the time."""

    script: str
    on: dict[str, str]
    seconds: float
    figures: Figures
    targets: Sequence[Target]


def save(result: Result, *, folder: Path = RESULTS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    fields = {**asdict(result), "targets": [target._asdict() for target in result.targets]}
    (folder / f"{result.script}.json").write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n")


def load(script: str, *, folder: Path = RESULTS) -> Result:
    """Return a stored result. Raises FileNotFoundError where there is none."""
    fields = json.loads((folder / f"{script}.json").read_text())
    return Result(**{**fields, "targets": [Target(**target) for target in fields["targets"]]})


@contextmanager
def running(command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None) -> Iterator[Process]:
    """Run a command while the context lasts, with the environment on top of this process's."""
    env = {**os.environ, **(environment or {})}
    with log.open("ab") as out:
        # A session of its own: Ctrl-C reaches the run, which then ends it with all that it started.
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def run_apart(module: str, *arguments: str, log: Path, environment: Mapping[str, str]) -> Any:
    """Run a module in a process in which nothing else computes; return its result.

    Raises RuntimeError if it fails.
    """
    with log.open("w") as errors:
        command = python(module, *arguments)
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} failed: {log.read_text()[-2000:]}")
    return json.loads(done.stdout)


def print_result(result: Any) -> None:
    # Functions log to `sys.stdout`, which a process that measures them replaces.
    sys.__stdout__.write(json.dumps(result))  # type: ignore[union-attr]


def aws_environment(endpoint: str) -> dict[str, str]:
    """Return the environment in which boto3 speaks to an emulator."""
    credentials = {name.upper(): value for name, value in CREDENTIALS.items()}
    return {**credentials, "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": endpoint}


@contextmanager
def emulated_aws(scratch: Path) -> Iterator[dict[str, str]]:
    """Yield the environment of an AWS for counting: an emulator, with dynalite for DynamoDB, whose units are AWS's."""
    from tests.contract import dynalite

    with Emulator(log=scratch / "ministack.log") as emulator, dynalite.running() as dynamodb:
        others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        yield {**others, **aws_environment(emulator.endpoint), "AWS_ENDPOINT_URL_DYNAMODB": dynamodb}


def expect(is_right: bool, result: object) -> None:
    """Let no figure stand for a step that did something else."""
    if not is_right:
        raise RuntimeError(f"a step went wrong, so its figures would be: {str(result)[:500]}")


def chunks(items: Sequence[A], size: int) -> Iterator[list[A]]:
    """Yield the items in order, so many at a time.

    >>> list(chunks(range(5), 2))
    [[0, 1], [2, 3], [4]]
    """
    left = iter(items)
    while chunk := list(islice(left, size)):
        yield chunk
