"""`dueline console`, as it is typed."""

import json
import signal
import socket
import sys
import webbrowser
from contextlib import closing
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from dueline.cli import console_command
from dueline.cli.app import app
from tests.fake_api_server import json_reply
from tests.unit.console.conftest import Browser

LOCAL = ("--url", "http://127.0.0.1:9", "console")


def run(*args):
    return CliRunner().invoke(app, list(args))


@pytest.fixture
def opened_urls(monkeypatch):
    """Stand in for the browser: note the URL that it is to open."""
    urls = []
    monkeypatch.setattr(webbrowser, "open", urls.append)
    monkeypatch.setattr(console_command, "Event", Mock(side_effect=KeyboardInterrupt))
    return urls


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM])
def test_page_opens_and_ctrl_c_exits_with_0(monkeypatch, api_server, signalled):
    observed = []

    def look(url):
        api_server.script = [json_reply({"queues": []})]
        with closing(Browser(url)) as browser:
            observed.append(browser.send("GET", "/api/queues").status)
        signal.raise_signal(signalled)

    monkeypatch.setattr(webbrowser, "open", look)
    done = run("--url", api_server.url, "console")
    assert (done.exit_code, observed) == (0, [200])
    assert done.stderr == ""


def test_printed_url_has_the_token(opened_urls):
    done = run(*LOCAL, "--no-browser", "--json")
    url = json.loads(done.stdout)["url"]
    assert opened_urls == []
    assert url.startswith("http://127.0.0.1:")
    assert len(url.partition("/#token=")[2]) >= 43
    assert run(*LOCAL).stdout.splitlines()[0] == f"the console: {opened_urls[0]}"


def test_a_port_in_use_is_an_error(opened_urls):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run(*LOCAL, "--port", str(port))
    assert (done.exit_code, opened_urls) == (2, [])
    assert f"port {port} is not available" in done.stderr


def test_it_listens_on_this_machine_alone(opened_urls, monkeypatch):
    bound = []
    bind = socket.socket.bind
    monkeypatch.setattr(socket.socket, "bind", lambda self, address: (bound.append(address), bind(self, address))[1])
    run(*LOCAL)
    assert [host for host, _ in bound] == ["127.0.0.1"]


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_missing_extra_says_what_to_install(monkeypatch, opened_urls, missing):
    for name in list(sys.modules):
        if name.partition(".")[0] == missing or name.startswith("dueline.console"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    done = run(*LOCAL)
    assert (done.exit_code, opened_urls) == (2, [])
    assert done.stderr == "dueline: the console needs Starlette and uvicorn: pip install 'dueline[console]'\n"
    assert "console" in run("--help").stdout
