"""What is installed is what is pinned, and nothing else under its name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*])?==([^\s;\\]+)", re.MULTILINE)


def _pinned(text: str) -> dict[str, str]:
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in PIN.findall(text)}


@pytest.mark.parametrize("folder", [".", "docs", "bench"])
def test_lock_has_each_pinned_version_with_hashes(folder: str) -> None:
    pinned, locked = ((ROOT / folder / f"requirements.{kind}").read_text() for kind in ("txt", "lock"))
    assert _pinned(locked) == _pinned(pinned), "run make lock"
    entries = re.findall(r"^\S+==.*(?:\n    .*)*", locked, re.MULTILINE)
    assert len(entries) == len(_pinned(pinned)) > 10
    assert [entry for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}", entry)] == []


def test_functions_bundle_the_versions_that_are_tested() -> None:
    pinned = _pinned((ROOT / "requirements.txt").read_text())
    bundled = _pinned((ROOT / "functions" / "requirements.lock").read_text())
    assert bundled.items() <= pinned.items(), "run make lock"
    assert {"boto3", "aws-lambda-powertools", "pydantic", "cronsim", "tzdata"} <= bundled.keys()


def test_what_is_installed_is_held_to_its_hashes() -> None:
    makefile = (ROOT / "Makefile").read_text()
    installs = [line for line in makefile.splitlines() if "pip install" in line and "--requirement" in line]
    assert len(installs) >= 5
    assert [line for line in installs if "--require-hashes" not in line or "requirements.txt" in line] == []
