"""`dueline console`, as it is typed."""

import json
import signal
import socket
import webbrowser
from contextlib import closing

import pytest
from typer.testing import CliRunner

from dueline.cli import console
from dueline.cli.app import app
from tests.gate import told
from tests.unit.console.conftest import Browser

LOCAL = ("--url", "http://127.0.0.1:9", "console")


def typed(*args):
    return CliRunner().invoke(app, list(args))


class Interrupted:
    """What waits, and is interrupted at once."""

    def wait(self):
        raise KeyboardInterrupt


@pytest.fixture
def looks(monkeypatch):
    """Stand in for the browser: note the URL that it is to open."""
    urls = []
    monkeypatch.setattr(webbrowser, "open", urls.append)
    monkeypatch.setattr(console, "Event", Interrupted)
    return urls


@pytest.fixture
def _interruptible():
    """Have Ctrl-C do what it does in a terminal: what is started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM])
def test_it_opens_the_page_and_ends_by_ctrl_c_with_0(monkeypatch, gate, signalled):
    seen = []

    def look(url):
        gate.script = [told({"queues": []})]
        with closing(Browser(url)) as browser:
            seen.append(browser.ask("GET", "/api/queues").status)
        signal.raise_signal(signalled)

    monkeypatch.setattr(webbrowser, "open", look)
    done = typed("--url", gate.url, "console")
    assert (done.exit_code, seen) == (0, [200])
    assert done.stderr == ""


def test_its_url_has_the_token_in_the_fragment_and_is_printed_where_no_browser_opens(looks):
    done = typed(*LOCAL, "--no-browser", "--json")
    url = json.loads(done.stdout)["url"]
    assert looks == []
    assert url.startswith("http://127.0.0.1:")
    assert len(url.partition("/#token=")[2]) >= 43
    assert typed(*LOCAL).stdout.splitlines()[0] == f"the console: {looks[0]}"


def test_a_port_that_is_taken_is_told(looks):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = typed(*LOCAL, "--port", str(port))
    assert done.exit_code == 2
    assert f"port {port} cannot be had" in done.stderr
    assert looks == []


def test_it_listens_on_this_machine_alone(looks, monkeypatch):
    bound = []
    bind = socket.socket.bind
    monkeypatch.setattr(socket.socket, "bind", lambda self, address: (bound.append(address), bind(self, address))[1])
    typed(*LOCAL)
    assert [host for host, _ in bound] == ["127.0.0.1"]
