"""New code takes over by an alias, the API's by and by, and nothing invokes a function past its alias."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.template.synthesis import Assembly, Template

# What is of a function itself: its versions, what it does with failed invocations of before, how it is watched. The
# scheduler's role, for schedules of before. And what declares
# schedules: CloudFormation lets nobody change whom it asks.
OF_FUNCTIONS = {
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::IAM::Role",
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::Version",
    "Custom::DuelineSchedule",
}


def _arns(value: Any) -> Iterator[str]:
    """Yield what is put together of a text and references, without the references."""
    if isinstance(value, dict):
        if "Fn::Join" in value:
            yield "".join(part for part in value["Fn::Join"][1] if isinstance(part, str))
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _arns(each)


def _referenced(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "Ref" in value:
            yield value["Ref"]
        if "Fn::GetAtt" in value:
            yield value["Fn::GetAtt"][0]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _referenced(each)


def test_nothing_invokes_a_function_but_by_its_alias(one_more: Assembly) -> None:
    functions = set(one_more.core.of_type("AWS::Lambda::Function"))
    for template in one_more.templates.values():
        for id, resource in template.resources.items():
            if resource["Type"] in OF_FUNCTIONS:
                continue
            properties = resource.get("Properties", {})
            assert not functions & set(_referenced(properties)), id
            named = [arn for arn in _arns(properties) if ":function:" in arn]
            assert [arn for arn in named if not arn.endswith(":live")] == [], id
    sources = one_more.core.of_type("AWS::Lambda::EventSourceMapping").values()
    assert [each["FunctionName"]["Fn::Join"][1][-1] for each in sources] == [":live", ":live"]


def test_every_function_has_one_alias_of_its_newest_version(three: Assembly) -> None:
    core = three.core
    versions = core.of_type("AWS::Lambda::Version")
    aliases = list(core.of_type("AWS::Lambda::Alias").values())
    assert {alias["FunctionVersion"]["Fn::GetAtt"][0] for alias in aliases} == set(versions)
    assert all(alias["FunctionName"] == versions[_version(alias)]["FunctionName"] for alias in aliases)
    names = {core.spelled(alias["FunctionName"]) + ":" + alias["Name"] for alias in aliases}
    functions = ("ingest", "tick", "api", "planner", "ttl", "strand")
    assert names == {f"lambda:function:dueline-{name}:live" for name in functions}


def _version(alias: dict[str, Any]) -> str:
    version: str = alias["FunctionVersion"]["Fn::GetAtt"][0]
    return version


def _alias(template: Template, function: str) -> str:
    named = {template.spelled(each["FunctionName"]): id for id, each in template.of_type("AWS::Lambda::Alias").items()}
    return named[f"lambda:function:dueline-{function}"]


def test_the_api_alone_changes_by_and_by_and_its_own_alarms_take_it_back(three: Assembly) -> None:
    core = three.core
    policies = {id: core.resources[id].get("UpdatePolicy") for id in core.of_type("AWS::Lambda::Alias")}
    [(id, policy)] = [(id, policy) for id, policy in policies.items() if policy]
    [(group, properties)] = core.of_type("AWS::CodeDeploy::DeploymentGroup").items()
    assert id == _alias(core, "api")
    assert policy["CodeDeployLambdaAliasUpdate"]["DeploymentGroupName"] == {"Ref": group}
    assert properties["DeploymentConfigName"] == "CodeDeployDefault.LambdaCanary10Percent5Minutes"
    assert "DEPLOYMENT_STOP_ON_ALARM" in properties["AutoRollbackConfiguration"]["Events"]
    alarms = [core.resources[each["Name"]["Ref"]]["Properties"] for each in properties["AlarmConfiguration"]["Alarms"]]
    assert {each["MetricName"] for each in alarms} == {"Errors", "ApiFaults"}
    # A new version has but five minutes to be found out.
    assert all(each["EvaluationPeriods"] * each["Period"] <= 300 for each in alarms)


def test_what_reads_rows_changes_before_the_api_which_writes_them(three: Assembly, thrifty: Assembly) -> None:
    for core in (three.core, thrifty.core):
        readers = {_alias(core, name) for name in ("ingest", "tick", "planner")}
        assert readers <= core.depends_on(_alias(core, "api"))


def test_all_at_once_is_without_codedeploy(thrifty: Assembly) -> None:
    assert "CodeDeploy" not in (Path(thrifty.directory) / "dueline-core.template.json").read_text()
