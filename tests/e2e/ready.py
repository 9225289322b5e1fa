"""The command `dueline`, imported once: each that is typed is a fork of one process, `python -m tests.e2e.ready`.

To import what a command needs, and to read what AWS's services are, takes a second of CPU. tests/unit/test_cli.py
starts it as its users do.
"""

import json
import os
import socket
import socketserver
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path

import boto3
import botocore.session

from dueline.cli import app
from local.emulator import CREDENTIALS, REGION
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
SERVICES = ("cloudwatch", "dynamodb", "lambda", "s3", "sqs", "ssm")
# What is typed: it hands its arguments, surroundings and open files to a fork, and ends as that does.
_COMMAND = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b" "], [0, 1, 2])
    server.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(3) or 1))
"""


@contextmanager
def typed_in(folder: Path) -> Iterator[None]:
    """Put a command `dueline` into a folder, which works while the context is open."""
    with subprocess.Popen([sys.executable, "-m", "tests.e2e.ready", str(folder)], cwd=ROOT) as process:
        try:
            assert wait_until(lambda: (folder / "dueline").exists() or process.poll() is not None)
            yield
        finally:
            process.kill()


class _Typed(socketserver.BaseRequestHandler):
    """Runs what was typed in a fork, with its open files and surroundings; answers with the exit code."""

    def handle(self) -> None:
        _, files, _, _ = socket.recv_fds(self.request, 1, 3)
        with self.request.makefile("rb") as sent:
            args, folder, environment = json.loads(sent.read())
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv[1:] = args
        try:
            code = app.run()
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        self.request.sendall(str(code).encode())


class _Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    max_children = 1000


def _serve(folder: Path) -> None:
    # What a session reads of botocore's files, each fork has by then.
    botocore.session.create_loader = cache(botocore.session.create_loader)
    session = boto3.Session(region_name=REGION, **CREDENTIALS)
    for service in SERVICES:
        session.client(service)
    for place, _ in app.COMMANDS.values():
        import_module(f"dueline.cli.{place.partition(':')[0]}")
    import_module("dueline.cli.schedule_commands")
    with _Server(address := str(folder / "socket"), _Typed) as server:
        made = folder / "made"
        made.write_text(_COMMAND.format(python=sys.executable, address=address))
        made.chmod(0o755)
        made.rename(folder / "dueline")
        server.serve_forever()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
