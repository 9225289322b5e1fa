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
                [reason] = [keyword.value for keyword in call.keywords if keyword.arg == "reason"]
                yield ast.literal_eval(named[reason.id] if isinstance(reason, ast.Name) else reason)


def test_every_cdk_nag_exception_has_its_reason():
    rows = PAGE.partition("### cdk-nag")[2].partition("###")[0]
    reasons = re.findall(r"^\| [A-Z]+\d \| .* \| (.*) \|$", rows, re.MULTILINE)
    assert sorted(reasons) == sorted(set(_acknowledged()))


def test_every_skipped_checkov_finding_is_answered():
    [skipped] = re.findall(r"--skip-check \\\n *(\S+)", PAGE)
    rows = PAGE.partition("### checkov")[2].partition("###")[0]
    answered = [
        check for line in rows.splitlines() if line.startswith("| CKV") for check in re.findall(r"CKV_AWS_\d+", line)
    ]
    assert sorted(answered) == sorted(skipped.split(","))
