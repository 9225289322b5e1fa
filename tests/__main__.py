"""All parts of the tests, several at once: `python -m tests --help`."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import typer

from local.template import UNVALIDATED
from tests.e2e import assemblies

ROOT = Path(__file__).parent.parent
PYTHON = (sys.executable, "-m")
# import-linter has no `python -m`.
IMPORTS = str(Path(sys.executable).with_name("lint-imports"))
PYTEST = (*PYTHON, "pytest", "-q", "-o", "faulthandler_timeout=600", "-m", "not thorough")
# What computes all the time lets what waits go first: a call that times out is made again, and that costs more.
COMPUTING = ("nice", *PYTEST)
# The CDK's rules on templates take longer than all tests of these; `make soak` holds the same stacks to them.
SYNTHESIZING = ("env", *(f"{name}={value}" for name, value in UNVALIDATED.items()), *COMPUTING)
# The worker's threads wait.
WORKER = ("tests/unit/worker", "tests/unit/test_worker.py")
FOLDERS = sorted({str(each.parent.relative_to(ROOT)) for each in ROOT.glob("tests/unit/*/test_*.py")})
APART = [f"--ignore={part}" for part in (*WORKER, *FOLDERS)]
ROOMS = [part for part in FOLDERS if part not in WORKER]
LOCAL = "tests/e2e/test_local_run.py"
OWN = [*(f"tests/e2e/{part}" for part in ("console", "chaos", "runbooks")), LOCAL]
IGNORING = [f"--ignore={part}" for part in OWN]
# The longest come first; those that wait, wait beside those that compute.
PARTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "acceptance": ((*PYTEST, "tests/acceptance"),),
    "e2e": ((*PYTEST, "tests/e2e", *IGNORING),),
    "console": ((*PYTEST, "tests/e2e/console"),),
    "chaos": ((*PYTEST, "tests/e2e/chaos", "tests/e2e/runbooks"),),
    "worker": ((*PYTEST, *WORKER),),
    "unit": ((*PYTEST, "tests/unit", *APART),),
    "simulation": ((*COMPUTING, "tests/simulation"),),
    "local": ((*PYTEST, LOCAL),),
    "contract": ((*PYTEST, "tests/contract"),),
    "rooms": ((*COMPUTING, *ROOMS, "dueline", "local", "--ignore=dueline/cdk"),),
    "template": ((*SYNTHESIZING, "tests/template", "dueline/cdk"),),
    "lint": (
        ("nice", *PYTHON, "ruff", "check", "."),
        ("nice", *PYTHON, "ruff", "format", "--check", "."),
        ("nice", *PYTHON, "mypy"),
        ("nice", IMPORTS, "--no-logo", "--no-cache"),
    ),
    "docs": ((*COMPUTING, "tests/docs"),),
}
# What they deploy: parts that deploy the same, and all others too, have it synthesized by one process.
DEPLOYED = {part: f"tests/{part}/queues.yaml" for part in ("acceptance", "e2e")}
DEPLOYED |= {part: f"tests/e2e/{part}/queues.yaml" for part in ("console", "chaos")}
SLOWEST = 10
# Functions are unpacked and removed by the hundred, which a disk takes seconds for.
MEMORY, ENOUGH_BYTES = Path("/dev/shm"), 4 * 2**30  # noqa: S108, not shared: a folder of our own in there
# Only a part that hangs takes so long.
HANG_SECONDS = 3600
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What a process printed, its exit code, and the CPU time of it and of those for which it waited."""

    output: str
    code: int
    cpu_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a part ended, what it printed, and its tests: how many of each outcome, and the seconds of each by name.

    `reasons` are those for which tests were skipped.
    """

    part: str
    is_good: bool
    output: str
    seconds: float
    cpu_seconds: float
    counts: dict[str, int]
    tests: dict[str, float]
    reasons: frozenset[str]

    def __str__(self) -> str:
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items() if count)
        times = f"{self.seconds:6.1f} s, {self.cpu_seconds:5.1f} s of CPU"
        line = f"{self.part:<12} {'ok' if self.is_good else 'FAILED':<7} {times}  {outcomes}"
        return "\n".join((line, *(f"{'':<12} skipped: {reason}" for reason in sorted(self.reasons))))


@app.command()
def main(
    parts: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(PARTS)}; all, where none is named.")] = None,
    at_once: Annotated[int, typer.Option(help="How many parts to run at once.", min=1)] = 9,
    busy: Annotated[int, typer.Option(help="How many busy loops to run beside them.", min=0)] = 0,
) -> None:
    """Run parts of the tests, a line for each as it ends; then the slowest tests. Exits with 1 if a part failed."""
    chosen = parts or list(PARTS)
    if unknown := set(chosen) - PARTS.keys():
        raise typer.BadParameter(f"{', '.join(unknown)}: there are {', '.join(PARTS)}")
    # Each process would compile all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    began, ended = time.monotonic(), list[Ended]()
    typer.echo(f"running {', '.join(chosen)}: {at_once} at once")
    with _busy_loops(busy), _scratch() as scratch, ThreadPoolExecutor(at_once) as pool:
        sharing = _share(chosen, scratch)
        for future in as_completed([pool.submit(_run, part, scratch) for part in chosen]):
            ended.append(future.result())
            typer.echo(ended[-1] if ended[-1].is_good else f"{ended[-1].output}\n{ended[-1]}")
        sharing.join()
    _report(ended, seconds=time.monotonic() - began)
    raise typer.Exit(0 if all(each.is_good for each in ended) else 1)


def _share(parts: list[str], scratch: Path) -> threading.Thread:
    """Begin to synthesize what parts deploy, and wait for once they need it."""
    files = dict.fromkeys(DEPLOYED[part] for part in parts if part in DEPLOYED)
    os.environ[assemblies.SHARED] = str(scratch)
    thread = threading.Thread(target=lambda: assemblies.share(files, folder=scratch) if files else None)
    thread.start()
    return thread


def _run(part: str, scratch: Path) -> Ended:
    began, report = time.monotonic(), scratch / f"{part}.xml"
    done = [_process(command, report=report) for command in PARTS[part]]
    return _ended(part, done, report=report, seconds=time.monotonic() - began)


def _process(command: Sequence[str], *, report: Path) -> Done:
    options = [f"--junitxml={report}"] if "pytest" in command else []
    with subprocess.Popen([*command, *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        hang = threading.Timer(HANG_SECONDS, process.kill)
        hang.start()
        output = process.stdout.read() if process.stdout else b""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        hang.cancel()
    return Done(output=output.decode(), code=process.returncode, cpu_seconds=used.ru_utime + used.ru_stime)


def _ended(part: str, done: Sequence[Done], *, report: Path, seconds: float) -> Ended:
    cases = ElementTree.parse(report).findall(".//testcase") if report.exists() else []  # noqa: S314, our own
    outcomes = [next((child.tag for child in case if child.tag in _OUTCOMES), "passed") for case in cases]
    return Ended(
        part=part,
        is_good=not any(each.code for each in done),
        output="".join(each.output for each in done),
        seconds=seconds,
        cpu_seconds=sum(each.cpu_seconds for each in done),
        counts={name: sum(_OUTCOMES.get(each, "passed") == name for each in outcomes) for name in _REPORTED},
        tests={f"{case.get('classname')}.{case.get('name')}": float(case.get("time", 0)) for case in cases},
        reasons=frozenset(skip.get("message", "") for case in cases for skip in case.iter("skipped")),
    )


_OUTCOMES = {"failure": "failed", "error": "failed", "skipped": "skipped"}
_REPORTED = ("passed", "failed", "skipped")


def _report(ended: list[Ended], *, seconds: float) -> None:
    tests = {name: duration for each in ended for name, duration in each.tests.items()}
    typer.echo(f"\nthe {SLOWEST} slowest:")
    for name in sorted(tests, key=lambda name: tests[name], reverse=True)[:SLOWEST]:
        typer.echo(f"{tests[name]:6.1f} s  {name}")
    cpu = os.times()
    typer.echo(f"\n{seconds:.0f} s, and {sum(cpu[:4]):.0f} s of CPU")
    passed, failed, skipped = (sum(each.counts[name] for each in ended) for name in _REPORTED)
    failed += sum(not each.is_good and not each.counts["failed"] for each in ended)
    typer.echo(f"{passed} passed, {failed} failed, {skipped} skipped")


@contextmanager
def _scratch() -> Iterator[Path]:
    """Make the folder for what all parts leave behind, in memory where there is room and programs may run."""
    is_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ENOUGH_BYTES
    can_run = is_memory and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    with tempfile.TemporaryDirectory(dir=MEMORY if can_run else None, ignore_cleanup_errors=True) as folder:
        os.environ["TMPDIR"] = folder
        yield Path(folder)


@contextmanager
def _busy_loops(number: int) -> Iterator[None]:
    """Leave the machine less time, as other users of it do."""
    with ExitStack() as stack:
        for _ in range(number):
            loop = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(loop.kill)
        yield


if __name__ == "__main__":
    app(prog_name="python -m tests")
