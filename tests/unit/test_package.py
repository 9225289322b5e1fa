"""What `import dueline` brings, and what is installed with it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dueline
import dueline.testing

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_public_names_are_in_the_reference():
    shown = re.findall(r"^::: dueline\.(\S+)$", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE)
    of_the_cdk = ["cdk.stacks.Dueline", "cdk.stacks.DeployedQueue"]
    of_tests = [f"testing.{name}" for name in ("Local", "received_job", "sqs_event")]
    assert {name.partition(".")[2] for name in of_tests} <= set(dueline.testing.__all__)
    assert sorted(shown) == sorted([*dueline.__all__, "otel.handling", *of_the_cdk, *of_tests])
    assert all(getattr(dueline, name).__name__ == name for name in dueline.__all__)
    assert {kind.error.__name__ for kind in dueline.errors.ERRORS} <= set(dueline.__all__)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'dueline' has no attribute 'Cleint'"):
        _ = dueline.Cleint
    with pytest.raises(ImportError):
        exec("from dueline import Cleint", {})


OF_WORKERS = {"aws_lambda_powertools", "prometheus_client"}


@pytest.mark.parametrize(
    ("imports", "left_out"),
    [
        ("import dueline", {"dueline.client", "dueline.core", "dueline.errors"}),
        ("from dueline import Client", {"boto3", "botocore", "dueline.aws"}),
        ("from dueline import AsyncClient, otel", {"opentelemetry"}),
        ("import dueline.aws.api_transport; from dueline import Client", OF_WORKERS),
        ("import dueline.aws.direct_api; from dueline import Client", OF_WORKERS),
        ("import dueline.core.cancel; from dueline import Client", OF_WORKERS),
        ("import dueline.testing.plugin", {"boto3", "pydantic", "dueline.client"}),
    ],
)
def test_imports_bring_only_what_they_need(imports, left_out):
    code = f"import sys; {imports}; print({left_out} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("use", ["worker.run()", "dueline.lambda_handler(print)"])
def test_missing_extra_is_named(use):
    hidden = "import sys; sys.modules |= dict.fromkeys(['aws_lambda_powertools', 'prometheus_client'])"
    code = f"{hidden}; import dueline; worker = dueline.Worker(); worker.job('emails')(print); {use}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: aws_lambda_powertools is not installed, which this needs: pip install 'dueline[worker]'"
    )


def test_pytest_imports_the_plugin_where_dueline_is_installed():
    assert PROJECT["project"]["entry-points"]["pytest11"] == {"dueline": "dueline.testing.plugin"}


def test_boto3_is_the_only_dependency():
    assert [each.split(">")[0] for each in PROJECT["project"]["dependencies"]] == ["boto3"]


def test_wheel_has_only_the_package_with_its_data():
    setuptools, package = PROJECT["tool"]["setuptools"], ROOT / "dueline"
    assert setuptools["packages"]["find"] == {"include": ["dueline*"]}
    there = {path for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    packed = {path for pattern in setuptools["package-data"]["dueline"] for path in package.glob(pattern)}
    # The functions' requirements.txt is what `make lock` makes the lock of.
    assert there - packed == {package / "functions" / "requirements.txt"}
    assert package / "py.typed" in packed
