"""Run Dueline on this machine: `python -m local run`, `up` and `down`."""

import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from dueline.cli.app import signals_as_ctrl_c
from dueline.config import ConfigurationError
from local.demonstration import QUEUE, WORKER, Demonstration
from local.deploy import DeploymentError
from local.emulator import Emulator, is_free
from local.endpoints import Endpoints
from local.running import HOME, LOG, pid_file, pid_of, running
from local.template import ROOT, SynthesisError

QUEUES = ROOT / "queues.yaml"
# What `make env` prints.
ENV = HOME / "env"
PID = HOME / "up.pid"
PORT = HOME / "port"
STATE = HOME / "state"
# The local AWS has this port, the API the next one, and the console the one after that.
FIRST_PORT = 4566
# A Query of the emulator takes 0.3 s then, and longer with each job; one of DynamoDB does not.
MOST_WAITING = 10_000

app = typer.Typer(help="Run Dueline in a local AWS.", no_args_is_help=True, add_completion=False)
console = Console()

Queues = Annotated[Path, typer.Option(help="The deployment's settings and queues.", exists=True, dir_okay=False)]
Port = Annotated[
    int | None, typer.Option(envvar="DUELINE_PORT", min=1024, max=65533, help="The first of three free ports.")
]


@app.command()
def run() -> None:
    """Deploy Dueline into a local AWS, watch a worker process a handful of jobs, and stop.

    Exits 0 only if no job was lost, early, or started after it was cancelled.
    """
    with _plain_errors():
        with running(QUEUES, emulator=Emulator(log=LOG), step=_step) as deployment:
            summary, is_good = Demonstration(deployment, say=_print).play()
        _print(summary)
        for fault in deployment.tick_faults:
            console.print(f"a tick failed: {fault}", style="red")
    raise typer.Exit(0 if is_good else 1)


@app.command()
def up(queues: Queues = QUEUES, port: Port = None) -> None:
    """Deploy Dueline into a local AWS and stay up until Ctrl-C or `down`. State survives a restart."""
    with _plain_errors(), pid_file(PID):
        port = _first_port(port)
        emulator = Emulator(log=LOG, state=STATE, port=port)
        with running(queues, emulator=emulator, step=_step, api_port=port + 1) as deployment:
            endpoints = replace(deployment.endpoints, console_port=port + 2)
            # At once and whole.
            draft = ENV.with_suffix(".draft")
            draft.write_text(_for_a_shell(endpoints))
            draft.replace(ENV)
            try:
                _print(_next_steps(endpoints))
                with suppress(KeyboardInterrupt):
                    signal.pause()
            finally:
                ENV.unlink(missing_ok=True)


@app.command()
def down() -> None:
    """End what `up` started, leaving it time to write its state."""
    pid = pid_of(PID)
    if pid is None:
        console.print("it is not up")
        return
    os.kill(pid, signal.SIGTERM)
    with _step(f"ending process {pid}"):
        while pid_of(PID) == pid:
            time.sleep(0.1)
    console.print("down")


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn what a user can mend into a message, and Ctrl-C, SIGTERM and a closed terminal into an orderly end."""
    # Explicitly: what a shell starts in the background inherits that SIGINT is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with signals_as_ctrl_c():
            yield
    except (ConfigurationError, SynthesisError, DeploymentError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        console.print("stopped")
        raise typer.Exit(130) from None


def _fail(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(1)


@contextmanager
def _step(what: str) -> Iterator[None]:
    """Show what is being done, and how long it took."""
    started = time.monotonic()
    with console.status(f"{what} …"):
        yield
    _print(f"{what}: {time.monotonic() - started:.1f} s")


def _print(line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def _for_a_shell(endpoints: Endpoints) -> str:
    """Return what makes a shell use what is up, and this project's programs."""
    variables = [f"export {name}={shlex.quote(value)}\n" for name, value in endpoints.to_env().items()]
    # A virtual environment that is active has its own.
    path = f'[ -n "${{VIRTUAL_ENV:-}}" ] || export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"\n'
    return "".join([*variables, "unset AWS_PROFILE AWS_SESSION_TOKEN\n", path])


def _next_steps(endpoints: Endpoints) -> str:
    queue = QUEUE if QUEUE in endpoints.queues else next(iter(endpoints.queues), QUEUE)
    worker = WORKER if queue == QUEUE else "YOUR_MODULE:worker"
    return f"""up: the API {endpoints.api}, the local AWS {endpoints.aws}

In another shell:
    eval "$(make -s env)"                    # in each shell, once
    {f"dueline worker {worker}":<41}# a worker; then, in a third shell:
    dueline schedule {queue} '{{"to": "ann"}}' --delay 30s
    dueline queues
    make console                             # http://127.0.0.1:{endpoints.console_port}

It is good for about {MOST_WAITING:,} waiting jobs a partition: the local AWS reads more slowly the more there are.
Jobs are kept over a restart, in {HOME}. `make down` or Ctrl-C ends it."""


def _first_port(chosen: int | None) -> int:
    """Return the first of the ports: that of the last run, because the queues' URLs in the kept state name it."""
    kept = int(PORT.read_text()) if STATE.exists() and PORT.exists() else None
    port = chosen or kept or FIRST_PORT
    if kept not in (None, port):
        _fail(f"DUELINE_PORT is {port}, but the jobs in {HOME} are kept for {kept}: set that, or remove {HOME}")
    for number, whose in ((port, "the local AWS"), (port + 1, "the API")):
        if not is_free(number):
            others = f"set the first of three free ports: make up DUELINE_PORT={FIRST_PORT + 10_000}"
            _fail(f"port {number}, of {whose}, is in use: end what listens there, or {others}")
    PORT.write_text(str(port))
    return port


if __name__ == "__main__":
    app(prog_name="python -m local")
