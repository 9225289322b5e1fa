"""The stacks as a whole."""

import json
import re
import runpy
from dataclasses import asdict
from functools import partial

import aws_cdk
import pytest
from aws_cdk import App, Stack, Validations
from aws_cdk.aws_sqs import Queue
from cdk_nag import AwsSolutionsChecks

from dueline.config.environment import ApiSettings, PeriodSettings, Settings, TickSettings, WatchSettings
from dueline.core.queue_settings import MOST_PARTITIONS
from tests.acceptance import app as sandbox
from tests.template.conftest import AHEAD
from tests.template.synthesis import CONTEXT, ROOT, references, synthesize, templates_in

MOST_RESOURCES = 500
MOST_BYTES = 1_000_000


def test_new_queue_changes_only_functions(neighbours, one_more):
    assert one_more.queues["emails"] == neighbours.queues["emails"]
    before, after = neighbours.core, one_more.core
    versions = [set(each.of_type("AWS::Lambda::Version")) for each in (before, after)]
    others = [set(each.resources) - ids for each, ids in zip((before, after), versions, strict=True)]
    changed = {id for id in others[0] if before.resources[id]["Properties"] != after.resources[id]["Properties"]}
    functions = {*before.of_type("AWS::Lambda::Function"), *before.of_type("AWS::Lambda::Alias")}
    assert changed <= functions
    assert others[0] <= others[1]
    added = {after.resources[id]["Properties"].get("Name") for id in others[1] - others[0]}
    assert added == {"q-ahead", "o-ahead"}


def test_no_stack_imports_from_another(neighbours):
    for template in neighbours.templates.values():
        assert "Fn::ImportValue" not in json.dumps(template.content)
        assert not [output for output in template.content.get("Outputs", {}).values() if "Export" in output]
        # The CDK's command line deploys each stack that reads SSM by a parameter again, but for what has this mark.
        for parameter in template.content.get("Parameters", {}).values():
            assert "SSM" not in parameter["Type"] or "[cdk:skip]" in parameter["Description"]


@pytest.mark.thorough
def test_the_largest_queue_fits_into_a_stack(tmp_path):
    largest = synthesize({"queues": {"ahead": AHEAD | {"partitions": MOST_PARTITIONS}}}, tmp_path)
    assert len(largest.queues["ahead"].resources) <= MOST_RESOURCES
    assert (tmp_path / "dueline-queue-ahead.template.json").stat().st_size <= MOST_BYTES


def test_nag_finds_nothing(one_more, strict, thrifty):
    for assembly in (one_more, strict, thrifty):
        reports = json.loads((assembly.directory / "validation-report.json").read_text())["pluginReports"]
        violations = [violation for report in reports for violation in report["violations"]]
        assert violations == []


def test_nag_looks(tmp_path):
    careless = App(context=CONTEXT, outdir=str(tmp_path))
    Validations.of(careless).add_plugins(AwsSolutionsChecks(careless))
    Queue(Stack(careless, "careless"), "Queue")
    with pytest.raises(RuntimeError, match="AwsSolutions-SQS4"):
        careless.synth()


def lint(template):
    """Return what is wrong with a template, or that it cannot be read."""
    # Other tests need not wait for the import.
    from cfnlint.config import ConfigMixIn
    from cfnlint.decode.decode import decode_str
    from cfnlint.runner import Runner

    content, unreadable = decode_str(json.dumps(template.content))
    # CDK writes DependsOn for a function's role, which GetAtt says already.
    return unreadable or list(Runner(ConfigMixIn(ignore_checks=["W3005"])).validate_template(content))


@pytest.mark.thorough
def test_cfn_lint_finds_nothing(one_more, strict):
    ahead = [one_more.core, one_more.queues["ahead"], one_more.queues["emails"]]
    for template in [*ahead, strict.core, strict.queues["emails"]]:
        assert lint(template) == []


WRONG = r"/queues.yaml: settings that are wrong: 1\n  queues\.emails\.partitions is 0: Input should be greater"


def test_invalid_queues_yaml_ends_the_app(tmp_path, monkeypatch):
    wrong = tmp_path / "queues.yaml"
    wrong.write_text("queues:\n  emails:\n    partitions: 0\n")
    configured = partial(App, outdir=str(tmp_path), context={**CONTEXT, "queues": str(wrong)})
    monkeypatch.setattr(aws_cdk, "App", configured)
    with pytest.raises(SystemExit, match=WRONG):
        runpy.run_path(str(ROOT / "app.py"))


def test_each_partition_has_a_schedule(one_more):
    schedules = one_more.queues["ahead"].of_type("AWS::Scheduler::Schedule").values()
    assert [schedule["Name"] for schedule in schedules] == [f"ahead.{partition}" for partition in range(4)]
    events = [json.loads(schedule["Target"]["Input"]) for schedule in schedules]
    assert events == [{"queue": "ahead", "partition": partition} for partition in range(4)]


def test_queue_is_published_last(one_more):
    for template in one_more.queues.values():
        [parameter] = template.of_type("AWS::SSM::Parameter")
        assert template.depends_on(parameter) == set(template.resources) - {parameter, "CDKMetadata"}


# What is of a function itself: its versions, what it does with failed invocations, how it is watched.
OF_FUNCTIONS = {
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::Version",
}


def test_functions_are_invoked_by_their_alias(one_more):
    functions = set(one_more.core.of_type("AWS::Lambda::Function"))
    for template in one_more.templates.values():
        for id, resource in template.resources.items():
            # Clients name one of its aliases themselves.
            if resource["Type"] in OF_FUNCTIONS or id.startswith("ApiFunction"):
                continue
            properties = resource.get("Properties", {})
            assert not functions & set(references(properties)), id
            named = re.findall(r':function:([^"]+)"', json.dumps(properties))
            assert [name for name in named if not re.search(":(live|[qo]-.+)$", name)] == [], id
    sources = one_more.core.of_type("AWS::Lambda::EventSourceMapping").values()
    assert [each["FunctionName"]["Fn::Join"][1][-1] for each in sources] == [":live", ":live"]


def _alias(template, function):
    named = {template.spelled(each["FunctionName"]): id for id, each in template.of_type("AWS::Lambda::Alias").items()}
    return named[f"lambda:function:dueline-{function}"]


def test_readers_of_rows_deploy_before_the_api(neighbours, thrifty):
    for core in (neighbours.core, thrifty.core):
        readers = {_alias(core, name) for name in ("ingest", "tick", "planner")}
        functions = {id: each["FunctionName"] for id, each in core.of_type("AWS::Lambda::Alias").items()}
        of_api = [id for id, function in functions.items() if core.spelled(function) == "lambda:function:dueline-api"]
        assert all(readers <= core.depends_on(id) for id in of_api)


FUNCTIONS = ("ingest", "tick", "api", "planner", "watch")


def test_functions_read_their_environment(neighbours):
    declared = {"deployment": "dueline", **dict(neighbours.deployment)}
    kinds = (Settings, TickSettings, ApiSettings, PeriodSettings, WatchSettings)
    for name, kind in zip(FUNCTIONS, kinds, strict=True):
        function = neighbours.core.find("AWS::Lambda::Function", neighbours.deployment.names.function(name))[1]
        read = asdict(kind.from_env(function["Environment"]["Variables"]))
        # Those of queues.yaml; names are in the golden templates.
        assert read == {**read, **{field: declared[field] for field in read.keys() & declared.keys()}}
        assert "deployment" in read


# Its API


def test_every_route_is_authorized_by_iam(neighbours):
    routes = neighbours.core.of_type("AWS::ApiGatewayV2::Route").values()
    documented = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    expected = {f"{method.upper()} {path}" for path, operations in documented.items() for method in operations}
    assert {route["RouteKey"] for route in routes} == expected
    assert {route["AuthorizationType"] for route in routes} == {"AWS_IAM"}


def test_hundred_queues_fit_into_the_core(neighbours):
    """Each more queue takes two resources of the core stack's 500, and one for each of its producers elsewhere."""
    resources = neighbours.core.resources
    of_queues = [each for each in neighbours.core.of_type("AWS::Lambda::Alias").values() if each["Name"] != "live"]
    assert len(of_queues) == 2 * len(neighbours.queues)
    assert len(resources) - len(of_queues) + 2 * 100 <= 350


# Its tables


def test_failed_first_deployment_leaves_nothing(neighbours):
    """Its rollback deletes what it made, but for protected tables: nothing that may fail comes after them."""
    core = neighbours.core
    jobs, once, state = (core.find("AWS::DynamoDB::Table", f"dueline-{name}")[0] for name in ("jobs", "once", "state"))
    later = {id: each["Type"] for id, each in core.resources.items() if jobs in core.depends_on(id)}
    assert set(later.values()) == {"AWS::DynamoDB::Table", "AWS::IAM::Policy", "AWS::Lambda::Permission"}
    assert core.depends_on(jobs) == set(core.resources) - later.keys() - {jobs}
    # That of jobs may fail by its capacity: before another is there.
    assert jobs in core.depends_on(state)
    assert {jobs, state} <= core.depends_on(once)
    rights = {id for id, type in later.items() if "Table" not in type}
    assert len(rights) == 2
    assert all({jobs, once, state} <= core.depends_on(id) for id in rights)
    protected = {
        id for id, each in core.resources.items() if each.get("Properties", {}).get("DeletionProtectionEnabled")
    }
    assert protected == {jobs, once, state}
    kept = [
        each["DeletionPolicy"]
        for template in neighbours.templates.values()
        for each in template.resources.values()
        if "Retain" in each.get("DeletionPolicy", "")
    ]
    assert set(kept) == {"RetainExceptOnCreate"}


# The sandbox of the acceptance tests


def test_nothing_outlives_the_sandbox(tmp_path):
    sandbox.synthesize(outdir=str(tmp_path), context=CONTEXT)
    templates = templates_in(tmp_path).items()
    resources = [(f"{name}: {id}", each) for name, template in templates for id, each in template.resources.items()]
    assert len(resources) > 100
    assert [id for id, resource in resources if resource["DeletionPolicy"] != "Delete"] == []
    assert [id for id, each in resources if each.get("Properties", {}).get("DeletionProtectionEnabled")] == []
