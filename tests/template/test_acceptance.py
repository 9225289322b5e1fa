"""The stacks of the acceptance tests take all of their sandbox with them."""

import json
import os
import subprocess
import sys
from pathlib import Path

from local.template import ROOT, UNVALIDATED
from tests.template.synthesis import CONTEXT


def test_nothing_outlives_the_sandbox(tmp_path: Path) -> None:
    env = {**os.environ, **UNVALIDATED, "CDK_OUTDIR": str(tmp_path), "CDK_CONTEXT_JSON": json.dumps(CONTEXT)}
    subprocess.run([sys.executable, "-m", "tests.acceptance.app"], cwd=ROOT, env=env, check=True, capture_output=True)
    resources = [
        (f"{file.name}: {id}", resource)
        for file in tmp_path.glob("*.template.json")
        for id, resource in json.loads(file.read_text())["Resources"].items()
    ]
    assert len(resources) > 100
    assert [id for id, resource in resources if resource["DeletionPolicy"] != "Delete"] == []
    assert [id for id, each in resources if each.get("Properties", {}).get("DeletionProtectionEnabled")] == []
