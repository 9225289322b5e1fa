"""The sandbox: refused where it is somebody else's or in use, and removed however the tests end."""

import signal
import sys

import pytest

from tests.acceptance import sandbox
from tests.forking import run_in_fork

OK, FAILS = [sys.executable, "-c", ""], [sys.executable, "-c", "raise SystemExit(3)"]


def test_deployment_that_is_in_use_is_refused(client, session):
    id = client.schedule("flood", 1, delay=86_400).id
    with pytest.raises(sandbox.Refused, match=f"{sandbox.NAME} has jobs in queue"):
        sandbox.refuse_jobs(session)
    client.cancel(id)


def test_deployment_with_other_queues_is_refused(session, monkeypatch, tmp_path):
    other = tmp_path / "queues.yaml"
    other.write_text(f"name: {sandbox.NAME}\nqueues:\n  plain:\n")
    monkeypatch.setattr(sandbox, "QUEUES", other)
    with pytest.raises(sandbox.Refused, match=r"has the queues .*'flood'.*, which the sandbox does not have"):
        sandbox.refuse_others(session)


def test_bucket_is_emptied_for_its_removal(names, session, aws):
    account, s3 = aws("sts").get_caller_identity()["Account"], aws("s3")
    bucket = f"{names.payloads(account=account, region=str(session.region_name))}-full"
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="0032/plain/x", Body=b"1")
    sandbox.empty(s3, bucket)
    s3.delete_bucket(Bucket=bucket)


@pytest.mark.parametrize(
    ("deploy", "tests", "left", "code"), [(OK, OK, 0, 0), (OK, FAILS, 0, 3), (FAILS, OK, 0, 3), (OK, OK, 1, 1)]
)
def test_run_exits_with_the_tests_code(deploy, tests, left, code):
    assert sandbox.run(deploy, tests, remove=lambda: left) == code


@pytest.mark.parametrize("signal_sent", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_is_removed(signal_sent, tmp_path):
    interrupt = f"import os, time; os.kill(os.getppid(), {int(signal_sent)}); time.sleep(60)"
    removed = tmp_path / "removed"

    def run():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        assert sandbox.run([sys.executable, "-c", interrupt], [], remove=lambda: removed.write_text("")) == 130

    assert run_in_fork(run)
    assert removed.exists()
