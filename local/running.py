"""A deployment that runs in the local AWS: synthesized, deployed and ticking while its context is open."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from dueline.config.deployment import Deployment, load
from local.deploy import deploy
from local.door import door
from local.emulator import Emulator
from local.endpoints import Endpoints, find
from local.template import PERIODS, ROOT, configure, synthesize
from local.ticks import fired_every

HOME = ROOT / ".local"
LOG = HOME / "emulator.log"
TICK_SECONDS = 1.0

Result = TypeVar("Result")
Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """A running deployment: its emulator, where it is reached, its settings, and the ticks that failed so far."""

    emulator: Emulator
    endpoints: Endpoints
    deployment: Deployment
    tick_faults: list[BaseException]


@contextmanager
def running(queues: Path, *, emulator: Emulator, tell: Tell, real_schedule: bool = False) -> Iterator[Running]:
    """Run the deployment that the file `queues` describes, telling each step.

    Ticks fire every second, with a local run's periods. With `real_schedule` the deployed schedule alone fires them,
    once a minute, and the periods stay as they are in `queues`.
    """
    with tempfile.TemporaryDirectory() as scratch:
        configured = configure(queues, out=Path(scratch), periods=None if real_schedule else PERIODS)
        deployment = load(configured)
        assembly = _timed("synthesized the stacks", tell, lambda: synthesize(configured, out=Path(scratch) / "cdk.out"))
        with emulator:
            _timed(f"deployed them into the local AWS at {emulator.endpoint}", tell, lambda: deploy(emulator, assembly))
            endpoints = find(emulator, deployment)
            with door(endpoints.api) as api, _ticking(emulator, deployment, real_schedule) as faults:
                endpoints = replace(endpoints, api=api)
                yield Running(emulator=emulator, endpoints=endpoints, deployment=deployment, tick_faults=faults)


def _ticking(
    emulator: Emulator, deployment: Deployment, real_schedule: bool
) -> AbstractContextManager[list[BaseException]]:
    return nullcontext([]) if real_schedule else fired_every(TICK_SECONDS, emulator, deployment.names.schedule_group)


def _timed(step: str, tell: Tell, do: Callable[[], Result]) -> Result:
    started = time.monotonic()
    result = do()
    tell(f"{step} ({time.monotonic() - started:.1f} s)")
    return result
