"""The synthesized templates, read as CloudFormation reads them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from dueline.cdk import Dueline
from dueline.config.deployment import Deployment
from local.template import context

ROOT = Path(__file__).parents[2]
CONTEXT = context()
_NAMES = {
    "AWS::SQS::Queue": ("sqs:", "QueueName"),
    "AWS::Lambda::Function": ("lambda:function:", "FunctionName"),
    "AWS::Logs::LogGroup": ("logs:", "LogGroupName"),
    "AWS::SNS::Topic": ("sns:", "TopicName"),
    "AWS::DynamoDB::Table": ("dynamodb:table/", "TableName"),
    "AWS::IAM::ManagedPolicy": ("iam:policy/", "ManagedPolicyName"),
}


@dataclass(frozen=True)
class Template:
    """A stack's template."""

    content: dict[str, Any]

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        return self.content["Resources"]

    def of_type(self, type: str) -> dict[str, dict[str, Any]]:
        """Return the properties of all resources of a type, by logical id."""
        return {id: one.get("Properties", {}) for id, one in self.resources.items() if one["Type"] == type}

    def find(self, type: str, name: str) -> tuple[str, dict[str, Any]]:
        """Return the logical id and the properties of the resource of a type that has this name."""
        _, property = _NAMES[type]
        [match] = [(id, each) for id, each in self.of_type(type).items() if each[property] == name]
        return match

    def spelled(self, value: Any) -> str:
        """Return a value with its references spelled out; an ARN without partition, region and account."""
        if isinstance(value, str):
            return value
        if "Fn::Join" in value:
            return _short("".join(map(self.spelled, value["Fn::Join"][1])))
        id = value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0]
        if id not in self.resources:
            return f"<{id}>"
        if self.resources[id]["Type"] == "AWS::Lambda::Alias":
            alias = self.resources[id]["Properties"]
            return f"{self.spelled(alias['FunctionName'])}:{alias['Name']}"
        prefix, name = _NAMES[self.resources[id]["Type"]]
        return prefix + self.resources[id]["Properties"][name]

    def depends_on(self, id: str) -> set[str]:
        """Return all that CloudFormation makes before this resource."""
        dependencies: set[str] = set()
        left = [id]
        while left:
            new = set(references(self.resources[left.pop()])) & set(self.resources) - dependencies
            dependencies |= new
            left.extend(new)
        return dependencies


@dataclass(frozen=True)
class Assembly:
    """What one synthesis left behind."""

    deployment: Deployment
    directory: Path
    templates: dict[str, Template]

    @property
    def core(self) -> Template:
        return self.templates[self.deployment.names.core_stack]

    @property
    def queues(self) -> dict[str, Template]:
        return {name: self.templates[self.deployment.names.queue_stack(name)] for name in self.deployment.queues}


def synthesize(settings: dict[str, Any], directory: Path, *, context: dict[str, str] | None = None) -> Assembly:
    deployment = Deployment.model_validate(settings)
    app = App(context=CONTEXT | (context or {}), analytics_reporting=False, outdir=str(directory))
    Dueline(app, "Dueline", deployment=deployment)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()
    return Assembly(deployment, directory, templates_in(directory))


def templates_in(directory: Path) -> dict[str, Template]:
    """Return the templates of a cloud assembly, by the names of their files."""
    suffix = ".template.json"
    return {
        path.name.removesuffix(suffix): Template(json.loads(path.read_text())) for path in directory.glob(f"*{suffix}")
    }


def _short(arn: str) -> str:
    prefixes = [f"arn:<AWS::Partition>:{{}}:{region}:<AWS::AccountId>:" for region in ("<AWS::Region>", "")]
    for service in ("dynamodb", "sqs", "lambda", "sns", "iam", "ssm", "execute-api", "scheduler"):
        for prefix in prefixes:
            if arn.startswith(prefix.format(service)):
                return f"{service}:{arn.removeprefix(prefix.format(service))}"
    return arn.replace("arn:<AWS::Partition>:s3:::", "s3:")


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _named(value)
        for part in value.values():
            yield from references(part)
    elif isinstance(value, list):
        for part in value:
            yield from references(part)


def _named(value: dict[str, Any]) -> Iterator[str]:
    if isinstance(value.get("Ref"), str):
        yield value["Ref"]
    if isinstance(value.get("Fn::GetAtt"), list):
        yield value["Fn::GetAtt"][0]
    depends_on = value.get("DependsOn", [])
    yield from [depends_on] if isinstance(depends_on, str) else depends_on
