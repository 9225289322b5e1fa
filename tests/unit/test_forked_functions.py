"""Functions' processes as forks, with what the emulator has of such a process."""

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
def handler(event, context):
    return {"pid": os.getpid(), "event": event, "name": os.environ["AWS_LAMBDA_LOG_STREAM_NAME"], "in": os.getcwd()}
"""

MakeWorker = Callable[..., Worker]


@pytest.fixture
def make_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MakeWorker]:
    """Makes an environment of a function, as the emulator does for each invocation at once."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made, forks = list[Worker](), list[Fork]()

    def start(*args: Any, **options: Any) -> Fork:
        forks.append(forked_functions.start(*args, **options))
        return forks[-1]

    monkeypatch.setattr(lambda_runtime, "subprocess", SimpleNamespace(Popen=start, PIPE=subprocess.PIPE))

    def make(code: str = CODE) -> Worker:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(zipfile.ZipInfo("our_code.py"), code)
        config = {"FunctionName": "f", "Handler": "our_code.handler", "Runtime": "python3.13"}
        config["FunctionArn"] = "arn:aws:lambda:us-east-1:000000000000:function:f"
        made.append(Worker("f", config, packed.getvalue()))
        return made[-1]

    yield make
    lambda_runtime.kill_workers(made)
    for file in (file for fork in forks for file in (fork.stdin, fork.stdout, fork.stderr)):
        with suppress(BrokenPipeError):
            file.close()


def invoked(worker: Worker, event: object = None) -> Any:
    return worker.invoke(event, "request")


def test_each_function_has_its_own_process(make_worker: MakeWorker) -> None:
    answers = [invoked(make_worker(), event)["result"] for event in ("one", "two")]
    assert [answer["event"] for answer in answers] == ["one", "two"]
    assert all(len({answer[name] for answer in answers}) == 2 for name in ("pid", "name", "in"))


def test_killed_process_is_replaced(make_worker: MakeWorker) -> None:
    one, two = make_worker(), make_worker()
    killed, other = (invoked(each)["result"]["pid"] for each in (one, two))
    os.kill(killed, signal.SIGKILL)
    assert wait_until(lambda: one._proc.poll() is not None)
    assert invoked(one)["result"]["pid"] not in (killed, other)
    assert invoked(two)["result"]["pid"] == other


def test_failed_import_is_reported(make_worker: MakeWorker) -> None:
    with pytest.raises(RuntimeError, match="no such mailbox"):
        invoked(make_worker("raise LookupError('no such mailbox')"))
