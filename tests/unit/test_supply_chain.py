"""What is installed is pinned and permissively licensed, and workflows have no more rights than they need."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs import licences

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


def test_functions_bundle_tested_versions() -> None:
    pinned = _pinned((ROOT / "requirements.txt").read_text())
    bundled = _pinned((ROOT / "dueline" / "functions" / "requirements.lock").read_text())
    assert bundled.items() <= pinned.items(), "run make lock"
    assert {"boto3", "aws-lambda-powertools", "pydantic", "cronsim", "tzdata"} <= bundled.keys()


def test_what_is_installed_is_held_to_its_hashes() -> None:
    makefile = (ROOT / "Makefile").read_text()
    installs = [line for line in makefile.splitlines() if "pip install" in line and "--requirement" in line]
    assert len(installs) >= 5
    assert [line for line in installs if "--require-hashes" not in line or "requirements.txt" in line] == []


# Licences


# MPL 2.0 requires to publish changes of such a file. There are none here, and it is neither installed nor deployed.
TO_BUILD_AND_TEST_ALONE = {"MPL-2.0", "CNRI-Python"}
PERMISSIVE = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "PSF-2.0"}


def _sections() -> dict[str, list[str]]:
    parts = re.split(r"^## (.+)$", licences.page(), flags=re.MULTILINE)[1:]
    return {
        title: re.findall(r"^\| ([^|]+) \| [^|]*\d[^|]* \|$", text, re.MULTILINE)
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }


def test_page_lists_pinned_packages() -> None:
    assert licences.PAGE.read_text() == licences.page(), "run python -m docs.licences"


def test_licences_are_permissive() -> None:
    for title, result in _sections().items():
        allowed = PERMISSIVE | (TO_BUILD_AND_TEST_ALONE if title.startswith("To ") else set())
        unknown = {each for line in result for each in re.split(r" AND | OR ", line.strip("()")) if each not in allowed}
        assert (title, unknown, bool(result)) == (title, set(), True)


# Workflows


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# Rights to write, by workflow: to publish the site, and a release.
MAY_WRITE = {"docs": {"pages", "id-token"}, "release": {"contents"}}
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def _jobs(path: Path) -> dict[str, Any]:
    jobs: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
    return jobs


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    used = [line.partition("uses:")[2].strip() for line in path.read_text().splitlines() if "uses:" in line]
    assert used
    assert [action for action in used if not PINNED.fullmatch(action)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_have_least_rights_and_a_timeout(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {}
    for job in _jobs(path).values():
        written = {right for right, level in job["permissions"].items() if level == "write"}
        assert written <= MAY_WRITE.get(path.stem, set())
        assert 0 < job["timeout-minutes"] <= 90


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_foreign_input_is_no_part_of_a_command(path: Path) -> None:
    steps = [step for job in _jobs(path).values() for step in job["steps"]]
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []
    checkouts = [step for step in steps if "actions/checkout" in step.get("uses", "")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_tests_run_on_every_supported_python() -> None:
    [least] = re.findall(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    [everything] = [job for job in _jobs(ROOT / ".github" / "workflows" / "test.yml").values() if "strategy" in job]
    tested = everything["strategy"]["matrix"]["python"]
    assert tested == [f"3.{minor}" for minor in range(int(least), 14)]
