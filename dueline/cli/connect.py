"""A run of the command line: its deployment, and where results are shown."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dueline.cli.screen import Screen
from dueline.config.names import Names
from dueline.core import clock, retry

if TYPE_CHECKING:
    # What one command needs, the others need not import.
    from dueline.aws.api_transport import ApiTransport, InvokeTransport
    from dueline.aws.preflight import Preflight
    from dueline.client.client import Client
    from dueline.config.deployment import Deployment
    from dueline.console.queue_views import Backend
    from dueline.operations.observation import Check, Observation
    from dueline.operations.redrive import RedriveQueues
    from dueline.operations.restore import Restore

_LONGEST_LOOK = timedelta(seconds=15)
# A browser has six connections to one host, and each request may concern several queues.
_LANES = 6 + retry.LANES
# A page repeats requests itself, and must not wait for long.
_OF_A_PAGE = retry.Patience(attempts=2, seconds=5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Which deployment is meant, and with whose credentials. `url` is that of a local run, or a function's ARN."""

    name: str = "dueline"
    url: str | None = None
    transport: Any = None
    profile: str | None = None
    region: str | None = None


@dataclass(frozen=True, kw_only=True)
class CommandRun:
    """What all commands share."""

    target: Target
    screen: Screen

    @cached_property
    def client(self) -> "Client":
        """The client of the deployment, found at its first use."""
        return client(self.target)


def run_for(ctx: typer.Context, deployment: str | None, *, file: Path) -> CommandRun:
    """Return the run for the deployment that a file names. Raises typer.BadParameter if --name names another one."""
    run: CommandRun = ctx.obj
    source = ctx.find_root().get_parameter_source("name")
    if deployment is None or deployment == run.target.name:
        return run
    if source and source.name != "DEFAULT":
        raise typer.BadParameter(f"--name is {run.target.name!r}, but {file} is for the deployment {deployment!r}")
    target = replace(run.target, name=deployment)
    check_function(target)
    return replace(run, target=target)


def check_function(target: Target) -> None:
    """Raise typer.BadParameter where the URL is the ARN of another deployment's function."""
    function = Names(target.name).function("api")
    if target.url and target.url.startswith("arn:") and target.url.split(":")[6:7] != [function]:
        raise typer.BadParameter(f"--name is {target.name!r}, but the URL is {target.url!r}, no function {function}")


def complete_queue(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of queues that begin so, for a shell; none where the deployment cannot be read."""
    chosen = ctx.find_root().params
    with suppress(Exception):
        target = Target(**{name: chosen[name] for name in ("name", "url", "transport", "profile", "region")})
        queues = client(target, patience=retry.Patience(attempts=1)).queues()
        return [queue.name for queue in queues if queue.name.startswith(incomplete)]
    return []


def session(target: Target) -> Any:
    """Return a session with the caller's credentials. Raises Forbidden."""
    from dueline.aws import botocore_errors, clients

    with botocore_errors.map_caller_errors("finding AWS credentials"):
        return clients.session(profile=target.profile, region=target.region)


def client(target: Target, *, patience: retry.Patience | None = None) -> "Client":
    """Return a client of a deployment. Raises DeploymentNotFound, Forbidden or Unavailable."""
    from dueline.client.client import Client

    own = session(target) if target.profile or target.region else None
    return Client.connect(target.name, url=target.url, session=own, transport=target.transport, patience=patience)


def retrying(patience: retry.Patience) -> retry.Calls:
    """Return what repeats calls to AWS."""
    return retry.Calls(patience=patience, clock=clock.SystemClock(), jitter=random.random)


def console(target: Target) -> "tuple[ApiTransport | InvokeTransport, Backend, str | None]":
    """Return a deployment's API, the rest of it that the console shows, and its region.

    Raises DeploymentNotFound, Forbidden or Unavailable.
    """
    from dueline.aws import api_transport, clients
    from dueline.aws.botocore_errors import map_caller_errors
    from dueline.aws.cloudwatch import LogFigures
    from dueline.console.queue_views import Backend

    own = session(target) if target.profile or target.region or target.url is None else None
    logs = cache(lambda: clients.client("logs", session(target), longest=_LONGEST_LOOK))
    upstream = api_transport.connect(target.name, url=target.url, session=own, lanes=_LANES, transport=target.transport)
    time, calls = clock.SystemClock(), retrying(_OF_A_PAGE)
    backend = Backend(
        get=lambda path: calls.run(lambda: upstream.send("GET", path, None, headers={}).content()),
        dead_letters=partial(dead_letters, target),
        figures=LogFigures(Names(target.name), client=logs, map_errors=map_caller_errors),
        clock=time,
        parallel_map=retry.in_lanes,
    )
    return upstream, backend, own and own.region_name


def doctor(target: Target, *, now: datetime) -> "tuple[Sequence[Check], Callable[..., Observation]]":
    """Return what is to be looked at of a deployment, and what makes one of all that was seen.

    Raises DeploymentNotFound, Forbidden or Unavailable.
    """
    from dueline.aws import deployment_context, inspection
    from dueline.operations.observation import Observation

    there = deployment_context.find_deployment(target.name, session=session(target), now=now)
    return inspection.all_checks(there), partial(Observation, deployment=there.deployment, now=there.now)


def restore(target: Target, **options: Any) -> "Restore":
    """Return what lets a deployment take over restored tables. Raises DeploymentNotFound, Forbidden or Unavailable."""
    from dueline.aws import recovery

    return recovery.restore(target.name, session=session(target), **options)


def preflight(target: Target, *, declared: "Deployment", queues: Path, now: datetime) -> "Preflight":
    """Return what looks whether a deployment may begin. Raises Forbidden."""
    from dueline.aws.preflight import Preflight

    return Preflight(declared=declared, queues=queues, session=session(target), now=now)


def dead_letters(target: Target, queue: str | None) -> "RedriveQueues":
    """Return the dead letters of a queue, or of none, those that the deployment parked.

    Raises QueueNotFound, DeploymentNotFound, Forbidden or Unavailable.
    """
    from dueline.aws import recovery

    return recovery.dead_letters(target.name, queue, session=session(target))
