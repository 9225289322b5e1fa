"""The code of the Lambda functions: one asset, built without Docker."""

import shutil
from pathlib import Path
from typing import cast

from aws_cdk import App
from aws_cdk.aws_lambda import Code
from constructs import Construct

from dueline.config import registry
from dueline.config.deployment import Deployment

_ROOT = Path(__file__).parent.parent
_PACKAGES = ("dueline", "functions")


def functions_code(scope: Construct, *, deployment: Deployment) -> Code:
    """Return the code of all functions, with imports as on disk and the registry of queues at its root.

    Only sources and the registry count for its hash, so it changes when and only when one of them does.
    """
    staging = Path(cast(App, scope.node.root).outdir) / "functions"
    shutil.rmtree(staging, ignore_errors=True)
    for package in _PACKAGES:
        _copy_sources(package, staging)
    (staging / "registry.json").write_text(registry.to_json(deployment.queue_settings()))
    return Code.from_asset(str(staging))


def _copy_sources(package: str, staging: Path) -> None:
    for source in (_ROOT / package).rglob("*.py"):
        copy = staging / source.relative_to(_ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
