"""Who may import what, and how long things may be, over the syntax trees."""

import ast
import sys
import tomllib
from pathlib import Path

from tests import house
from tests.house import imports_of
from tests.vocabulary import nodes_of

ROOT = Path(__file__).parents[2]
HOUSES = ("bench", "dueline", "local")
FILES = sorted(path for house in HOUSES for path in (ROOT / house).rglob("*.py"))

STDLIB = set(sys.stdlib_module_names)
CORE = STDLIB | {"dueline"}
AWS = CORE | {"boto3", "botocore", "mypy_boto3_dynamodb", "mypy_boto3_sqs", "mypy_boto3_ssm"}
OUTER = ("bench", "local")
# The longest prefix of a file's module name decides what it may import; a prefix allows all below it.
MAY_IMPORT = {
    "dueline": CORE,
    "dueline.client.async_client": CORE | {"boto3"},  # the type of a session
    "dueline.client.client": CORE | {"boto3"},  # the same
    "dueline.otel": CORE | {"opentelemetry"},
    "dueline.worker.worker": CORE | {"boto3"},  # the same
    "dueline.worker.log": CORE | {"aws_lambda_powertools"},
    "dueline.worker.prometheus": CORE | {"prometheus_client"},
    "dueline.cli": CORE | {"typer", "rich"},
    "dueline.console": CORE | {"starlette", "uvicorn"},
    "dueline.aws": AWS,
    "dueline.aws.once": AWS | {"aws_lambda_powertools"},
    "dueline.config": CORE | {"pydantic", "pydantic_core", "yaml"},
    "dueline.config.names": CORE,
    "dueline.config.routes": CORE,
    "dueline.config.registry": CORE,
    "dueline.config.environment": CORE,
    # typing_extensions: of what pydantic and Powertools are made themselves.
    "dueline.functions": CORE | {"aws_lambda_powertools", "pydantic", "pydantic_core", "typing_extensions"},
    "dueline.schedules": CORE | {"cronsim"},
    "dueline.testing.plugin": CORE | {"pytest"},
    "dueline.cdk": STDLIB
    | {"dueline.cdk", "aws_cdk", "constructs"}
    | {"dueline.config", "dueline.core.job", "dueline.core.queue_settings"},
}
# What is measured is deployed and called as it is.
MEASURED = {"bench": {"local"}}
FILE_LINES, BODY_LINES = 500, 40
# Besides the floors, which pyproject.toml has for import-linter.
MAY_NOT_IMPORT = {
    "dueline.functions": {"dueline.config.deployment", "dueline.config.queue"},
    "dueline.aws": {"dueline.config.deployment", "dueline.config.queue"},
    "dueline.aws.preflight": set(),  # the type of what is to be deployed
    "dueline.cli": {"dueline.aws"},
    "dueline.cli.connect": set(),  # where the commands connect
    "dueline.console": {"dueline.aws", "dueline.cli"},
    "local": {"dueline.functions", "dueline.cdk"},
}


def module_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def rule_for(module, rules, default):
    fitting = [prefix for prefix in rules if f"{module}.".startswith(f"{prefix}.")]
    return rules[max(fitting, key=len)] if fitting else default


def is_under(module, prefixes):
    return any(f"{module}.".startswith(f"{prefix}.") for prefix in prefixes)


def test_imports_are_allowed():
    refused = {module_of(path): refused_of(path) for path in FILES}
    assert {module: imported for module, imported in refused.items() if imported} == {}


def refused_of(path):
    """Return what a file imports that its place does not allow."""
    module = module_of(path)
    allowed, forbidden = rule_for(module, MAY_IMPORT, None), rule_for(module, MAY_NOT_IMPORT, set())
    house = module.split(".")[0]
    forbidden = forbidden | set(OUTER) - {house} - MEASURED.get(house, set())
    return {
        each
        for each in imports_of(path)
        if (allowed is not None and not is_under(each, allowed)) or is_under(each, forbidden)
    }


def test_adapters_are_imported_on_connecting():
    """Within functions, so that a client, a worker or a command starts fast and is tested without AWS."""
    at_once = [
        f"{module_of(path)}:{node.lineno}"
        for room in ("client", "worker", "cli")
        for path in (ROOT / "dueline" / room).rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Import | ast.ImportFrom) and "dueline.aws" in ast.unparse(node)
    ]
    assert at_once == []


def test_files_have_at_most_500_lines():
    files = [*FILES, *house.files("dueline/console/page", ".css", ".js")]
    lines = {str(file): house.lines([file]) for file in files}
    assert {name: length for name, length in lines.items() if length > FILE_LINES} == {}


def test_bodies_have_at_most_40_lines():
    bodies = [(module_of(path), name, length) for path in FILES for name, length in bodies_of(path)]
    assert [body for body in bodies if body[2] > BODY_LINES] == []


def bodies_of(path):
    """Yield each function's name, and how many lines its body has."""
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            yield node.name, body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_imported_cdk_modules_are_typed():
    imported = {name for path in FILES for name in imports_of(path) if name.startswith("aws_cdk.aws_")}
    modules = {".".join(name.split(".")[:2]) for name in imported}
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    (followed,) = [each["module"] for each in overrides if each["follow_imports"] == "normal"]
    assert modules | {"aws_cdk"} == set(followed)


def test_no_figure_of_the_house_rises():
    """`python -m tests.house` prints them all."""
    assert house.risen(house.figures(), house.held()) == {}
