"""docs/security.md answers each finding that is let pass."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()


def _acknowledged() -> Iterator[str]:
    """Yield the reasons for which findings of cdk-nag pass."""
    for path in (ROOT / "infra" / "constructs").glob("*.py"):
        tree = ast.parse(path.read_text())
        assigned = [each for each in tree.body if isinstance(each, ast.Assign)]
        named = {each.targets[0].id: each.value for each in assigned if isinstance(each.targets[0], ast.Name)}
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "").startswith("acknowledge"):
                [reason] = [given.value for given in call.keywords if given.arg == "reason"]
                yield ast.literal_eval(named[reason.id] if isinstance(reason, ast.Name) else reason)


def test_it_has_every_reason_for_which_a_finding_of_cdk_nag_passes_and_no_other():
    rows = PAGE.partition("### cdk-nag")[2].partition("###")[0]
    told = re.findall(r"^\| [A-Z]+\d \| .* \| (.*) \|$", rows, re.MULTILINE)
    assert sorted(told) == sorted(set(_acknowledged()))


def test_it_answers_every_finding_of_checkov_that_its_command_skips():
    [skipped] = re.findall(r"--skip-check (\S+)", PAGE)
    rows = PAGE.partition("### checkov")[2].partition("###")[0]
    answered = [
        found for line in rows.splitlines() if line.startswith("| CKV") for found in re.findall(r"CKV_AWS_\d+", line)
    ]
    assert sorted(answered) == sorted(skipped.split(","))
