"""How a local run ends, wherever it was started."""

import os
import signal
from collections.abc import Iterator

import pytest
from typer import Exit

from local.__main__ import _plain_errors

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in ENDINGS}
    yield
    for each, heard in before.items():
        signal.signal(each, heard)


def test_in_the_background_of_a_shell_it_ends_on_sigterm() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(Exit) as ended, _plain_errors():
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.exit_code == 130


def test_a_closed_terminal_ends_it_but_not_under_nohup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with _plain_errors():
        os.kill(os.getpid(), signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with pytest.raises(Exit), _plain_errors():
        os.kill(os.getpid(), signal.SIGHUP)
