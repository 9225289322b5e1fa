"""`dueline console`, started as its user starts it."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import boto3

from dueline import Client
from local.emulator import CREDENTIALS, REGION, Emulator
from local.template import ROOT
from tests.e2e.deployed import as_administrator
from tests.e2e.newcomer import at_a_terminal
from tests.waiting import HANG_SECONDS, PATIENT


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """A console that runs: the URL of its page, and its token."""

    url: str
    token: str


@contextmanager
def serving(consoles: Mapping[str, tuple[Mapping[str, str], *tuple[str, ...]]]) -> Iterator[dict[str, Served]]:
    """Run one for each environment and its options, by name, while the context is open; Ctrl-C ends all in order."""
    with ExitStack() as stack:
        processes = {name: stack.enter_context(_started(*console)) for name, console in consoles.items()}
        yield {name: _served(process) for name, process in processes.items()}
        for process in processes.values():
            process.send_signal(signal.SIGINT)
        for process in processes.values():
            output, _ = process.communicate(timeout=HANG_SECONDS)
            assert process.returncode == 0, output


@contextmanager
def _started(env: Mapping[str, str], *options: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "dueline", "console", "--no-browser", "--port", "0", *options]
    pipe: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, env=dict(env), preexec_fn=at_a_terminal, **pipe)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _served(process: "subprocess.Popen[str]") -> Served:
    output = ""
    for line in process.stdout:
        output += line
        if address := next((word for word in line.split() if "/#token=" in word), None):
            url, _, token = address.partition("/#token=")
            return Served(url=url, token=token)
    raise AssertionError(f"no address was printed: {output}")


@contextmanager
def administrator(emulator: Emulator, name: str) -> Iterator[Client]:
    """Let this process be an administrator of the emulator; yield a client of a deployment there."""
    with as_administrator(emulator, name):
        yield Client.connect(name, session=boto3.Session(region_name=REGION, **CREDENTIALS), patience=PATIENT)
