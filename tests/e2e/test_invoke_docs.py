"""What docs/invoke.md shows of Node works, with a queue's producer policy and nothing else."""

import re
from pathlib import Path

import pytest

from dueline.config.names import Names
from local.emulator import REGION, Emulator
from local.endpoints import Endpoints
from tests.e2e.conftest import Typed
from tests.e2e.emulated_iam import key_of

DOCS = (Path(__file__).parents[2] / "docs" / "invoke.md").read_text()
PACKAGES = Path(__file__).parent / "node_modules"
[NODE] = re.findall(r"```js\n(.*?)```", DOCS, re.DOTALL)


@pytest.mark.skipif(not (PACKAGES / "ready").exists(), reason="npm installed no SDK: make tests/e2e/node_modules/ready")
def test_node_schedules_by_the_alias(emulator: Emulator, endpoints: Endpoints, typed: Typed, tmp_path: Path) -> None:
    id, secret = key_of(emulator, "node", Names(endpoints.name).policy("emails", "producer"))
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    example = tmp_path / "example.mjs"
    example.write_text(NODE.replace("dueline-api", f"{endpoints.name}-api"))
    key = {"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": secret}
    done = typed("node", str(example), AWS_REGION=REGION, NODE_EXTRA_CA_CERTS=str(emulator.authority), **key)
    assert "statusCode: 201" in done.stdout, done.stderr
