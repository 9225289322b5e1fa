"""A function's asset: what it holds, what changes its hash, and what is said where libraries cannot be installed."""

import shutil
import subprocess
import sys

import pytest

from bench.cold import BUNDLED, INSTALLED, SERVICES, environment
from dueline.config.registry import to_json
from infra import bundle as bundles
from infra.bundle import BundleError, bundle, compiler, installed
from tests.builders import a_queue

EMAILS = to_json([a_queue()])
# Nothing but the folder and the standard library can be imported; what is imported later is, too.
IMPORT_ALL = """
import importlib, pathlib, sys
folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(folder))
import boto3
for service in sys.argv[2:]:
    boto3.client(service)
for package in ("dueline", "functions"):
    for path in sorted(folder.glob(package + "/**/*.py")):
        importlib.import_module(".".join(path.relative_to(folder).with_suffix("").parts))
import zoneinfo
if (folder / "tzdata").exists():
    zoneinfo.reset_tzpath(to=[])
    zoneinfo.ZoneInfo("Europe/Berlin")
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A copy of the sources."""
    root = tmp_path_factory.mktemp("root")
    for name in ("dueline", "functions"):
        shutil.copytree(bundles.ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def hashes(root, folder, *names, registry=EMAILS):
    """Return the hash of each function's asset."""
    settings = {"registry": registry, "services": (), "libraries": None, "root": root}
    return {name: bundle(name, folder / name, **settings) for name in names or BUNDLED}


@pytest.fixture(scope="module")
def before(root, tmp_path_factory):
    return hashes(root, tmp_path_factory.mktemp("before"))


@pytest.mark.parametrize("name", ["api", "ttl"])
def test_asset_imports_from_itself_alone(name, tmp_path):
    """Modules that are imported late too; tests/unit/test_cold_start.py starts the other functions."""
    bundle(name, tmp_path, registry=EMAILS, services=SERVICES, libraries=INSTALLED)
    command = [sys.executable, "-I", "-S", "-c", IMPORT_ALL, str(tmp_path), *SERVICES]
    done = subprocess.run(command, env=environment(name), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("edited", "changed"),
    [
        ("dueline/cli/app.py", set()),
        ("dueline/worker/worker.py", set()),
        ("dueline/core/tick.py", {"tick"}),
        ("functions/http/schedules.py", {"api"}),
        ("dueline/core/job.py", {*BUNDLED}),
    ],
)
def test_edit_changes_assets_that_import_it(edited, changed, root, before, tmp_path):
    file, source = root / edited, (root / edited).read_text()
    try:
        file.write_text(f"{source}\n# edited\n")
        after = hashes(root, tmp_path)
    finally:
        file.write_text(source)
    assert {name for name in BUNDLED if before[name] != after[name]} == changed


def test_new_queue_changes_assets_that_read_queues(root, before, tmp_path):
    (root / "functions" / "other.py").write_text("from functions import log\n")
    one = hashes(root, tmp_path / "one", "other")
    more = hashes(root, tmp_path / "more", "other", "tick", registry=to_json([a_queue(), a_queue(name="invoices")]))
    assert more["other"] == one["other"]
    assert more["tick"] != before["tick"]


def test_hash_is_of_names_and_contents(root, before, tmp_path):
    (root / "functions" / "tick.py").touch()
    assert hashes(root, tmp_path, "tick") == {"tick": before["tick"]}


def test_libraries_are_left_out_as_far_as_unused(tmp_path):
    for name in ("tick", "api"):
        bundle(name, tmp_path / name, registry=EMAILS, services=("dynamodb", "sqs"), libraries=INSTALLED)
    held = {name: {path.name for path in (tmp_path / name).iterdir()} for name in ("tick", "api")}
    assert held["api"] - held["tick"] >= {"pydantic", "cronsim", "tzdata"}
    data = tmp_path / "tick" / "botocore" / "data"
    assert {path.name for path in data.iterdir() if path.is_dir()} == {"dynamodb", "sqs"}
    assert not list(tmp_path.glob("*/*.dist-info"))


def test_failed_installation_is_one_line(tmp_path, monkeypatch):
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        BundleError, match=r"^the functions' libraries .* could not be installed with pip.*: .*"
    ) as said:
        installed(tmp_path)
    assert "\n" not in str(said.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_libraries_are_installed_once_for_the_functions_platform(tmp_path, monkeypatch):
    place = installed(tmp_path)
    [compiled] = (place / "pydantic_core").glob("*.so")
    assert compiled.name == "_pydantic_core.cpython-313-aarch64-linux-gnu.so"
    for name in BUNDLED:
        bundle(name, tmp_path / name, registry=EMAILS, services=SERVICES, libraries=place)
    assert len(list((tmp_path / "tick").rglob("*.pyc"))) == (
        len(list((tmp_path / "tick").rglob("*.py"))) if compiler() else 0
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert installed(tmp_path) == place
