import http.client
import json
import re
from collections.abc import Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from dueline.cli.connect import Run, Target
from dueline.cli.console import opened
from dueline.cli.screen import Screen
from tests.gate import open_gate
from tests.waiting import HANG_SECONDS


@dataclass(frozen=True)
class Told:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def refusal(self):
        """The status and the code of problem details."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.json["status"] == self.status
        return self.status, self.json["code"]


class Browser:
    """What asks a console, over one connection: as its page does, but for what a test says."""

    def __init__(self, url):
        self.url = url
        self.host, _, self.token = url.removeprefix("http://").partition("/#token=")
        self.connection = http.client.HTTPConnection(self.host, timeout=HANG_SECONDS)

    def close(self):
        self.connection.close()

    @property
    def place(self):
        """The path of the page's files, as the page itself names it."""
        [icon] = re.findall(rb'href="([^"]+)/icon.svg"', self.ask("GET", "/").body)
        return icon.decode()

    def ask(self, method, path, body=None, **headers):
        """Ask; headers are named with underscores, and None leaves one out."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        usual = {"host": self.host, "x-dueline-console": self.token, "content-type": "application/json"}
        sent = {name: value for name, value in {**usual, **given}.items() if value is not None}
        self.connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {**sent, **({} if body is None else {"content-length": str(len(body))})}.items():
            self.connection.putheader(name, value)
        self.connection.endheaders(body)
        answer = self.connection.getresponse()
        return Told(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


@pytest.fixture
def gate():
    with open_gate() as opened_gate:
        opened_gate.of_ids = None
        yield opened_gate


@pytest.fixture
def browse(gate):
    """Open a console of the gate, as `with browse(read_only=True) as browser`."""
    return lambda **options: browsing(Target(url=gate.url), **options)


@pytest.fixture
def browser(browse):
    with browse() as one:
        yield one


@contextmanager
def browsing(target, *, read_only=False):
    """Open a console of a deployment, and a browser that is to close."""
    run = Run(target=target, screen=Screen(as_json=False, now=datetime.now(UTC)))
    with opened(run, port=0, read_only=read_only) as url, closing(Browser(url)) as browser:
        yield browser
