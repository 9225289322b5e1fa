"""A deployment that runs in the local AWS: synthesized, deployed and ticking while its context is open."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path
from typing import IO

from dueline.config.deployment import Deployment, load
from local.deploy import DeploymentError, deploy
from local.emulator import Emulator
from local.endpoints import Endpoints, find, publish
from local.signing_proxy import signing_proxy
from local.template import ROOT, configure, synthesized
from local.ticks import TICK_SECONDS, fired_every

HOME = Path(os.environ.get("DUELINE_HOME", ROOT / ".local"))
LOG = HOME / "emulator.log"

Step = Callable[[str], AbstractContextManager[object]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """A running deployment: its emulator, where it is reached, its settings, and the ticks that failed so far."""

    emulator: Emulator
    endpoints: Endpoints
    deployment: Deployment
    tick_faults: list[BaseException]


def put_schedules(queues: Path, *, url: str) -> None:
    """Put the schedules that the file `queues` declares, as `make deploy` does last. Raises DeploymentError."""
    if any(queue.schedules for queue in load(queues).queues.values()):
        command = [sys.executable, "-m", "dueline", "--url", url, "schedules", "apply", str(queues)]
        env = {name: value for name, value in os.environ.items() if name != "DUELINE_NAME"}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DeploymentError(done.stderr.strip())


@contextmanager
def running(queues: Path, *, emulator: Emulator, step: Step, api_port: int = 0) -> Iterator[Running]:
    """Run the deployment that the file `queues` describes. `step` shows that something is being done, and when it is.

    `api_port` is the API's, 0 any that is free.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        configured = configure(queues, out=scratch)
        deployment = load(configured)
        with step("synthesize the stacks"):
            assembly = synthesized(configured, cache=HOME / "synthesized")
        with step(f"start the local AWS at {emulator.endpoint}"):
            stack.enter_context(emulator)
        with step("deploy the stacks into it"):
            deploy(emulator, assembly)
        endpoints = find(emulator, deployment)
        publish(emulator, deployment, endpoints)
        proxy = stack.enter_context(signing_proxy(endpoints.api, port=api_port))
        endpoints = replace(endpoints, api=proxy)
        put_schedules(queues, url=proxy)
        faults = stack.enter_context(fired_every(TICK_SECONDS, emulator, deployment.names.schedule_group))
        yield Running(emulator=emulator, endpoints=endpoints, deployment=deployment, tick_faults=faults)


class AlreadyUp(RuntimeError):
    """Another process is up; the message says which."""


@contextmanager
def pid_file(path: Path) -> Iterator[None]:
    """Keep this process's id in a file, locked, while the context is open.

    Raises AlreadyUp when another process holds the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if not _is_locked_by_us(file, LOCK_EX):
            raise AlreadyUp(f"it is up already, as process {path.read_text()}: end that with `make down`")
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def pid_of(path: Path) -> int | None:
    """Return the id of the process that holds a PID file, if one does."""
    try:
        with path.open() as file:
            return None if _is_locked_by_us(file, LOCK_SH) else int(file.read())
    except (FileNotFoundError, ValueError):
        return None


def _is_locked_by_us(file: IO[str], how: int) -> bool:
    try:
        flock(file, how | LOCK_NB)
    except BlockingIOError:
        return False
    return True
