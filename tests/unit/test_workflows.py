"""The workflows take no code that may change behind their back, and no rights that they do not need."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# Rights to write, by workflow: to publish the site, and a release.
MAY_WRITE = {"docs": {"pages", "id-token"}, "release": {"contents"}}
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def _jobs(path: Path) -> dict[str, Any]:
    jobs: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
    return jobs


def test_there_are_workflows() -> None:
    assert [path.stem for path in WORKFLOWS] == ["audit", "docs", "release", "soak", "test"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_with_their_version(path: Path) -> None:
    used = [line.partition("uses:")[2].strip() for line in path.read_text().splitlines() if "uses:" in line]
    assert used
    assert [action for action in used if not PINNED.fullmatch(action)] == []


def test_one_action_is_of_one_version_everywhere() -> None:
    used = re.findall(r"uses: (\S+)@(\S+)", "".join(path.read_text() for path in WORKFLOWS))
    assert len(set(used)) == len({action for action, _ in used})


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
