"""The server that answers, as whoever measures sees it."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.cpu.answerer import RECORD, RECORDED, SECONDS, written
from bench.cpu.answers import Stock
from local.template import ROOT

Request = tuple[str, str]


class Loopback:
    """A running server: `endpoint` for AWS's clients, and what it noted."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.endpoint = f"http://127.0.0.1:{port}"

    def record(self) -> None:
        self._ask(RECORD)

    def recorded(self) -> list[Request]:
        """Return the target and the body of each request since `record`, in the order in which they came."""
        return [(target, body) for target, body in self._ask(RECORDED)]

    def seconds(self) -> float:
        """Return the seconds that the server has spent on the processor."""
        return float(self._ask(SECONDS))

    def _ask(self, target: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/", b"", {"X-Amz-Target": target})
        told = json.loads(connection.getresponse().read())
        connection.close()
        return told


@contextmanager
def answering(stock: Stock, *, folder: Path) -> Iterator[Loopback]:
    """Run a server in a process of its own while the context lasts."""
    file = folder / "stock.json"
    file.write_text(written(stock))
    command = [sys.executable, "-m", "bench.cpu.answerer", str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Loopback(int(process.stdout.readline() if process.stdout else 0))
        finally:
            process.terminate()
