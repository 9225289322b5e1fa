"""What the functions import as they start: nothing that they do not use. `make bench` shows how long it takes."""

import sys

import pytest

from bench.cold import FUNCTIONS, environment, stage, start
from local.template import ROOT

BOTO3 = {"boto3", "botocore", "certifi", "dateutil", "jmespath", "s3transfer", "six", "urllib3"}
# typing_extensions: Powertools wants it.
LIBRARIES = BOTO3 | {"aws_lambda_powertools", "typing_extensions"}
PYDANTIC = {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}
# The rooms of dueline that a function may import of, and the steps of the protocol that it does not run.
SHARED = {"dueline", "dueline.aws", "dueline.config", "dueline.core", "dueline.errors"}
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
LIBRARIES_OF = {
    "ingest": LIBRARIES,
    "tick": LIBRARIES,
    "planner": LIBRARIES | OF_RULES,
    "api": LIBRARIES | PYDANTIC,
}
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
def code(tmp_path_factory):
    return stage(tmp_path_factory.mktemp("code"))


@pytest.fixture(scope="module")
def started(code):
    return {
        name: start(f"functions.{name}:handler", code=code / name, environment=environment(name)) for name in FUNCTIONS
    }


def packages(loaded):
    return {name.partition(".")[0] for name in loaded}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_imports_only_the_rooms_that_it_uses(started, name):
    loaded = {each for each in started[name].loaded if each.partition(".")[0] == "dueline"}
    assert {".".join(each.split(".")[:2]) for each in loaded} == ROOMS_OF[name]
    assert not loaded & NEVER_IN[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_imports_no_unused_library(started, name):
    libraries = packages(started[name].loaded) - sys.stdlib_module_names - {"dueline", "functions"}
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
    assert tuple(started[name].clients) == MODELS_OF[name]


@pytest.mark.parametrize("name", ["Client", "Worker"])
def test_public_imports_load_the_standard_library_alone(name):
    loaded = start(f"dueline:{name}", code=ROOT).loaded
    libraries = {each for each in packages(loaded) - sys.stdlib_module_names if not each.startswith("_")}
    assert libraries == {"dueline"}


def test_failed_start_says_why(code):
    with pytest.raises(RuntimeError, match="DUELINE_DEPLOYMENT"):
        start("functions.tick:handler", code=code / "tick")
