"""A function's asset: what it holds and imports, and what changes its hash."""

import shutil
import subprocess
import sys

import pytest

from dueline.cdk import bundle as bundles
from dueline.cdk.bundle import BundleError, bundle, compiler, installed
from dueline.config.registry import to_json
from local.template import ROOT
from tests.builders import a_queue
from tests.cold_start import BUNDLED, FUNCTIONS, INSTALLED, SERVICES, environment, stage, start

EMAILS = to_json([a_queue()])
# Nothing but the folder and the standard library can be imported; what is imported later is, too.
IMPORT_ALL = """
import importlib, pathlib, sys
folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(folder))
import boto3
for service in sys.argv[2:]:
    boto3.client(service)
for path in sorted(folder.glob("dueline/**/*.py")):
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
    shutil.copytree(bundles.ROOT / "dueline", root / "dueline", ignore=shutil.ignore_patterns("__pycache__"))
    return root


def hashes(root, folder, *names, registry=EMAILS):
    """Return the hash of each function's asset."""
    settings = {"registry": registry, "services": (), "libraries": None, "root": root}
    return {name: bundle(name, folder / name, **settings) for name in names or BUNDLED}


@pytest.fixture(scope="module")
def before(root, tmp_path_factory):
    return hashes(root, tmp_path_factory.mktemp("before"))


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """The assets of functions, with their libraries."""
    return stage(tmp_path_factory.mktemp("code"))


@pytest.mark.parametrize("name", ["api", "watch"])
def test_asset_imports_from_itself_alone(name, code):
    """Modules that are imported late too; the other functions are started below."""
    if name not in FUNCTIONS:
        bundle(name, code / name, registry=EMAILS, services=SERVICES, libraries=INSTALLED)
    command = [sys.executable, "-I", "-S", "-c", IMPORT_ALL, str(code / name), *SERVICES]
    done = subprocess.run(command, env=environment(name), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("edited", "changed"),
    [
        ("dueline/cli/app.py", set()),
        ("dueline/worker/worker.py", set()),
        ("dueline/core/tick.py", {"tick"}),
        ("dueline/functions/http/schedules.py", {"api"}),
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


def test_new_queue_changes_assets_that_read_it(root, before, tmp_path):
    (root / "dueline" / "functions" / "other.py").write_text("from dueline.functions import log\n")
    one = hashes(root, tmp_path / "one", "other")
    more = hashes(root, tmp_path / "more", "other", "tick", registry=to_json([a_queue(), a_queue(name="invoices")]))
    assert more["other"] == one["other"]
    assert more["tick"] != before["tick"]


def test_hash_is_of_names_and_contents(root, before, tmp_path):
    (root / "dueline" / "functions" / "tick.py").touch()
    assert hashes(root, tmp_path, "tick") == {"tick": before["tick"]}


def test_libraries_are_left_out_as_far_as_unused(code):
    held = {name: {path.name for path in (code / name).iterdir()} for name in ("tick", "api")}
    assert held["api"] - held["tick"] >= {"pydantic", "cronsim", "tzdata"}
    data = code / "tick" / "botocore" / "data"
    assert {path.name for path in data.iterdir() if path.is_dir()} == {*SERVICES}
    assert not list(code.glob("*/*.dist-info"))


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
def test_libraries_are_installed_once(tmp_path, monkeypatch):
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


# What functions import as they start


BOTO3 = {"boto3", "botocore", "certifi", "dateutil", "jmespath", "s3transfer", "six", "urllib3"}
# typing_extensions: Powertools wants it.
LIBRARIES = BOTO3 | {"aws_lambda_powertools", "typing_extensions"}
PYDANTIC = {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}
# The rooms of dueline that a function may import of, and the steps of the protocol that it does not run.
SHARED = {"dueline", "dueline.aws", "dueline.config", "dueline.core", "dueline.errors", "dueline.functions"}
ROOMS_OF = {
    "ingest": SHARED,
    "tick": SHARED,
    "planner": SHARED | {"dueline.schedules"},
    "api": SHARED | {"dueline.client", "dueline.operations"},
}
NEVER_IN = {
    "ingest": {"dueline.core.submit", "dueline.core.tick", "dueline.core.status", "dueline.aws.s3"},
    "tick": {"dueline.core.submit", "dueline.core.ingest", "dueline.core.reschedule", "dueline.aws.settings"},
    "planner": {"dueline.core.submit", "dueline.core.ingest", "dueline.core.tick", "dueline.schedules.changes"},
    # What schedules need is imported with their first request.
    "api": {"dueline.core.ingest", "dueline.core.tick", "dueline.schedules", "dueline.client.client"},
}
OF_RULES = {"cronsim"}
LIBRARIES_OF = {"ingest": LIBRARIES, "tick": LIBRARIES, "planner": LIBRARIES | OF_RULES, "api": LIBRARIES | PYDANTIC}
# Descriptions of services that boto3 reads to make a client: ingest seldom sends, and nobody needs S3 at once.
MODELS_OF = {
    "ingest": ("ssm", "dynamodb"),
    "tick": ("dynamodb", "sqs"),
    "planner": ("dynamodb", "sqs"),
    "api": ("ssm", "dynamodb", "sqs"),
}
# Powertools brings the classes of 40 kinds of events with the first of them.
OF_HTTP = ("aws_lambda_powertools.event_handler", "aws_lambda_powertools.utilities.data_classes")


@pytest.fixture(scope="module")
def started(code):
    return {
        name: start(f"dueline.functions.{name}:handler", code=code / name, environment=environment(name))
        for name in FUNCTIONS
    }


def packages(loaded):
    return {name.partition(".")[0] for name in loaded}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_imports_only_its_rooms(started, name):
    loaded = {each for each in started[name].loaded if each.partition(".")[0] == "dueline"}
    assert {".".join(each.split(".")[:2]) for each in loaded} == ROOMS_OF[name]
    assert not loaded & NEVER_IN[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_imports_no_unused_library(started, name):
    libraries = packages(started[name].loaded) - sys.stdlib_module_names - {"dueline"}
    # Python's own: how it was built, and what multiprocessing calls a script.
    libraries = {each for each in libraries if not each.startswith("_")}
    assert libraries <= LIBRARIES_OF[name]
    assert {"boto3", "aws_lambda_powertools"} <= libraries


@pytest.mark.parametrize("name", ["ingest", "tick", "planner"])
def test_api_alone_imports_powertools_for_http(started, name):
    def of_http(loaded):
        return {each for each in loaded if each.startswith(OF_HTTP)}

    assert not of_http(started[name].loaded)
    assert of_http(started["api"].loaded)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_creates_its_clients_at_start(started, name):
    assert started[name].models == MODELS_OF[name]
    assert started[name].clients == MODELS_OF[name]


@pytest.mark.parametrize("name", ["Client", "Worker"])
def test_public_imports_load_no_library(name):
    loaded = start(f"dueline:{name}", code=ROOT).loaded
    libraries = {each for each in packages(loaded) - sys.stdlib_module_names if not each.startswith("_")}
    assert libraries == {"dueline"}


def test_failed_start_says_why(code):
    with pytest.raises(RuntimeError, match="DUELINE_DEPLOYMENT"):
        start("dueline.functions.tick:handler", code=code / "tick")
