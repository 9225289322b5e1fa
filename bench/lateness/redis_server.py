"""Redis, as Debian packages it, as a process of its own on loopback."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import running, wait_until
from local.emulator import free_port

_UPDATE = ("apt-get", "update")
_INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "redis-server")


@contextmanager
def redis_server(folder: Path, *, appendfsync: str = "everysec") -> Iterator[str]:
    """Yield the URL of a new server, which keeps what it was told in a folder (appendonly, synced each second)."""
    program, port = found(), free_port()
    folder.mkdir(parents=True, exist_ok=True)
    place = {"port": str(port), "bind": "127.0.0.1", "dir": str(folder)}
    settings = {**place, "save": "", "appendonly": "yes", "appendfsync": appendfsync}
    command = [program, *(word for name, value in settings.items() for word in (f"--{name}", value))]
    with running(command, log=folder / "log"):
        wait_until(lambda: _answers(port), what="redis-server answers")
        yield f"redis://127.0.0.1:{port}/0"


def found() -> str:
    """Return where redis-server is; install it where it is missing and this is root. Raises RuntimeError."""
    if shutil.which("redis-server") is None and os.geteuid() == 0 and shutil.which(_INSTALL[0]):
        for command in (_UPDATE, _INSTALL):
            subprocess.run(command, check=False, capture_output=True)
    program = shutil.which("redis-server")
    if program is None:
        raise RuntimeError(f"redis-server is not on the PATH: install it with `{' '.join(_INSTALL)}`")
    return program


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(5) == b"+PONG"
    except OSError:
        return False
