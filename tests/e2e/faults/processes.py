"""The processes in which the emulator runs the functions: who made a request, and an end to it."""

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.inbox import wait_until

PROC = Path("/proc")
# In a function's process, Python reads this folder's sitecustomize.py as it starts.
SITE = Path(__file__).parent / "site"
HEADER = "x-told"
# A direct producer is no process of the emulator's: it has a number from here on, which no process has (`direct.py`).
DIRECT = "direct"
NO_PROCESS = 1 << 30


def environment(endpoint: str) -> dict[str, str]:
    """Return what functions find in their environment that speak to AWS at `endpoint`, and say who asks."""
    return {"AWS_ENDPOINT_URL": endpoint, "PYTHONPATH": str(SITE)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """A function's process."""

    pid: int
    function: str

    def kill(self) -> None:
        """Kill it at once (SIGKILL), and return when it is dead."""
        assert self.pid < NO_PROCESS, f"{self.function} has no process"
        os.kill(self.pid, signal.SIGKILL)
        assert wait_until(lambda: not self._runs(), every=0.001), f"process {self.pid} of {self.function} did not die"

    def _runs(self) -> bool:
        try:
            return (PROC / str(self.pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What a request tells of itself.

    `turn` is the same for all requests of one invocation, and no other's; `number` is the request's own in its process,
    and `unheard` are the numbers of those before whose answer the process has not read. `code` tells one release's code
    from another's, and is 0 for that of a direct producer of this process.
    """

    process: Process
    turn: str
    number: int
    unheard: frozenset[int]
    code: int = 0

    @classmethod
    def read(cls, header: str) -> "Told":
        told = json.loads(header)
        return cls(
            process=Process(pid=told["pid"], function=told["function"]),
            turn=told["turn"],
            number=told["number"],
            unheard=frozenset(told["unheard"]),
            code=told.get("code", 0),
        )
