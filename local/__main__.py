"""Run Dueline on this machine: `python -m local run`, `up`, `env` and `down`."""

import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal, NoReturn

import typer
from rich.console import Console

from dueline.config import ConfigurationError
from local.demonstration import Demonstration, summary_of
from local.deploy import DeploymentError
from local.emulator import Emulator, free_port, is_free
from local.endpoints import Endpoints
from local.running import HOME, LOG, AlreadyUp, pid_file, pid_of, running
from local.template import ROOT, SynthesisError

ENDPOINTS = HOME / "endpoints.json"
PID = HOME / "up.pid"
PORT = HOME / "port"
STATE = HOME / "state"
# Only a hang takes so long: the emulator has its own time to write its state.
_STOP_SECONDS = 300

app = typer.Typer(help="Run Dueline in a local AWS.", no_args_is_help=True, add_completion=False)
console = Console()

Queues = Annotated[Path, typer.Option(help="The deployment's settings and queues.", exists=True, dir_okay=False)]
Tick = Annotated[Literal["fast", "aws"], typer.Option(help="Fire ticks every 2 seconds, or once a minute as AWS does.")]


@app.command()
def run(queues: Queues = ROOT / "queues.yaml") -> None:
    """Deploy Dueline into a local AWS, watch it deliver a handful of jobs, and stop.

    Exits 0 only if no job was lost, early, or delivered after it was cancelled.
    """
    with _plain_errors(), running(queues, emulator=Emulator(log=LOG), step=_step) as deployment:
        demonstration = Demonstration(deployment, say=_print)
        demonstration.play()
        summary = summary_of(demonstration.jobs)
        _print(str(summary))
        for fault in deployment.tick_faults:
            console.print(f"a tick failed: {fault}", style="red")
    raise typer.Exit(0 if summary.is_good else 1)


@app.command()
def up(queues: Queues = ROOT / "queues.yaml", tick: Tick = "fast") -> None:
    """Deploy Dueline into a local AWS and stay up until Ctrl-C or `down`. State survives a restart."""
    with _plain_errors(), pid_file(PID):
        emulator = Emulator(log=LOG, state=STATE, port=_same_port())
        with running(queues, emulator=emulator, step=_step, real_schedule=tick == "aws") as deployment:
            deployment.endpoints.write(ENDPOINTS)
            try:
                _print(_addresses(deployment.endpoints))
                with suppress(KeyboardInterrupt):
                    while PID.exists():
                        time.sleep(0.1)
                    _fail(f"{PID} is gone, and the state with it: this run ends")
            finally:
                ENDPOINTS.unlink(missing_ok=True)


@app.command()
def down() -> None:
    """End what `up` started, leaving it time to write its state."""
    pid = pid_of(PID)
    if pid is None:
        console.print("it is not up")
        return
    os.kill(pid, signal.SIGTERM)
    with _step(f"ending process {pid}"):
        deadline = time.monotonic() + _STOP_SECONDS
        while pid_of(PID) == pid and time.monotonic() < deadline:
            time.sleep(0.1)
        if pid_of(PID) == pid:
            _fail(f"process {pid} did not end within {_STOP_SECONDS} s: see {LOG}")
    console.print("down")


@app.command()
def env() -> None:
    """Print what makes a shell speak to what is up: eval "$(python -m local env)"."""
    try:
        endpoints = Endpoints.read(ENDPOINTS)
    except FileNotFoundError:
        _fail("it is not up: `make up` starts it")
    for name, value in endpoints.to_env().items():
        print(f"export {name}={shlex.quote(value)}")


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn what a user can mend into a message, and Ctrl-C, SIGTERM and a closed terminal into an orderly end."""
    # Explicitly: what a shell starts in the background inherits that SIGINT is ignored.
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup, which is to outlive its terminal
        signal.signal(signal.SIGHUP, _interrupt)
    try:
        yield
    except (AlreadyUp, ConfigurationError, SynthesisError, DeploymentError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        console.print("stopped")
        raise typer.Exit(130) from None


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


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
    console.print(line, highlight=False, soft_wrap=True)


def _addresses(endpoints: Endpoints) -> str:
    return (
        f"up: {endpoints.api}\nits docs: {endpoints.docs}\nall endpoints: {ENDPOINTS}\n"
        "its console: make console\n"
        'for `dueline` and boto3: eval "$(.venv/bin/python -m local env)"\nCtrl-C or `make down` ends it'
    )


def _same_port() -> int:
    """Return the port of the last run, because the queues' URLs in the kept state name it, or a new one."""
    port = int(PORT.read_text()) if PORT.exists() else free_port()
    if not is_free(port):
        _fail(f"port {port} is taken, and the state in {STATE} names it: end what listens there, or remove {HOME}")
    HOME.mkdir(exist_ok=True)
    PORT.write_text(str(port))
    return port


if __name__ == "__main__":
    app(prog_name="python -m local")
