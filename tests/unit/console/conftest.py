import http.client
import json
import re
import socket
from contextlib import closing, contextmanager
from datetime import UTC, datetime

import pytest

from dueline.cli.connect import CommandRun, Target
from dueline.cli.console_command import serving
from dueline.cli.screen import Screen
from tests.fake_api_server import Reply, default_reply, fake_api_server
from tests.waiting import HANG_SECONDS


class Answer(Reply):
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
    """Sends requests to a console over one connection, with the headers of its page unless a test says otherwise."""

    def __init__(self, url):
        self.host, _, self.token = url.removeprefix("http://").partition("/#token=")
        self.port = self.host.partition(":")[2]
        self.connection = http.client.HTTPConnection(self.host, timeout=HANG_SECONDS)

    def close(self):
        self.connection.close()

    @property
    def folder(self):
        """The path of the page's files, as the page itself names it."""
        [icon] = re.findall(rb'href="([^"]+)/icon.svg"', self.send("GET", "/").body)
        return icon.decode()

    def send(self, method, path, body=None, **headers):
        """Send a request; headers are named with underscores, and None leaves one out."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        usual = {"host": self.host, "x-dueline-console": self.token, "content-type": "application/json"}
        sent = [(name, value) for name, value in {**usual, **named}.items() if value is not None]
        return self.send_lines(method, path, body, sent)

    def send_lines(self, method, path, body, headers):
        """Send a request with these headers alone."""
        self.connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in [*headers, *([] if body is None else [("content-length", str(len(body)))])]:
            self.connection.putheader(name, value)
        self.connection.endheaders(body)
        return read_answer(self.connection.getresponse())

    def raw(self):
        """Open another connection, for what is no proper request."""
        return socket.create_connection(("127.0.0.1", int(self.port)), timeout=HANG_SECONDS)


def read_answer(answer):
    headers = {name.lower(): value for name, value in answer.getheaders()}
    return Answer(status=answer.status, headers=headers, body=answer.read())


@pytest.fixture(scope="session")
def session_server():
    with fake_api_server() as api_server:
        api_server.queues_reply = None
        yield api_server


@pytest.fixture
def api_server(session_server):
    session_server.requests, session_server.script, session_server.respond = [], [], default_reply
    return session_server


@pytest.fixture(scope="session")
def session_url(session_server):
    with console_at(Target(url=session_server.url)) as url:
        yield url


@pytest.fixture
def browser(api_server, session_url):
    with closing(Browser(session_url)) as browser:
        yield browser


@contextmanager
def console_at(target, *, read_only=False):
    run = CommandRun(target=target, screen=Screen(as_json=False, now=datetime.now(UTC)))
    with serving(run, port=0, read_only=read_only) as url:
        yield url


@contextmanager
def browsing(target, *, read_only=False):
    """Open a console of its own for a test, and a browser."""
    with console_at(target, read_only=read_only) as url, closing(Browser(url)) as browser:
        yield browser
