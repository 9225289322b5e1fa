"""The stacks of the acceptance tests take all of their sandbox with them."""

import json
from pathlib import Path

from tests.acceptance import app
from tests.template.synthesis import CONTEXT


def test_nothing_outlives_the_sandbox(tmp_path: Path) -> None:
    app.synthesize(outdir=str(tmp_path), context=CONTEXT)
    resources = [
        (f"{file.name}: {id}", resource)
        for file in tmp_path.glob("*.template.json")
        for id, resource in json.loads(file.read_text())["Resources"].items()
    ]
    assert len(resources) > 100
    assert [id for id, resource in resources if resource["DeletionPolicy"] != "Delete"] == []
    assert [id for id, each in resources if each.get("Properties", {}).get("DeletionProtectionEnabled")] == []
