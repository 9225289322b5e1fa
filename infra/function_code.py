"""The code of a Lambda function, as an asset of its own."""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import cast

from aws_cdk import Annotations, App, AssetHashType, Stack
from aws_cdk.aws_lambda import Code
from constructs import Construct

from dueline.config import registry
from dueline.config.deployment import Deployment
from infra.bundle import PYTHON, ROOT, bundle, compiler, installed

_SLOW = f"cold starts take twice as long: there is no python{PYTHON} here to compile the functions' code with"
_INSTALLED = ROOT / ".local" / "libraries"


def function_code(scope: Construct, *, name: str, deployment: Deployment, services: Collection[str]) -> Code:
    """Return the code of `functions/{name}.py` with all that it imports; it may call these services.

    With the context `libraries=none` it has no libraries: for an AWS whose Python has them, as a local one.
    Raises BundleError where libraries cannot be installed.
    """
    is_complete = scope.node.try_get_context("libraries") != "none"
    if is_complete and compiler() is None:
        Annotations.of(Stack.of(scope)).add_warning_v2("dueline:bytecode", _SLOW)
    staging = Path(cast(App, scope.node.root).outdir) / "functions" / name
    shutil.rmtree(staging, ignore_errors=True)
    hashed = bundle(
        name,
        staging,
        registry=registry.to_json(deployment.queue_settings()),
        services=services,
        libraries=installed(_INSTALLED) if is_complete else None,
    )
    return Code.from_asset(str(staging), asset_hash=hashed, asset_hash_type=AssetHashType.CUSTOM)
