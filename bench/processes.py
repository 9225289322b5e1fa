"""Processes of the run, which end with it whatever ends it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from local.emulator import CREDENTIALS, REGION
from local.template import ROOT

_STOP_SECONDS = 10
_READY_SECONDS = 60.0

Process = subprocess.Popen[bytes]


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
        _end(process)


def python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def of_aws(endpoint: str) -> dict[str, str]:
    """Return the environment in which boto3 speaks to an emulator."""
    credentials = {name.upper(): value for name, value in CREDENTIALS.items()}
    return {**credentials, "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": endpoint}


def wait_until(met: Callable[[], bool], *, what: str, seconds: float = _READY_SECONDS) -> None:
    """Wait until a condition is met. Raises TimeoutError, which says `what` did not happen."""
    deadline = time.monotonic() + seconds
    while not met():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.05)


def _end(process: Process) -> None:
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
