"""Functions' processes as forks of one, with what the emulator has of such a process."""

import io
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ministack.core import lambda_runtime
from ministack.core.lambda_runtime import Worker

from local import forked_functions
from local.forked_functions import Fork
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere functions are not forked")
CODE = """
import os
with open(os.environ["IMPORTS"], "a") as imports: imports.write("once more, ")
def handler(event, context):
    import later
    return {"pid": os.getpid(), "event": event, "name": os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]}
"""

MakeWorker = Callable[..., Worker]


@pytest.fixture
def make_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MakeWorker]:
    """Makes an environment of a function, as the emulator does for each invocation at once."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made, forks, originals = list[Worker](), list[Fork](), dict[str, Any]()

    def start(*args: Any, **options: Any) -> Fork:
        forks.append(forked_functions.start(*args, **options))
        return forks[-1]

    monkeypatch.setattr(lambda_runtime, "subprocess", SimpleNamespace(Popen=start, PIPE=subprocess.PIPE))
    monkeypatch.setattr(forked_functions, "_originals", originals)

    def make(code: str = CODE) -> Worker:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name, content in (("our_code.py", code), ("later.py", "")):
                archive.writestr(zipfile.ZipInfo(name), content)
        variables = {"Variables": {"IMPORTS": str(tmp_path / "imports")}}
        config = {"FunctionName": "f", "Handler": "our_code.handler", "Runtime": "python3.13", "Environment": variables}
        config["FunctionArn"] = "arn:aws:lambda:us-east-1:000000000000:function:f"
        made.append(Worker("f", config, packed.getvalue()))
        return made[-1]

    yield make
    lambda_runtime.kill_workers(made)
    for original in originals.values():
        original._requests.close()
        original._process.wait()
    for file in (file for fork in forks for file in (fork.stdin, fork.stdout, fork.stderr, fork._ended)):
        with suppress(BrokenPipeError):
            file.close()


def invoked(worker: Worker, event: object = None) -> Any:
    return worker.invoke(event, "request")


def test_code_is_imported_once(make_worker: MakeWorker, tmp_path: Path) -> None:
    answers = [invoked(make_worker(), event)["result"] for event in ("one", "two", "three")]
    assert [answer["event"] for answer in answers] == ["one", "two", "three"]
    assert len({answer["pid"] for answer in answers}) == len({answer["name"] for answer in answers}) == 3
    assert (tmp_path / "imports").read_text() == "once more, "


def test_other_code_is_imported(make_worker: MakeWorker, tmp_path: Path) -> None:
    invoked(make_worker())
    assert invoked(make_worker(CODE.replace('"event": event', '"event": "other"')))["result"]["event"] == "other"
    assert (tmp_path / "imports").read_text() == "once more, once more, "


def test_killed_process_is_replaced(make_worker: MakeWorker) -> None:
    one, two = make_worker(), make_worker()
    killed, other = (invoked(each)["result"]["pid"] for each in (one, two))
    os.kill(killed, signal.SIGKILL)
    assert wait_until(lambda: one._proc.poll() is not None)
    assert invoked(one)["result"]["pid"] not in (killed, other)
    assert invoked(two)["result"]["pid"] == other


def test_what_is_imported_later_outlives_the_first(make_worker: MakeWorker) -> None:
    first, second = make_worker(), make_worker()
    lambda_runtime.ensure_spawned(first)
    lambda_runtime.ensure_spawned(second)
    first.kill()
    assert invoked(second)["status"] == "ok"


def test_failed_import_is_reported(make_worker: MakeWorker) -> None:
    with pytest.raises(RuntimeError, match="no such mailbox"):
        invoked(make_worker("raise LookupError('no such mailbox')"))
