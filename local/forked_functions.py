"""Processes of functions as forks of one that has imported the functions' libraries, as with SnapStart.

To import them and to make clients takes a second of CPU, and each partition whose tick is under way has a process. The
emulator's program for a function runs here unchanged, and imports the function's own code.
"""

import os
import runpy
import subprocess
import sys
from multiprocessing import set_forkserver_preload
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from typing import Any

_POWERTOOLS = ["aws_lambda_powertools.event_handler", "aws_lambda_powertools.utilities.batch"]
# By name, from what is installed: one that cannot be imported is passed over in silence, and each process that needs
# it imports it by itself.
set_forkserver_preload(["local.botocore_data", "pydantic", "cronsim", *_POWERTOOLS])


class Fork:
    """A process of a function, with what the emulator needs of `subprocess.Popen`."""

    def __init__(self, program: str, *, cwd: str, env: dict[str, str]) -> None:
        (stdin, into), (out_of, stdout), (errors_of, stderr) = (os.pipe() for _ in range(3))
        self.stdin, self.stdout, self.stderr = open(into, "w"), open(out_of), open(errors_of)  # noqa: SIM115
        theirs = [stdin, stdout, stderr]
        try:
            self._process = _Process(program, theirs, cwd=cwd, env=env)
            self._process.start()
        finally:
            for each in theirs:
                os.close(each)

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


class _Process(ForkServerProcess):
    """Runs a program with these files as its standard ones, and with nothing else of the server's surroundings."""

    def __init__(self, program: str, files: list[int], *, cwd: str, env: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self._program, self._cwd, self._env = program, cwd, env
        self._files: list[Any] = files

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_files": [DupFd(each) for each in self._files]}

    def run(self) -> None:
        os.chdir(self._cwd)
        os.environ.clear()
        os.environ.update(self._env)
        for number, file in enumerate(self._files):
            os.dup2(file.detach(), number)
        sys.stdin = open(0)  # noqa: SIM115
        runpy.run_path(self._program, run_name="__main__")


def start(command: list[str], **options: Any) -> Any:
    """Start a process as `subprocess.Popen` does, a function's in Python as a fork."""
    if command[0] != sys.executable:
        return subprocess.Popen(command, **options)
    return Fork(command[1], cwd=options["cwd"], env=options["env"])
