"""The functions' code and environment, as they are deployed."""

import compileall
import shutil
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from dueline.config import metrics, registry
from dueline.config.deployment import Deployment, load
from dueline.config.settings import ApiSettings, IngestSettings, PlannerSettings, Settings, TickSettings
from local.emulator import ACCOUNT, REGION
from local.template import ROOT

FUNCTIONS = ("ingest", "tick", "api", "planner")
_PACKAGES = ("dueline", "functions")
_LIBRARIES = ("cronsim", "tzdata")
# What Lambda sets of itself: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_OF_LAMBDA = {
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nobody",
    "AWS_SESSION_TOKEN": "nobody",
}


def stage(folder: Path, *, bytecode: bool = False) -> Path:
    """Copy what the functions' asset holds into a folder; return it. `bytecode` compiles it, which the asset is not."""
    for package in _PACKAGES:
        for source in (ROOT / package).rglob("*.py"):
            copy = folder / source.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
    for name in _LIBRARIES:
        [source] = getattr(find_spec(name), "submodule_search_locations", [])
        shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "registry.json").write_text(registry.to_json(_deployment().queue_settings()))
    if bytecode:
        compileall.compile_dir(folder, quiet=1)
    return folder


def environment(name: str) -> dict[str, str]:
    """Return the environment of a function, that of Lambda included."""
    settings = _settings(_deployment())[name].to_env()
    return {**_OF_LAMBDA, **settings, **_powertools(name), "AWS_LAMBDA_FUNCTION_NAME": f"dueline-{name}"}


def _settings(deployment: Deployment) -> dict[str, Settings]:
    of, urls = deployment, f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/"
    payloads = of.names.payloads(account=ACCOUNT, region=REGION)
    tick = partial(TickSettings, tick_period=of.tick_period, lookahead=of.lookahead, lease=of.lease)
    api = partial(ApiSettings, payloads=payloads, direct_horizon=of.direct_horizon, lookahead=of.lookahead)
    return {
        "ingest": IngestSettings(deployment=of.name, queue_urls=urls),
        "tick": tick(deployment=of.name, queue_urls=urls),
        "api": api(deployment=of.name, queue_urls=urls),
        "planner": PlannerSettings(deployment=of.name, queue_urls=urls, tick_period=of.tick_period),
    }


def _powertools(name: str) -> dict[str, str]:
    return {
        "POWERTOOLS_SERVICE_NAME": name,
        "POWERTOOLS_METRICS_NAMESPACE": metrics.NAMESPACE,
    }


def _deployment() -> Deployment:
    return load(ROOT / "queues.yaml")
