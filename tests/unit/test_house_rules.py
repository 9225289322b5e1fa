"""Who may import what, and how long things may be, over the syntax trees."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSES = ("bench", "dueline", "functions", "infra", "local")
FILES = sorted(path for house in HOUSES for path in (ROOT / house).rglob("*.py"))

STDLIB = set(sys.stdlib_module_names)
CORE = STDLIB | {"dueline"}
AWS = CORE | {"boto3", "botocore", "mypy_boto3_dynamodb", "mypy_boto3_sqs", "mypy_boto3_ssm"}
OUTER = ("bench", "functions", "infra", "local")
# The longest prefix of a file's module name decides what it may import; a prefix allows all below it.
MAY_IMPORT = {
    "dueline": CORE,
    "dueline.client.async_client": CORE | {"boto3"},  # the type of a session
    "dueline.client.client": CORE | {"boto3"},  # the same
    "dueline.otel": CORE | {"opentelemetry"},
    "dueline.worker.environment": CORE | {"boto3"},  # the type of a session
    "dueline.worker.worker": CORE | {"boto3"},  # the same
    "dueline.worker.consumer": CORE | {"aws_lambda_powertools"},
    "dueline.worker.watch": CORE | {"aws_lambda_powertools", "prometheus_client"},
    "dueline.cli": CORE | {"typer", "rich"},
    "dueline.aws": AWS,
    "dueline.aws.transport.connections": AWS | {"urllib3"},  # what botocore itself sends by
    "dueline.aws.dynamodb.once": AWS | {"aws_lambda_powertools"},
    "dueline.config": CORE | {"pydantic", "pydantic_core", "yaml"},
    "dueline.config.names": CORE,
    "dueline.config.registry": CORE,
    "dueline.config.settings": CORE,
    "dueline.config.work": CORE,
    # typing_extensions: of what pydantic and Powertools are made themselves.
    "functions": CORE | {"functions", "aws_lambda_powertools", "pydantic", "pydantic_core", "typing_extensions"},
    "dueline.schedules": CORE | {"cronsim"},
    "infra": STDLIB
    | {"infra", "aws_cdk", "constructs", "cdk_nag", "jsii"}
    | {"dueline.config", "dueline.model.job", "dueline.model.queue_settings"},
}
# What is measured is deployed and called as it is.
MEASURED = {"bench": {"functions", "local"}}
BODY_LINES = 20
CONSTRUCTOR_LINES = 40  # of a stack or a construct, which lists what it is made of
# Besides the floors, which pyproject.toml has for import-linter.
MAY_NOT_IMPORT = {
    "functions": {"dueline.config.deployment", "dueline.config.queue"},
    "dueline.aws": {"dueline.config.deployment", "dueline.config.queue"},
    "dueline.console": {"dueline.aws", "dueline.cli"},
    "local": {"functions", "infra"},
}


def module_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text())))


def imports_of(path):
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rule_for(module, rules, default):
    fitting = [prefix for prefix in rules if f"{module}.".startswith(f"{prefix}.")]
    return rules[max(fitting, key=len)] if fitting else default


def is_under(module, prefixes):
    return any(f"{module}.".startswith(f"{prefix}.") for prefix in prefixes)


def test_every_file_imports_only_what_its_place_allows():
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


def imported_under(node):
    return [imported for imported in ast.walk(node) if isinstance(imported, ast.Import | ast.ImportFrom)]


CONNECTS = {
    "client.client": ["from dueline.aws import direct_api, gateway"],
    "worker.environment": [
        "from dueline.aws.worker_resources import WorkerResources",
        "from dueline.worker.watch.health import served",
        "from dueline.worker.watch.log import log",
        "from dueline.worker.watch.metrics import Metrics",
    ],
}
OUTSIDE = re.compile(
    r"\b(boto3|dueline\.aws|worker\.watch\.(?!event)|worker\.watch import|from dueline import .*\baws|import_module)\b"
)


@pytest.mark.parametrize("name", CONNECTS)
def test_the_client_and_the_worker_reach_the_adapters_in_one_connect_function_and_boto3_for_its_types(name):
    tree = ast.parse((ROOT / "dueline" / f"{name.replace('.', '/')}.py").read_text())
    nodes = list(ast.walk(tree))
    connects = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "connect"]
    for_types = [node for node in nodes if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    (of_connect,) = [imported_under(node) for node in connects]
    (of_types,) = [imported_under(node) for node in for_types]
    elsewhere = [node for node in imported_under(tree) if node not in of_connect + of_types]
    assert [ast.unparse(node) for node in of_connect] == CONNECTS[name]
    assert [ast.unparse(node) for node in of_types] == ["import boto3"]
    assert not [node for node in elsewhere if OUTSIDE.search(ast.unparse(node))]


def test_the_command_line_reaches_the_adapters_in_nine_functions_of_one_module():
    modules = sorted((ROOT / "dueline" / "cli").glob("*.py"))
    reached = {
        (path.stem, node.name): imports
        for path in modules
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef)
        and (imports := [text for each in imported_under(node) if "dueline.aws" in (text := ast.unparse(each))])
    }
    assert reached == {
        ("connect", "api"): ["from dueline.aws import caller, clients, faults, gateway"],
        ("connect", "client"): ["from dueline.aws import clients, faults"],
        ("connect", "reach"): ["from dueline.aws import clients", "from dueline.aws.figures import CloudWatchFigures"],
        ("connect", "doctor"): [
            "from dueline.aws import clients, faults",
            "from dueline.aws.doctor import looks, place",
        ],
        ("connect", "dead_letters"): [
            "from dueline.aws import clients, faults",
            "from dueline.aws.sqs import dead_letters",
        ],
        ("connect", "adopter"): [
            "from dueline.aws import clients, faults",
            "from dueline.aws.adoption import Adopter",
        ],
        ("connect", "restore"): ["from dueline.aws import clients, faults, restoring"],
        ("connect", "sandbox"): [
            "from dueline.aws import clients, faults",
            "from dueline.aws.sandbox.sandbox import AwsSandbox",
        ],
        ("connect", "removal"): [
            "from dueline.aws import clients, faults",
            "from dueline.aws.sandbox.removal import Removal",
        ],
    }
    assert sum(path.read_text().count("dueline.aws") for path in modules) == sum(map(len, reached.values()))


def test_files_stay_under_250_lines():
    lines = {module_of(path): len(path.read_text().splitlines()) for path in FILES}
    assert {module: length for module, length in lines.items() if length >= 250} == {}


def test_the_files_of_the_consoles_page_stay_as_short_as_others():
    page = ROOT / "dueline" / "console" / "page"
    files = [file for file in page.rglob("*") if file.suffix in (".css", ".js") and "vendor" not in file.parts]
    lines = {file.name: len(file.read_text().splitlines()) for file in files}
    assert {name: length for name, length in lines.items() if length >= 250} == {}


def test_the_console_stays_small_enough_to_be_read():
    files = [file for file in (ROOT / "dueline" / "console").rglob("*") if "vendor" not in file.parts]
    python = sum(lines_of_code(file) for file in files if file.suffix == ".py")
    page = [
        re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.DOTALL) for file in files if file.suffix in (".css", ".js")
    ]
    lines = [line.strip() for text in page for line in text.splitlines()]
    assert python + sum(bool(line) and not line.startswith("//") for line in lines) < 2500


def lines_of_code(path):
    """Return how many lines of a file are neither empty nor a comment or a docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in nodes_of(path) if isinstance(node, documented)]
    docs = {
        number
        for node in nodes
        if ast.get_docstring(node)
        for number in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    lines = enumerate(path.read_text().splitlines(), start=1)
    return sum(number not in docs and line.strip()[:1] not in ("", "#") for number, line in lines)


def test_bodies_stay_under_20_lines():
    bodies = [(module_of(path), name, length) for path in FILES for name, length in bodies_of(path)]
    assert [body for body in bodies if body[2] >= most_lines_of(*body[:2])] == []


def bodies_of(path):
    """Yield each function's name, and how many lines its body has."""
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            yield node.name, body[-1].end_lineno - body[0].lineno + 1 if body else 0


def most_lines_of(module, name):
    return CONSTRUCTOR_LINES if module.startswith("infra") and name == "__init__" else BODY_LINES


def test_the_rules_look_at_the_whole_house():
    assert {"dueline.protocol.tick", "dueline.aws.dynamodb.table", "dueline.config.settings"} <= {
        module_of(path) for path in FILES
    }


def test_types_of_every_module_of_the_cdk_that_is_named_are_checked():
    imported = {name for path in FILES for name in imports_of(path) if name.startswith("aws_cdk.aws_")}
    modules = {".".join(name.split(".")[:2]) for name in imported}
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    (followed,) = [each["module"] for each in overrides if each["follow_imports"] == "normal"]
    assert modules | {"aws_cdk"} == set(followed)
