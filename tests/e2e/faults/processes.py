"""The processes in which the emulator runs the functions: who speaks on a connection, and an end to it."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_DIES_WITHIN_SECONDS = 5
_LOOKS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """A function's process."""

    pid: int
    function: str

    def kill(self) -> None:
        """Kill it at once (SIGKILL), and return when it is dead."""
        os.kill(self.pid, signal.SIGKILL)
        deadline = time.monotonic() + _DIES_WITHIN_SECONDS
        while self._runs():
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} of {self.function} did not die")
            time.sleep(0.001)

    def _runs(self) -> bool:
        try:
            return (PROC / str(self.pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False


def speaker(port: int, *, endpoint: str) -> Process | None:
    """Return which function's process holds the connection from that port, if the system tells (as Linux does).

    Only processes that were told to speak to `endpoint` are looked at.
    """
    # The system's table of connections may miss one that is there while others come and go.
    return next((found for found in (_speaker(port, endpoint) for _ in range(_LOOKS)) if found), None)


def _speaker(port: int, endpoint: str) -> Process | None:
    inode = _inode(port)
    for folder in PROC.glob("[0-9]*") if inode else ():
        try:
            environment = dict(
                pair.split("=", 1) for pair in (folder / "environ").read_text().split("\0") if "=" in pair
            )
            if environment.get("AWS_ENDPOINT_URL") == endpoint and _holds(folder, f"socket:[{inode}]"):
                function = environment.get("AWS_LAMBDA_FUNCTION_NAME", "?").rpartition("-")[2]
                return Process(pid=int(folder.name), function=function)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return None


def _inode(port: int) -> str:
    table = PROC / "net" / "tcp"
    lines = table.read_text().splitlines()[1:] if table.exists() else []
    found = [fields[9] for fields in map(str.split, lines) if int(fields[1].partition(":")[2], 16) == port]
    return next((inode for inode in found if inode != "0"), "")


def _holds(folder: Path, socket: str) -> bool:
    return any(_target(descriptor) == socket for descriptor in (folder / "fd").iterdir())


def _target(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:  # closed since it was listed
        return ""
