"""The code of the Lambda functions: an asset, and one with more libraries, built without Docker."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from aws_cdk import App
from aws_cdk.aws_lambda import Code
from constructs import Construct

from dueline.config import registry
from dueline.config.deployment import Deployment

_ROOT = Path(__file__).parent.parent
_PACKAGES = ("dueline", "functions")
# What neither Lambda's runtime nor the layer of Powertools brings. Both are Python alone: what is installed here runs
# there. requirements.txt pins them, so that all processes agree about time zones.
_LIBRARIES = ("cronsim", "tzdata")


def functions_code(scope: Construct, *, deployment: Deployment, knows_rules: bool = False) -> Code:
    """Return the code of functions, with imports as on disk and the registry of queues at its root.

    That of those that know the rules of schedules has two libraries more, of 600 files. Only sources, libraries and the
    registry count for its hash, so it changes when and only when one of them does.
    """
    staging = Path(cast(App, scope.node.root).outdir) / ("functions-with-rules" if knows_rules else "functions")
    shutil.rmtree(staging, ignore_errors=True)
    for package in _PACKAGES:
        _copy_sources(package, staging)
    for library in _LIBRARIES if knows_rules else ():
        _copy_library(library, staging)
    (staging / "registry.json").write_text(registry.to_json(deployment.queue_settings()))
    return Code.from_asset(str(staging))


def _copy_sources(package: str, staging: Path) -> None:
    for source in (_ROOT / package).rglob("*.py"):
        copy = staging / source.relative_to(_ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)


def _copy_library(name: str, staging: Path) -> None:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{name} is not installed: the functions need it, install requirements.txt")
    [folder] = spec.submodule_search_locations
    shutil.copytree(folder, staging / name, ignore=shutil.ignore_patterns("__pycache__"))
