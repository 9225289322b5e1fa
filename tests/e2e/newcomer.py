"""What a newcomer types."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from local.emulator import free_port
from local.template import ROOT
from tests.waiting import HANG_SECONDS, wait_until

BLOCK = re.compile(r"^```(?P<language>\w+)(?: title=\"(?P<title>.+?)\")?\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
# What stays in its terminal until Ctrl-C.
STAYING = ("make up", "make console", "dueline worker")
# The environment is made already, what ends soon is typed in tests/e2e/ready.py, and a failed command leaves its mark.
PROMPT = """
make() { command make -o .venv/ready "$@"; }
dueline() { case "$1" in worker) command dueline "$@";; *) "$READY/dueline" "$@";; esac; }
trap 'echo "this was refused: $BASH_COMMAND"' ERR
"""
DONE = "this was typed, and is done"


# Tests of this repository have more plugins than a reader.
PLUGINS = " ".join(f"-p no:{plugin}" for plugin in ("anyio", "hypothesispytest", "schemathesis", "typeguard"))


def local(command: str, home: Path) -> "subprocess.Popen[str]":
    """Start `python -m local` with a home of its own, so that nobody's local run is disturbed."""
    env = {**os.environ, "DUELINE_HOME": str(home)}
    typed = [sys.executable, "-m", "local", command]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(typed, cwd=ROOT, env=env, preexec_fn=at_a_terminal, **pipe)


def at_a_terminal() -> None:
    """Handle Ctrl-C and a closed terminal, also where the tests run in the background, which ignores them."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A block of code on a page: in `sh` what to type, in `text` what is printed, else a file and its name."""

    language: str
    title: str
    text: str


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page that have a language."""
    return [Block(**match.groupdict(default="")) for match in BLOCK.finditer(page)]


def code_of(page: str, language: str) -> list[str]:
    """Return the code in a language that a page of this repository shows."""
    return [block.text for block in blocks((ROOT / page).read_text()) if block.language == language]


class Reader:
    """Does what a page says, each terminal by its title, with a home of its own."""

    def __init__(self, home: Path, ready: Path) -> None:
        self.port = free_port()
        self._home, self._ready = home, ready
        self._terminals: dict[str, Terminal] = {}

    def follow(self, page: Iterable[Block], *, folder: str) -> None:
        """Type what is to be typed, save the files in a folder of the home, and wait for what is to be printed."""
        for block in page:
            if block.language == "sh":
                self.terminal(block.title).type(block.text)
            elif block.language == "text":
                self.terminal(block.title.removesuffix(" shows")).expect(block.text)
            else:
                (self._home / folder / block.title).write_text(block.text)

    def terminal(self, title: str) -> "Terminal":
        if title not in self._terminals:
            self._terminals[title] = Terminal(self._home, title, port=self.port, ready=self._ready)
        return self._terminals[title]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Press Ctrl-C, and close the terminals."""
        for terminal in self._terminals.values():
            terminal.close()


class Terminal:
    """A shell in the clone."""

    def __init__(self, home: Path, title: str, *, port: int, ready: Path) -> None:
        self._log = home / f"{title}.log"
        env = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DUELINE_"))}
        # No browser opens, and the library is that of this clone, whichever one the environment was made in.
        env |= {"HOME": str(home), "DUELINE_HOME": str(home), "BROWSER": "true", "PYTHONPATH": str(ROOT)}
        env |= {"COLUMNS": "200", "DUELINE_PORT": str(port), "READY": str(ready), "PYTEST_ADDOPTS": PLUGINS}
        # To unpack the CDK for each new home costs more than to synthesize.
        env |= {"JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache/aws/jsii/package-cache")}
        with self._log.open("w") as log:
            self._shell = subprocess.Popen(
                ["/bin/bash"],
                cwd=ROOT,
                env=env,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                preexec_fn=at_a_terminal,
            )
        self._read = 0
        self._send(PROMPT)

    @property
    def output(self) -> str:
        return self._log.read_text()

    def type(self, commands: str) -> None:
        """Type commands, and wait until they are done, but for what stays."""
        is_staying = commands.splitlines()[-1].startswith(STAYING)
        times = self.output.count(DONE)
        self._send(commands if is_staying else f"{commands}echo {DONE}\n")
        assert is_staying or wait_until(lambda: self.output.count(DONE) > times), self.output
        assert "this was refused: " not in self.output, self.output

    def expect(self, text: str) -> None:
        """Wait until each line was printed, in this order, after what was expected before. An ellipsis is anything."""
        for line in text.splitlines():
            pattern = re.compile(".*".join(map(re.escape, line.split("…"))))
            assert wait_until(lambda pattern=pattern: bool(pattern.search(self.output, self._read))), (
                f"{line!r} is not in {self.output[self._read :]}"
            )
            self._read = pattern.search(self.output, self._read).end()  # type: ignore[union-attr]

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGINT)
        self._shell.stdin.close()
        try:
            self._shell.wait(HANG_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self._shell.pid, signal.SIGKILL)

    def _send(self, typed: str) -> None:
        self._shell.stdin.write(typed)
        self._shell.stdin.flush()
