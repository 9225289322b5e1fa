"""`make verify-aws` removes the sandbox whatever becomes of it, and tells the first failure by its exit code."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# What it runs, written down in place of being done.
_STUB = """#!/bin/sh
echo "$0 $*" >> "$DONE"
printf '%s\\n' "$0" "$@" > "$DONE.$#"
case "$*" in
  deploy*) exit $DEPLOYED ;;
  *--remove*) exit $REMOVED ;;
  *--report*) [ -z "$INTERRUPTED" ] || kill -INT $PPID; exit $VERIFIED ;;
esac
"""


@pytest.fixture
def made(tmp_path):
    for name in ("dueline", "cdk"):
        (tmp_path / name).write_text(_STUB)
        (tmp_path / name).chmod(0o755)
    # The virtual environment is what it is.
    command = ["make", "-n", "-o", ".venv/ready", "verify-aws", "YES=1", f"BIN={tmp_path}", f"CDK={tmp_path}/cdk"]
    recipe = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    def run(**codes):
        done = tmp_path / "done"
        given = {"DEPLOYED": "0", "VERIFIED": "0", "REMOVED": "0", "INTERRUPTED": "", "DONE": str(done)} | codes
        ended = subprocess.run(["/bin/sh", "-c", recipe], env=os.environ | given, capture_output=True)
        return ended.returncode, done.read_text()

    return run


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ({}, 0),
        ({"VERIFIED": "6"}, 6),
        ({"DEPLOYED": "1"}, 1),
        ({"REMOVED": "1"}, 1),
        ({"VERIFIED": "6", "REMOVED": "1"}, 6),
        ({"VERIFIED": "130", "INTERRUPTED": "yes"}, 130),
    ],
)
def test_the_sandbox_is_removed_whatever_happens_and_the_first_failure_is_told(made, codes, code):
    ended, done = made(**codes)
    assert ended == code
    assert done.rstrip().endswith("verify --remove --yes")
    assert ("--report" in done) is (codes.get("DEPLOYED", "0") == "0")


def test_a_check_deploys_as_the_sandbox_was_deployed_but_for_the_file(made, tmp_path):
    made()
    listed = [file.read_text().splitlines() for file in tmp_path.glob("done.*")]
    (first,) = (words for words in listed if "deploy" in words)
    (then,) = (words for words in listed if "--deploy" in words)
    command = shlex.split(then[then.index("--deploy") + 1])
    assert [word.format(queues="dueline/verify/queues.yaml") for word in command] == first
    assert f"{tmp_path}/python app.py" in first
