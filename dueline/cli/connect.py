"""A run of the command line: which deployment it asks, and where its answers are shown."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import typer

from dueline.cli.screen import Screen
from dueline.clock import SystemClock
from dueline.config.names import Names
from dueline.retry.calls import LANES, Calls, in_lanes
from dueline.retry.patience import Patience

if TYPE_CHECKING:
    # What one command needs, the others need not import.
    from dueline.client.client import Client
    from dueline.console.forward import Way
    from dueline.console.reach import Reach
    from dueline.doctor.examine import Look
    from dueline.doctor.seen import Seen
    from dueline.operate.redrive import Ends
    from dueline.operate.restore import Restore
    from dueline.verify.sandbox import Sandbox

_NAME = "dueline"
# A browser has six connections to one host, and each may ask of several queues.
_LANES = 6 + LANES
# A page asks again by itself, and must not wait for long.
_OF_A_PAGE = Patience(attempts=2, seconds=5)
# A check of a local AWS is to fail for a broken promise, not for a machine that has much else to do.
_OF_A_LOCAL_RUN = Patience(attempts=20, seconds=240)


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Which deployment is meant, and with whose credentials. `url` is that of a local run."""

    name: str = _NAME
    url: str | None = None
    profile: str | None = None
    region: str | None = None

    @property
    def options(self) -> Mapping[str, str | None]:
        """The options that name it to the command line; None is the default."""
        name = None if self.name == _NAME else self.name
        return {"--name": name, "--url": self.url, "--profile": self.profile, "--region": self.region}


@dataclass(frozen=True, kw_only=True)
class Run:
    """What all commands share."""

    target: Target
    screen: Screen

    @cached_property
    def client(self) -> "Client":
        """The client of the deployment, found at its first use."""
        return client(self.target)


def run_of(ctx: typer.Context) -> Run:
    """Return the run that a command is of."""
    run: Run = ctx.find_root().obj
    return run


def client(target: Target, *, patience: Patience | None = None) -> "Client":
    """Return a client of a deployment. Raises DeploymentNotFound, Forbidden or Unavailable."""
    from dueline.aws import clients, faults
    from dueline.client.client import Client

    session = None
    if target.profile or target.region:
        with faults.of_callers("finding AWS credentials"):
            session = clients.session(profile=target.profile, region=target.region)
    return Client.connect(target.name, url=target.url, session=session, patience=patience)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """The way to a deployment's API: its URL, its region if that is known, and whose credentials are used."""

    way: "Way"
    url: str
    region: str | None
    caller: Callable[[], str | None]


def api(target: Target) -> Reached:
    """Return the way to a deployment's API. Raises DeploymentNotFound, Forbidden or Unavailable."""
    from dueline.aws import caller, clients, faults, gateway

    session = None
    if target.profile or target.region or target.url is None:
        with faults.of_callers("finding AWS credentials"):
            session = clients.session(profile=target.profile, region=target.region)
    way = gateway.connect(target.name, url=target.url, session=session, lanes=_LANES)
    region = None if session is None else session.region_name
    return Reached(way=way, url=way.url, region=region, caller=caller.caller_of(session))


def reach(target: Target, *, way: "Way") -> "Reach":
    """Return what the console reaches of a deployment. Nothing is asked yet."""
    from dueline.aws import clients
    from dueline.aws.figures import CloudWatchFigures
    from dueline.console.reach import Reach

    clock = SystemClock()
    calls = Calls(patience=_OF_A_PAGE, clock=clock, jitter=random.random)
    return Reach(
        ask=lambda path: calls.ask(lambda: way.send("GET", path, None, headers={}).content(now=clock.now())),
        dead_letters=partial(dead_letters, target),
        figures=CloudWatchFigures(
            target.name, session=lambda: clients.session(profile=target.profile, region=target.region)
        ),
        clock=clock,
        spread=in_lanes,
    )


def doctor(target: Target, *, now: datetime, sample: int) -> "tuple[Sequence[Look], Callable[..., Seen]]":
    """Return what is to be looked at of a deployment, and what makes one of all that was seen.

    Raises DeploymentNotFound, Forbidden or Unavailable.
    """
    from dueline.aws import clients, faults
    from dueline.aws.doctor import looks, place
    from dueline.doctor.seen import Seen

    with faults.of_callers("finding AWS credentials"):
        session = clients.session(profile=target.profile, region=target.region)
    there = place.place_of(target.name, session=session, now=now)
    return looks.looks_at(there, sample=sample), partial(Seen, deployment=there.deployment, now=there.now)


def restore(
    target: Target,
    *,
    jobs: str,
    state: str,
    hand_over_from: datetime | None,
    on_progress: Callable[[int, int], None],
) -> "Restore":
    """Return what lets a deployment take over restored tables. Raises DeploymentNotFound, Forbidden or Unavailable."""
    from dueline.aws import clients, faults, restoring

    with faults.of_callers("finding AWS credentials"):
        session = clients.session(profile=target.profile, region=target.region)
    return restoring.restore(
        target.name, jobs=jobs, state=state, hand_over_from=hand_over_from, session=session, on_progress=on_progress
    )


def adopter(target: Target) -> Any:
    """Return what has stacks take over what they left behind. Raises Forbidden."""
    from dueline.aws import clients, faults
    from dueline.aws.adoption import Adopter

    with faults.of_callers("finding AWS credentials"):
        session = clients.session(profile=target.profile, region=target.region)
    return Adopter(client=cache(session.client))


def dead_letters(target: Target, queue: str | None) -> "Ends":
    """Return the dead letters of a queue, or of none, those that the deployment parked.

    Raises QueueNotFound, DeploymentNotFound, Forbidden or Unavailable.
    """
    from dueline.aws import clients, faults
    from dueline.aws.sqs import dead_letters

    with faults.of_callers("finding AWS credentials"):
        session = clients.session(profile=target.profile, region=target.region)
    if queue is None:
        return dead_letters.of_parked(target.name, session=session)
    return dead_letters.of_queue(target.name, queue, session=session)


def sandbox(target: Target, *, name: str, deploy: str | None) -> "Sandbox":
    """Return the deployment of that name, to run checks in, some of which `deploy` it anew by that command.

    Raises DeploymentNotFound, Forbidden or Unavailable.
    """
    from dueline.aws import clients, faults
    from dueline.aws.sandbox.sandbox import AwsSandbox

    new_session = partial(clients.session, profile=target.profile, region=target.region)
    with faults.of_callers("finding AWS credentials"):
        reached = client(replace(target, name=name), patience=_OF_A_LOCAL_RUN if target.url else None)
        return AwsSandbox(name, client=reached, new_session=new_session, url=target.url, deploy=deploy)


def removal(target: Target, *, name: str, tell: Callable[[str], None]) -> Callable[[], list[str]]:
    """Return what removes the sandbox of that name, and tells what is left."""
    from dueline.aws import clients, faults
    from dueline.aws.sandbox.removal import Removal

    with faults.of_callers(f"removing the deployment {name!r}"):
        session = clients.session(profile=target.profile, region=target.region)
        return Removal(Names(name), session, tell=tell).run
