"""What `import dueline` brings, and what is installed with it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dueline

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
PUBLIC = {
    "AlreadyFinished",
    "AsyncClient",
    "Client",
    "ClientTooOld",
    "Control",
    "DeploymentNotFound",
    "DeploymentTooOld",
    "Discard",
    "DuelineError",
    "DynamoTable",
    "Forbidden",
    "IdReused",
    "InvalidJob",
    "InvalidSchedule",
    "Job",
    "JobId",
    "JobNotFound",
    "KeyReused",
    "NewJob",
    "NotYet",
    "Overview",
    "Patience",
    "PayloadPlace",
    "PayloadTooLarge",
    "QueueNotFound",
    "QueueSettings",
    "ReceivedJob",
    "Retry",
    "Rate",
    "Route",
    "RunOfSchedule",
    "ScheduleChanged",
    "ScheduleNotFound",
    "ScheduledJob",
    "AsyncSchedules",
    "NextRun",
    "Run",
    "Schedule",
    "SubmittedRun",
    "Schedules",
    "State",
    "Throttled",
    "TooManyChanges",
    "TooManySchedules",
    "TraceContext",
    "Unavailable",
    "Worker",
    "lambda_handler",
}

# `key_prefix`, by which the rights on the notes go, came with 3.5.
WORKER = ["aws-lambda-powertools>=3.5", "prometheus-client>=0.20"]


def run(code):
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_public_names_are_pinned_and_each_is_there():
    assert set(dueline.__all__) == PUBLIC
    assert all(getattr(dueline, name).__name__ == name for name in PUBLIC)


def test_the_api_reference_shows_what_is_public_and_nothing_else():
    shown = re.findall(r"^::: dueline\.(\S+)$", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE)
    assert sorted(shown) == sorted({*PUBLIC, "otel.handling", "skip.cancelled_among"})


def test_every_error_is_public():
    errors = {name for name, each in vars(dueline.errors).items() if isinstance(each, type)}
    assert errors <= PUBLIC


def test_another_name_is_none_of_the_packages():
    with pytest.raises(AttributeError, match="'dueline' has no attribute 'Cleint'"):
        _ = dueline.Cleint
    with pytest.raises(ImportError):
        exec("from dueline import Cleint", {})


def test_importing_the_package_imports_nothing_of_the_client():
    assert run("import sys, dueline; print([name for name in sys.modules if name.startswith('dueline.')])") == "[]\n"


def test_importing_the_client_imports_neither_boto3_nor_the_adapters():
    code = "import sys; from dueline import Client; print({'boto3', 'botocore', 'dueline.aws'} & set(sys.modules))"
    assert run(code) == "set()\n"


def test_nothing_of_opentelemetry_is_imported_before_it_is_needed():
    code = "import sys; from dueline import AsyncClient, otel; print('opentelemetry' in sys.modules)"
    assert run(code) == "False\n"


def test_opentelemetry_is_an_extra():
    assert PROJECT["project"]["optional-dependencies"]["otel"] == ["opentelemetry-api>=1.20"]


@pytest.mark.parametrize("module", ["dueline.aws.gateway", "dueline.aws.direct_api", "dueline.skip"])
def test_a_client_does_without_what_the_extra_of_workers_brings(module):
    code = f"import sys, dueline, {module}; from dueline import Client"
    brought = "{'aws_lambda_powertools', 'prometheus_client'} & set(sys.modules)"
    assert run(f"{code}; print({brought})") == "set()\n"


def test_boto3_is_all_that_installing_it_brings():
    assert [each.split(">")[0] for each in PROJECT["project"]["dependencies"]] == ["boto3"]


def test_workers_are_an_extra_with_powertools_and_prometheus():
    assert PROJECT["project"]["optional-dependencies"]["worker"] == WORKER


def test_what_computes_schedules_is_an_extra_and_of_deployments_and_the_command_line_too():
    extras = {name: {each.split(">")[0] for each in its} for name, its in EXTRAS.items()}
    assert extras["schedules"] == {"cronsim", "tzdata"}
    assert extras["deploy"] == {"pydantic", "PyYAML", *extras["schedules"]}
    assert extras["cli"] == {"typer", "rich", *extras["deploy"]}


def test_the_command_line_has_one_command():
    assert PROJECT["project"]["scripts"] == {"dueline": "dueline.cli:main"}


def test_the_wheel_has_the_package_alone_and_says_that_it_is_typed():
    setuptools = PROJECT["tool"]["setuptools"]
    assert setuptools["packages"]["find"] == {"include": ["dueline*"]}
    assert setuptools["package-data"] == {"dueline": ["py.typed", "console/page/**/*", "verify/queues.yaml"]}
    assert (ROOT / "dueline" / "py.typed").exists()
    data = {path for path in (ROOT / "dueline").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    page = ROOT / "dueline" / "console" / "page"
    others = {str(path.relative_to(ROOT / "dueline")) for path in data if not path.is_relative_to(page)}
    assert others == {"py.typed", "verify/queues.yaml"}
    assert page / "index.html" in data
