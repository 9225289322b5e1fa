"""Dynalite, a DynamoDB on Node, as a process of its own, on loopback."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

HERE = Path(__file__).parent


@contextmanager
def running() -> Iterator[str]:
    """Yield the endpoint of a new dynalite. It ends with the context, and with this process whatever ends that."""
    node = node_with_dynalite()
    # A session of its own: Ctrl-C reaches the tests alone, which close its standard input as they end.
    with Popen([node, HERE / "dynalite.js"], stdin=PIPE, stdout=PIPE, text=True, start_new_session=True) as process:
        port = process.stdout.readline().strip() if process.stdout else ""
        if not port:
            raise RuntimeError("dynalite ended as it started: what it says is above")
        yield f"http://127.0.0.1:{port}"


def node_with_dynalite() -> str:
    """Return where node is. Raises RuntimeError where it or dynalite is not installed."""
    node = shutil.which("node")
    if node is None or not (HERE / "node_modules" / "dynalite").is_dir():
        raise RuntimeError("dynalite is not installed: `make check` does it, and needs Node 20 or later")
    return node
