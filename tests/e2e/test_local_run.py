"""The local run, as a newcomer starts it and the tutorial says."""

import re
import shlex
import signal
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest

from dueline import Client, State
from dueline.config.names import Names
from local.emulator import CREDENTIALS
from local.template import ROOT
from tests.e2e.deployed import send_inbound
from tests.e2e.newcomer import Reader, blocks, local
from tests.waiting import HANG_SECONDS, PATIENT, wait_until


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home in which what was synthesized once is found again."""
    return tmp_path_factory.mktemp("home")


def test_tutorial_works_as_typed_and_is_kept(home, commands):
    """README's commands as well; and what was scheduled is there again at the next `make up`, at the same ports."""
    tutorial, readme = (blocks((ROOT / page).read_text()) for page in ("docs/tutorial.md", "README.md"))
    [first_job] = [block.text for block in readme if "make -s env" in block.text]
    with Reader(home, commands) as newcomer:
        newcomer.follow(tutorial[:-1], folder="shop")
        shell = newcomer.terminal("README")
        shell.type("export AWS_PROFILE=other AWS_SESSION_TOKEN=other\n")
        shell.type(f'{first_job}[ -z "$AWS_PROFILE$AWS_SESSION_TOKEN" ]\n')
        ports = _ports(_environment(home))
        assert ports == [newcomer.port, newcomer.port + 1, newcomer.port + 2]
        newcomer.follow(tutorial[-1:], folder="shop")
        assert not (home / "env").exists()
        # It ended with 0, or else it was refused.
        newcomer.terminal("Terminal 1").type("true\n")
    assert wait_until(lambda: not _running(home))
    with up(home) as env:
        assert _ports(env) == ports
        client = Client.connect(env["DUELINE_NAME"], url=env["DUELINE_URL"], patience=PATIENT)
        assert client.get(queue="emails", key="welcome-ann").state is State.SCHEDULED
        # As submission does while the table throttles.
        url, region = env["AWS_ENDPOINT_URL"], env["AWS_DEFAULT_REGION"]
        sqs = boto3.client("sqs", endpoint_url=url, region_name=region, **CREDENTIALS)
        inbound = sqs.get_queue_url(QueueName=Names(env["DUELINE_NAME"]).inbound)["QueueUrl"]
        id = send_inbound(sqs, inbound, due=datetime.now(UTC) + timedelta(hours=1))
        assert wait_until(lambda: client.get(id).state is State.SCHEDULED)


@contextmanager
def up(home):
    """Stay up while the context lasts; a terminal that is closed must end it in order."""
    env = home / "env"
    process = local("up", home)
    try:
        assert wait_until(lambda: env.exists() or process.poll() is not None)
        yield _environment(home)
        process.send_signal(signal.SIGHUP)
        assert process.wait(HANG_SECONDS) == 0
        assert not env.exists()
        assert wait_until(lambda: not _running(home))
    finally:
        process.terminate()
        process.communicate()


def test_ctrl_c_in_synthesis_leaves_nothing(tmp_path):
    process = local("run", tmp_path)
    # The CDK's two, at least.
    assert wait_until(lambda: len(_running(tmp_path)) >= 3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 130
    assert wait_until(lambda: not _running(tmp_path))


def test_run_shows_the_worker_at_work(home):
    demonstration = local("run", home)
    output, _ = demonstration.communicate(timeout=HANG_SECONDS)
    assert demonstration.returncode == 0, output
    # A cancel that comes too late, on a slow machine, is none.
    summary = r"scheduled 8  succeeded [78]  cancelled [01]  lost 0  early 0  started after a cancel 0\n"
    assert re.search(summary, output), output
    lines = [" ".join(line.split()) for line in output.splitlines()]
    # Which attempt it is, is SQS's count: one that a slow machine took back counts as well.
    for shown in (
        r"scheduled welcome bob due .* route: direct",
        r"scheduled welcome cid due .* route: table",
        r"moved welcome eve due .* by its key",
        r"run now digest",
        r".* retried queue=emails .* kind=receipt attempt=\d+ .* ConnectionError: the mail server does not answer",
        r".* failed queue=emails .* kind=welcome attempt=\d+ .*",
        r"ConnectionError: the mail server does not answer",  # of the stack trace
        r"1 of 1 dead letter of queue emails: 1 put back",
        r"to gil@example.com: Welcome!",
        r".* succeeded queue=emails .* kind=receipt attempt=\d+ .*",
        r".* succeeded queue=emails .* kind=digest attempt=\d+ .*",
    ):
        assert any(re.fullmatch(shown, line) for line in lines), (shown, output)


def _environment(home):
    """Return what a shell gets of `make env`."""
    exported = re.findall(r"^export (\w+)=(.+)$", (home / "env").read_text(), re.MULTILINE)
    return {name: shlex.split(value)[0] for name, value in exported}


def _ports(env):
    """Return the ports of the local AWS, the API and the console."""
    return [urlsplit(env["AWS_ENDPOINT_URL"]).port, urlsplit(env["DUELINE_URL"]).port, int(env["DUELINE_CONSOLE_PORT"])]


def _running(home):
    """Return the processes that were started with this home and still run."""
    marked = f"DUELINE_HOME={home}".encode()
    return [path.parent.name for path in Path("/proc").glob("[0-9]*/environ") if marked in _read(path)]


def _read(path):
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
