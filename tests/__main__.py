"""All parts of the tests, several at once: `python -m tests --help`."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Annotated
from xml.etree import ElementTree

import typer

from local.template import UNVALIDATED
from tests.e2e import assemblies

ROOT = Path(__file__).parent.parent
PYTEST = (sys.executable, "-m", "pytest", "-q", "-o", "faulthandler_timeout=600", "-m", "not thorough")
# What computes all the time lets what waits go first: a call that times out is made again, and that costs more.
# Not far behind: beside others' programs it would starve.
NICE = ("nice", "-n", "4")
COMPUTING = (*NICE, *PYTEST)
# The CDK's rules on templates take longer than all tests of these; `make soak` holds the same stacks to them.
SYNTHESIZING = ("env", *(f"{name}={value}" for name, value in UNVALIDATED.items()), *COMPUTING)
LINTERS = ("ruff check .", "ruff format --check .", "mypy", "lint-imports --no-logo --no-cache")
# The worker's threads wait.
WORKER = ("tests/unit/worker", "tests/unit/test_worker.py")
FOLDERS = sorted({str(each.parent.relative_to(ROOT)) for each in ROOT.glob("tests/unit/*/test_*.py")})
APART = [f"--ignore={part}" for part in (*WORKER, *FOLDERS)]
ROOMS = [part for part in FOLDERS if part not in WORKER]
LOCAL = "tests/e2e/test_local_run.py"
CHAOS = "tests/e2e/chaos"
# The longest come first; those that wait, wait beside those that compute.
PARTS: dict[str, tuple[str, ...]] = {
    "e2e": (*PYTEST, "tests/e2e", f"--ignore={CHAOS}", f"--ignore={LOCAL}"),
    "acceptance": (*PYTEST, "tests/acceptance"),
    "faults": (*PYTEST, CHAOS, "-k", "kills or network"),
    "chaos": (*PYTEST, CHAOS, "-k", "not kills and not network"),
    "worker": (*PYTEST, *WORKER),
    "unit": (*COMPUTING, "tests/unit", *APART),
    "simulation": (*COMPUTING, "tests/simulation"),
    "local": (*PYTEST, LOCAL),
    "contract": (*COMPUTING, "tests/contract"),
    "rooms": (*COMPUTING, *ROOMS, "dueline", "local", "--ignore=dueline/cdk"),
    "template": (*SYNTHESIZING, "tests/template", "dueline/cdk"),
    "lint": (*NICE, "sh", "-c", " && ".join(str(Path(sys.executable).with_name(each)) for each in LINTERS)),
    "docs": (*COMPUTING, "tests/docs"),
}
# What they deploy: parts that deploy the same, and all others too, have it synthesized by one process.
DEPLOYED = {"acceptance": "tests/acceptance", "e2e": "tests/e2e", "chaos": CHAOS, "faults": CHAOS}
OUTCOMES = {"failure": "failed", "error": "failed", "skipped": "skipped"}
# Functions are unpacked and removed by the hundred, which a disk takes seconds for.
MEMORY, ENOUGH_BYTES = Path("/dev/shm"), 4 * 2**30  # noqa: S108, not shared: a folder of our own in there
AT_ONCE = 10
# Only a part that hangs takes so long.
HANG_SECONDS = 3600
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a part ended, what it printed, and how many of its tests had each outcome.

    Its CPU time is that of its process and of those for which it waited; `reasons` are why tests were skipped.
    """

    part: str
    is_good: bool
    output: str
    seconds: float
    cpu_seconds: float
    outcomes: Counter[str]
    reasons: frozenset[str]

    def __str__(self) -> str:
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.items())
        times = f"{self.seconds:6.1f} s, {self.cpu_seconds:5.1f} s of CPU"
        line = f"{self.part:<12} {'ok' if self.is_good else 'FAILED':<7} {times}  {outcomes}"
        return "\n".join((line, *(f"{'':<12} skipped: {reason}" for reason in sorted(self.reasons))))


@app.command()
def main(
    parts: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(PARTS)}; all, where none is named.")] = None,
    busy: Annotated[int, typer.Option(help="How many busy loops to run beside them.", min=0)] = 0,
) -> None:
    """Run parts of the tests, a line for each as it ends. Exits with 1 if a part failed."""
    chosen = parts or list(PARTS)
    if unknown := set(chosen) - PARTS.keys():
        raise typer.BadParameter(f"{', '.join(unknown)}: there are {', '.join(PARTS)}")
    # Each process would compile all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    began, ended = time.monotonic(), list[Ended]()
    typer.echo(f"running {', '.join(chosen)}: {AT_ONCE} at once")
    with _busy_loops(busy), _scratch() as scratch, ThreadPoolExecutor(AT_ONCE) as pool:
        os.environ[assemblies.SHARED] = str(scratch)
        files = dict.fromkeys(f"{DEPLOYED[part]}/queues.yaml" for part in chosen if part in DEPLOYED)
        shared = pool.submit(assemblies.share, files, folder=scratch) if files else None
        for future in as_completed([pool.submit(_run, part, scratch, shared) for part in chosen]):
            ended.append(future.result())
            typer.echo(ended[-1] if ended[-1].is_good else f"{ended[-1].output}\n{ended[-1]}")
    outcomes, cpu = sum((each.outcomes for each in ended), Counter[str]()), sum(os.times()[:4])
    typer.echo(f"\n{time.monotonic() - began:.0f} s, and {cpu:.0f} s of CPU: {dict(outcomes)}")
    raise typer.Exit(0 if all(each.is_good for each in ended) else 1)


def _run(part: str, scratch: Path, shared: "Future[None] | None") -> Ended:
    if shared and part in DEPLOYED:
        shared.result()
    began, report = time.monotonic(), scratch / f"{part}.xml"
    options = [f"--junitxml={report}"] if "pytest" in PARTS[part] else []
    with subprocess.Popen([*PARTS[part], *options], cwd=ROOT, stdout=PIPE, stderr=STDOUT, text=True) as process:
        hang = threading.Timer(HANG_SECONDS, process.kill)
        hang.start()
        output = process.stdout.read() if process.stdout else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        hang.cancel()
    cases = ElementTree.parse(report).findall(".//testcase") if report.exists() else []  # noqa: S314, our own
    return Ended(
        part=part,
        is_good=not process.returncode,
        output=output,
        seconds=time.monotonic() - began,
        cpu_seconds=used.ru_utime + used.ru_stime,
        outcomes=Counter(map(_outcome, cases)),
        reasons=frozenset(skip.get("message", "") for case in cases for skip in case.iter("skipped")),
    )


def _outcome(case: ElementTree.Element) -> str:
    return next((OUTCOMES[child.tag] for child in case if child.tag in OUTCOMES), "passed")


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
