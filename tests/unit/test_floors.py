"""What pyproject.toml allows at the least: installed into an environment of its own, and tried there."""

import re
import subprocess
import sys
import tomllib
import venv
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RANGES = [*PROJECT["dependencies"], *chain.from_iterable(PROJECT["optional-dependencies"].values())]
FLOORS = {name: least for name, _, least in (each.partition(">=") for each in RANGES)}
# What else the tests need themselves, as it is pinned, and OpenTelemetry's SDK: each version of it wants its own API.
TOOLS = ("hypothesis", "jsonschema")
SDK = f"opentelemetry-sdk=={FLOORS['opentelemetry-api']}"

# But the functions' modules, which are imported where a deployment has bundled them.
EVERYTHING = """
import importlib, pkgutil, dueline
for each in pkgutil.walk_packages(dueline.__path__, "dueline."):
    if not each.name.endswith("__main__") and not each.name.startswith("dueline.functions."):
        importlib.import_module(each.name)
"""
# Each range is used by one of them. Of boto3: what it answers when AWS fails, by botocore and in its place.
TRIED = (
    "test_clients.py",
    "test_gateway.py",
    "test_service_clock.py",
    "test_otel.py",
    "test_watch.py",
    "test_consumer.py",
    "test_testing.py",
    "test_config.py::test_wrong_setting_names_value_and_range",
    "test_config.py::test_documents_match_the_code",
    "test_cli.py::test_help_has_an_example",
    "test_cli.py::test_payloads_that_no_transcript_can_show",
    "test_cli.py::test_each_error_is_a_line_and_an_exit_code",
    "test_rule_by_brute_force.py",
)


def run(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def pinned(name):
    (pin,) = re.findall(rf"^{name}==\S+", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    return pin


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The Python of an environment with each range's least version and the newest of whatever these need."""
    folder = tmp_path_factory.mktemp("floors")
    venv.create(folder)
    python = folder / "bin" / "python"
    packages = [*(f"{name}=={least}" for name, least in FLOORS.items()), SDK, *map(pinned, TOOLS)]
    try:
        # As `make setup` does: uv is quick, pip knows where packages are.
        run(Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", "--python", python, *packages)
    except (AssertionError, FileNotFoundError):
        run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *packages)
    return python


def test_ranges_name_the_least_version_only():
    assert all(re.fullmatch(r"[\w-]+>=[\d.]+", each) for each in RANGES), RANGES


# Installs 40 packages.
@pytest.mark.thorough
def test_least_versions_work(python):
    run(python, "-c", EVERYTHING)
    nodes = [f"tests/unit/{each}" for each in TRIED]
    # What was the least years ago may be out of date by now; how values are typed concerns no range, nor does FastAPI.
    options = ["-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning", "-k", "not typed_as and not page_shows"]
    output = run(python, "-m", "pytest", "-q", *options, *nodes)
    assert re.search(r"\d+ passed", output)
    assert "skipped" not in output
