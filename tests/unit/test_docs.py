"""Pages are short and true: they name files that exist, answer each finding let pass, and show what works."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby

import pytest

from tests.house import ROOT, files, imports_of, pages
from tests.unit.test_testing import files_of
from tests.waiting import HANG_SECONDS


def test_readme_has_at_most_150_lines():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_decisions_have_at_most_300_words():
    words = {page.stem: len(page.read_text().split()) for page in files("docs/decisions", ".md")}
    assert {page: count for page, count in words.items() if count > 300} == {}


def test_documentation_names_files_that_exist():
    path = re.compile(r"`((?:bench|docs|dueline|local|tests)/[\w./-]+)`")
    named = [(page.name, name) for page in pages() for name in path.findall(page.read_text())]
    assert len(named) > 60
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []


# docs/security.md


PAGE = (ROOT / "docs" / "security.md").read_text()


def _acknowledged() -> Iterator[str]:
    """Yield the findings of cdk-nag that are acknowledged, each with its reason."""
    for path in (ROOT / "dueline" / "cdk" / "constructs").glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "").startswith("acknowledge"):
                assert [keyword.arg for keyword in call.keywords] == ["reason"]
                yield "IAM5" if ast.unparse(call.func) == "acknowledge_wildcard" else ast.literal_eval(call.args[1])


def test_page_lists_acknowledged_cdk_nag_findings():
    [findings] = re.findall(r"acknowledged finding of cdk-nag \(([^)]*)\)", " ".join(PAGE.split()))
    assert sorted(findings.split(", ")) == sorted(set(_acknowledged()))


def test_skipped_checkov_findings_are_answered():
    [skipped] = re.findall(r"--skip-check \\\n *(\S+)", PAGE)
    rows = PAGE.partition("### checkov")[2].partition("###")[0]
    answered = [
        check for line in rows.splitlines() if line.startswith("| CKV") for check in re.findall(r"CKV_AWS_\d+", line)
    ]
    assert sorted(answered) == sorted(skipped.split(","))


# The walks of docs/architecture.md: each step leads to the next one


PAGE_WALK = (ROOT / "docs" / "architecture.md").read_text()
WALKS = ("From `Client.schedule` to the queue", "From `receive` to `delete`")
STEP = re.compile(r"\| `(?P<file>[\w/]+\.py)` \| `(?P<name>[\w.]+)` \| .+ \|")
# Where a job changes processes: what comes next is called by AWS.
HANDOVER = re.compile(r"\| \| \| \*.+\* \|")


def steps_of(title):
    """Return the steps of a walk as file and name, those between two handovers together."""
    section = re.search(rf"^### {re.escape(title)}\n(?P<text>.+?)(?=^##)", PAGE_WALK, re.MULTILINE | re.DOTALL)["text"]
    rows = [row for row in section.splitlines() if row.startswith("|")][2:]
    assert all(STEP.fullmatch(row) or HANDOVER.fullmatch(row) for row in rows), rows
    steps = [(match := STEP.fullmatch(row)) and match.group("file", "name") for row in rows]
    return [list(some) for is_step, some in groupby(steps, key=lambda step: step is not None) if is_step]


def defined(file, name):
    """Return the class or the function that a step is of, or None unless the whole name is there."""
    inside, nodes = ast.parse((ROOT / file).read_text()), []
    for part in name.split("."):
        inside = next((node for node in getattr(inside, "body", ()) if getattr(node, "name", None) == part), None)
        nodes.append(inside)
    return nodes[0] if all(nodes) else None


@pytest.mark.parametrize("title", WALKS)
def test_every_step_of_a_walk_leads_to_the_next(title):
    """Each is there; and where one has returned, one before it leads on."""
    legs = steps_of(title)
    assert [step for leg in legs for step in leg if not defined(*step)] == []
    assert sum(map(len, legs)) > 10
    strays = [
        step
        for leg in legs
        for number, step in enumerate(leg)
        if number and not any(leads(earlier, step) for earlier in leg[:number])
    ]
    assert strays == []


def leads(here, there):
    """Return whether a step's file imports the next one's module, or its class or function has the next one's name."""
    module = there[0].removesuffix(".py").replace("/", ".")
    named = {getattr(node, "id", None) or getattr(node, "attr", None) for node in ast.walk(defined(*here))}
    does_import = any(f"{each}.".startswith(f"{module}.") for each in imports_of(ROOT / here[0]))
    return does_import or there[1].split(".")[-1] in named


# What docs/django.md shows works, with Django itself


PACKAGES = ("shop", "shop/management", "shop/management/commands", "shop/migrations")


def test_page_shows_tests_that_pass(tmp_path):
    for name, text in ({f"{package}/__init__.py": "" for package in PACKAGES} | files_of("django")).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{tmp_path}", "DJANGO_SETTINGS_MODULE": "settings"}
    of = {"cwd": tmp_path, "env": env, "capture_output": True, "text": True, "timeout": HANG_SECONDS}
    subprocess.run([sys.executable, "-m", "django", "makemigrations", "shop"], check=True, **of)
    done = subprocess.run([sys.executable, "-W", "error", "-m", "django", "test"], **of)
    assert "Ran 4 tests" in done.stderr, done.stdout + done.stderr
    assert done.stderr.splitlines()[-2] == "OK", done.stderr
