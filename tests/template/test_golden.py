"""Whole templates as they were reviewed: each grant, alarm and setting. `make golden` writes them again: read the diff.

Of a deployment with an owner, a group, levels, tracking and all dashboards; and the core of one with all that a
platform team may require, and of one that saves. Hashes of code and versions are left out, and intrinsics are written
as in YAML: `${Table.Arn}`.
"""

import json
import re
import sys
import tempfile
from difflib import unified_diff
from pathlib import Path

import pytest

from dueline import __version__
from tests.template.conftest import OF_NEIGHBOURS, STRICT, THRIFTY
from tests.template.synthesis import synthesize

GOLDEN = Path(__file__).parent / "golden"
STACKS, OTHERS = ("dueline-core", "dueline-groups", "dueline-queue-emails"), ("strict", "thrifty")


@pytest.mark.parametrize("name", [*STACKS, *OTHERS])
def test_template_is_as_it_was_reviewed(request, name):
    assembly = request.getfixturevalue(name if name in OTHERS else "neighbours")
    reviewed, now = (GOLDEN / f"{name}.json").read_text(), _text(assembly.templates.get(name, assembly.core))
    changes = unified_diff(reviewed.splitlines(), now.splitlines(), "reviewed", "now", lineterm="")
    assert list(changes) == [], "if this is meant: make golden, and read git diff"


def _text(template):
    """Return a template without what changes with each edit of the code."""
    text = json.dumps(_readable(template.content), indent=1, ensure_ascii=False)
    for id in template.of_type("AWS::Lambda::Version"):
        text = text.replace(id, re.sub("[0-9a-f]{32}$", "", id))
    return re.sub(r'"[0-9a-f]{64}\.zip"', '"<asset>"', text).replace(__version__, "<version>") + "\n"


def _readable(value):
    """Return a value with its references in its texts, and policies' lists of one as in AWS's documentation."""
    if isinstance(value, list):
        return [_readable(each) for each in value]
    if not isinstance(value, dict):
        return value
    read = {name: _readable(each) for name, each in value.items()}
    match read:
        case {"Ref": str(name), **rest} if not rest:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [str(name), str(attribute)], **rest} if not rest:
            return f"${{{name}.{attribute}}}"
        case {"Fn::Join": [str(separator), [*parts]], **rest} if not rest and all(isinstance(p, str) for p in parts):
            return separator.join(parts)
    return read


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        written = synthesize(OF_NEIGHBOURS, Path(folder, "neighbours")).templates
        written["strict"] = synthesize(STRICT, Path(folder, "strict")).core
        written["thrifty"] = synthesize(THRIFTY, Path(folder, "thrifty"), context={"import": "yes"}).core
    for name in (*STACKS, *OTHERS):
        (GOLDEN / f"{name}.json").write_text(_text(written[name]))
        sys.stderr.write(f"wrote {GOLDEN / name}.json\n")
