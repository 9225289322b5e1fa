"""A function's asset: what it holds and imports, what changes its hash, and what a start of it loads."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import boto3
import pytest

from dueline.cdk import bundle as bundles
from dueline.cdk.bundle import BundleError, bundle, compiler, installed
from dueline.config.deployment import load
from dueline.config.registry import to_json
from local.template import ROOT
from tests.builders import NOBODY, a_queue

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
# The clients that a function makes, the services whose descriptions are read for that, and all modules.
START = """
import importlib, json, sys
before, models, clients = set(sys.modules), [], []
def note_model(event, arguments):
    if event == "open" and "service-2.json" in str(arguments[0]):
        models.append(str(arguments[0]).split("/")[-3])
sys.addaudithook(note_model)
module = importlib.import_module("dueline.aws.clients")
make = module.client
module.client = lambda service, *more, **options: clients.append(service) or make(service, *more, **options)
importlib.import_module(f"dueline.functions.{sys.argv[1]}").handler
print(json.dumps({"clients": clients, "models": models, "loaded": sorted({*sys.modules} - before)}))
"""
FUNCTIONS = ("ingest", "tick", "api", "planner")
# Nobody waits for the guard of TTL.
BUNDLED = (*FUNCTIONS, "watch")
# This Python's, of the same versions: those that are deployed are for another processor.
INSTALLED = Path(boto3.__file__).parents[1]
SERVICES = ("dynamodb", "logs", "s3", "scheduler", "sns", "sqs", "ssm")
GOLDEN = ROOT / "tests" / "template" / "golden" / "dueline-core.json"
# What Lambda sets of itself: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_OF_LAMBDA = {**NOBODY, "AWS_REGION": NOBODY["AWS_DEFAULT_REGION"], "AWS_SESSION_TOKEN": "nobody"}


def environment(name):
    """Return the environment of a function as it is deployed, that of Lambda included."""
    resources = json.loads(GOLDEN.read_text())["Resources"].values()
    [function] = [
        each["Properties"] for each in resources if each["Properties"].get("FunctionName") == f"dueline-{name}"
    ]
    return {**_OF_LAMBDA, **function["Environment"]["Variables"], "AWS_LAMBDA_FUNCTION_NAME": f"dueline-{name}"}


def run(script, *arguments, **environment):
    """Run a script in a fresh interpreter, which has this environment and no installed packages; return its output."""
    command = [sys.executable, "-S", "-P", "-c", script, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


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
    """The assets of functions, with their libraries, each in a folder of its name."""
    folder, declared = tmp_path_factory.mktemp("code"), to_json(load(ROOT / "queues.yaml").queue_settings())
    for name in BUNDLED:
        bundle(name, folder / name, registry=declared, services=SERVICES, libraries=INSTALLED)
    return folder


@pytest.mark.parametrize("name", ["api", "watch"])
def test_asset_imports_from_itself_alone(name, code):
    """Modules that are imported late too; the other functions are started below."""
    run(IMPORT_ALL, str(code / name), *SERVICES, **environment(name))


@pytest.mark.parametrize(
    ("edited", "changed"),
    [
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
# The rooms of dueline that a function may import of. What schedules need is imported with their first request.
SHARED = {"dueline", "dueline.aws", "dueline.config", "dueline.core", "dueline.errors", "dueline.functions"}
ROOMS_OF = {
    "ingest": SHARED,
    "tick": SHARED,
    "planner": SHARED | {"dueline.schedules"},
    "api": SHARED | {"dueline.client", "dueline.operations"},
}
OF_RULES = {"cronsim"}
LIBRARIES_OF = {"ingest": LIBRARIES, "tick": LIBRARIES, "planner": LIBRARIES | OF_RULES, "api": LIBRARIES | PYDANTIC}
# Descriptions of services that boto3 reads to make a client: ingest seldom sends, and nobody needs S3 at once.
MODELS_OF = {
    "ingest": ["ssm", "dynamodb"],
    "tick": ["dynamodb", "sqs"],
    "planner": ["dynamodb", "sqs"],
    "api": ["ssm", "dynamodb", "sqs"],
}
# Powertools brings the classes of 40 kinds of events with the first of them.
OF_HTTP = ("aws_lambda_powertools.event_handler", "aws_lambda_powertools.utilities.data_classes")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_loads_what_it_needs_alone(code, name):
    # Lambda's file system is read-only: no bytecode is kept there.
    of_python = {"PYTHONPATH": str(code / name), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(code / name)}
    started = json.loads(run(START, name, **environment(name), **of_python))
    ours = {each for each in started["loaded"] if each.partition(".")[0] == "dueline"}
    assert {".".join(each.split(".")[:2]) for each in ours} == ROOMS_OF[name]
    # Python's own have an underscore: how it was built, and what multiprocessing calls a script.
    others = {each.partition(".")[0] for each in started["loaded"]} - sys.stdlib_module_names - {"dueline"}
    assert {each for each in others if not each.startswith("_")} <= LIBRARIES_OF[name]
    assert any(each.startswith(OF_HTTP) for each in started["loaded"]) is (name == "api")
    assert started["models"] == started["clients"] == MODELS_OF[name]
