"""Processes of functions as forks, as with SnapStart: one imports the function's code, and all others go on from there.

To import it takes a second of CPU, and each partition whose tick is under way has a process. The emulator's program for
a function reads a line that names the code, imports it, says that it is ready, and reads a line for each invocation.
That runs here unchanged: as it reads the second line, it is forked.
"""

import json
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from select import select
from typing import Any

# What differs between processes of a function.
_OWN = ("AWS_LAMBDA_LOG_STREAM_NAME", "LAMBDA_TASK_ROOT")
_REQUEST_BYTES = 2**17


class Fork:
    """A process of a function, with what the emulator needs of `subprocess.Popen`."""

    def __init__(self, program: str, *, cwd: str, env: dict[str, str]) -> None:
        (stdin, into), (out_of, stdout), (errors_of, stderr), (ended, alive) = (os.pipe() for _ in range(4))
        self.stdin, self.stdout, self.stderr = open(into, "w"), open(out_of), open(errors_of)  # noqa: SIM115
        self._ended = open(ended)  # noqa: SIM115
        theirs = [stdin, stdout, stderr, alive]
        try:
            _original(program, cwd=cwd, env=env).fork(theirs, cwd=cwd, env=env)
        finally:
            for each in theirs:
                os.close(each)

    @cached_property
    def pid(self) -> int:
        """Its id, 0 if it could not be started. Known once it is ready."""
        return int(self._ended.readline() or 0)

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float) -> int:
        """Wait until it has ended, however it did."""
        if self.pid and not select([self._ended], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return 1

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class _Original:
    """The process of a function's code and surroundings that is forked, and serves nobody itself."""

    def __init__(self, program: str, *, env: dict[str, str]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-P", __file__, program, str(theirs.fileno())]
            self._process = subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()])

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def fork(self, files: list[int], **about: Any) -> None:
        socket.send_fds(self._requests, [json.dumps(about).encode()], files)


_originals: dict[str, _Original] = {}
_lock = threading.Lock()


def _original(program: str, *, cwd: str, env: dict[str, str]) -> _Original:
    same = json.dumps({name: value for name, value in env.items() if name not in _OWN}, sort_keys=True)
    key = sha256((Path(cwd).parent / "code.zip").read_bytes() + same.encode()).hexdigest()
    with _lock:
        if key not in _originals or not _originals[key].is_alive():
            _originals[key] = _Original(program, env=env)
        return _originals[key]


def start(command: list[str], **options: Any) -> Any:
    """Start a process as `subprocess.Popen` does, a function's in Python as a fork."""
    if command[0] != sys.executable:
        return subprocess.Popen(command, **options)
    return Fork(command[1], cwd=options["cwd"], env=options["env"])


class _Lines:
    """What the program reads: of the one that is forked the first line, and of each fork all others."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._alive = self._become_next()
        self._is_first = True

    def readline(self) -> str:
        if self._is_first:
            self._is_first = False
            with open(0, closefd=False) as file:
                begin = json.loads(file.readline())
            # The folder goes with its process, and what is imported later is read from it.
            kept = shutil.copytree(begin["code_dir"], tempfile.mkdtemp(), dirs_exist_ok=True)
            return json.dumps({**begin, "code_dir": kept})
        is_answered = True
        while os.fork():
            os.close(self._alive)
            self._alive, is_answered = self._become_next(), False
        return self._begin(is_answered=is_answered)

    def _become_next(self) -> int:
        """Become the process that is requested next, but for its code; return what is open as long as it lives."""
        with open(os.devnull, "r+") as nothing:
            for number in range(3):
                os.dup2(nothing.fileno(), number)
        message, files, _, _ = socket.recv_fds(self._requests, _REQUEST_BYTES, 4)
        if not message:
            os._exit(0)
        about = json.loads(message)
        os.chdir(about["cwd"])
        os.environ.clear()
        os.environ.update(about["env"])
        for number, file in enumerate(files[:3]):
            os.dup2(file, number)
            os.close(file)
        return files[3]

    def _begin(self, *, is_answered: bool) -> str:
        """Say who this is, and once that it is ready; return the first invocation."""
        self._requests.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.write(self._alive, f"{os.getpid()}\n".encode())
        sys.stdin = open(0)  # noqa: SIM115
        if not is_answered:
            sys.stdin.readline()
            os.write(1, b'{"status": "ready", "cold": true}\n')
        return sys.stdin.readline()


if __name__ == "__main__":
    # Nobody waits for the forks.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdin = _Lines(socket.socket(fileno=int(sys.argv[2])))
    runpy.run_path(sys.argv[1], run_name="__main__")
