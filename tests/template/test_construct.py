"""Dueline in an app of one's own: where its stacks are, what they are called, and what other stacks use of them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Duration, Environment, Stack, Stage
from aws_cdk.aws_iam import Role, ServicePrincipal
from aws_cdk.aws_lambda import Code, Function, Runtime

from dueline.cdk import Dueline
from dueline.config import ConfigurationError
from dueline.config.deployment import Deployment
from tests.template import iam
from tests.template.synthesis import CONTEXT, Template

SETTINGS = {"queues": {"emails": {"priorities": 2, "partitions": 2}, "invoices": None}}
KINDS = {"producer": "producer", "direct_producer": "direct", "consumer": "consumer", "operator": "operator"}


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(context=CONTEXT, analytics_reporting=False, outdir=str(tmp_path))


@pytest.fixture
def shop(app: App) -> Stack:
    return Stack(app, "Shop")


@pytest.fixture
def templates(app: App) -> Callable[[], dict[str, Template]]:
    def synthesized() -> dict[str, Template]:
        return {each.stack_name: Template(each.template) for each in app.synth().stacks_recursively}

    return synthesized


def role(scope: Stack, id: str = "Role") -> Role:
    return Role(scope, id, assumed_by=ServicePrincipal("ecs-tasks.amazonaws.com"))


def function(scope: Stack, id: str = "Function", **options: Any) -> Function:
    code = Code.from_inline("def handler(event, context): ...")
    return Function(scope, id, runtime=Runtime.PYTHON_3_13, handler="index.handler", code=code, **options)


def test_stack_with_it_is_deployed_after_its_stacks(app: App, shop: Stack) -> None:
    jobs = Dueline(shop, "Jobs", **SETTINGS)
    role(shop)
    artifacts = {each.stack_name: each for each in app.synth().stacks}
    names = {f"{jobs.name}-core", f"{jobs.name}-queue-emails", f"{jobs.name}-queue-invoices"}
    assert artifacts.keys() == {"Shop", *names}
    assert {each.id for each in artifacts["Shop"].dependencies} >= names


def test_name_is_of_its_place_unless_given(app: App, shop: Stack) -> None:
    one, other = Dueline(shop, "Jobs"), Dueline(Stack(app, "Other"), "Jobs")
    assert one.name != other.name
    assert one.name.startswith("jobs-")
    assert Dueline(shop, "Named", name="mail").name == "mail"
    assert Dueline(shop, "123 Very-Long Name").name.startswith("verylong-")


def test_two_stages_have_deployments_of_their_own(app: App) -> None:
    shops = {stage: Stack(Stage(app, stage), "Shop") for stage in ("Test", "Live")}
    names = {stage: Dueline(shop, "Jobs", **SETTINGS).name for stage, shop in shops.items()}
    for shop in shops.values():
        role(shop)
    for stage, name in names.items():
        stacks = {each.stack_name for each in app.synth().get_nested_assembly(f"assembly-{stage}").stacks}
        assert f"{name}-core" in stacks
    assert len(set(names.values())) == 2


def test_grant_is_the_managed_policy(shop: Stack, templates: Callable[[], dict[str, Template]]) -> None:
    jobs = Dueline(shop, "Jobs", **SETTINGS)
    for kind in KINDS:
        getattr(jobs.queue("emails"), f"grant_{kind}")(role(shop, kind))
    of = templates()
    managed = of[f"{jobs.name}-queue-emails"].of_type("AWS::IAM::ManagedPolicy").values()
    reviewed = {each["ManagedPolicyName"]: statements(each) for each in managed}
    granted = {id: statements(each) for id, each in of["Shop"].of_type("AWS::IAM::Policy").items()}
    for kind, name in KINDS.items():
        [of_kind] = [each for id, each in granted.items() if id.lower().startswith(kind.replace("_", ""))]
        assert of_kind == reviewed[f"{jobs.name}_emails_{name}"]


def statements(policy: dict[str, Any]) -> str:
    # The API's id is a parameter of each stack.
    return re.sub(r'"\w*HttpApiId\w*"', '"HttpApiId"', json.dumps(policy["PolicyDocument"]["Statement"]))


def test_consumer_reads_each_priority(shop: Stack, templates: Callable[[], dict[str, Template]]) -> None:
    jobs = Dueline(shop, "Jobs", **SETTINGS)
    worker = function(shop, timeout=Duration.seconds(5))
    jobs.queue("emails").add_consumer(worker, batch_size=100, max_batching_window=Duration.seconds(0))
    template = templates()["Shop"]
    sources = template.of_type("AWS::Lambda::EventSourceMapping").values()
    name = jobs.name
    assert [template.spelled(each["EventSourceArn"]) for each in sources] == [
        f"sqs:{name}_emails",
        f"sqs:{name}_emails_p2",
    ]
    for each in sources:
        assert each["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert each["BatchSize"] == 100
    [granted] = template.of_type("AWS::IAM::Policy").values()
    allowed = iam.statements(template, granted["PolicyDocument"])
    assert iam.allows(allowed, "sqs:DeleteMessage", f"sqs:{name}_emails_p2")
    assert iam.allows(allowed, "ssm:GetParameter", f"ssm:parameter/dueline/{name}/queues/emails")
    assert not iam.allows(allowed, "sqs:ReceiveMessage", f"sqs:{name}_invoices")


def test_visibility_timeout_is_long_enough(shop: Stack) -> None:
    queue = Dueline(shop, "Jobs", **SETTINGS).queue("emails")

    def add(*, timeout: int | None, window: int) -> None:
        options = {} if timeout is None else {"timeout": Duration.seconds(timeout)}
        worker = function(shop, f"Worker{timeout}-{window}", **options)
        queue.add_consumer(worker, max_batching_window=Duration.seconds(window))

    add(timeout=5, window=0)
    add(timeout=None, window=12)
    for timeout, window, least in ((5, 1, 31), (6, 0, 36)):
        said = f"queues.emails.visibility_timeout is 30: for the function Shop/Worker.* which is {least}$"
        with pytest.raises(ConfigurationError, match=said):
            add(timeout=timeout, window=window)


def test_two_deployments_serve_one_role(shop: Stack, templates: Callable[[], dict[str, Template]]) -> None:
    one, other, service = Dueline(shop, "One", **SETTINGS), Dueline(shop, "Other", **SETTINGS), role(shop)
    for queue in ("emails", "invoices"):
        one.queue(queue).grant_producer(service)
        other.queue(queue).grant_producer(service)
    parameters = templates()["Shop"].content["Parameters"].values()
    read = [
        each["Default"] for each in parameters if "HttpApi" in each["Description"] or "HTTP API" in each["Description"]
    ]
    assert sorted(read) == sorted(f"/dueline/{each.name}/api-id" for each in (one, other))


def test_what_is_wrong_is_said(app: App, shop: Stack) -> None:
    with pytest.raises(ConfigurationError, match=r"^settings .*: 1\n  queues\.emails\.partitions is 0: "):
        Dueline(shop, "Wrong", queues={"emails": {"partitions": 0}})
    with pytest.raises(ConfigurationError, match=r"^name: settings are given, or a deployment, and not both$"):
        Dueline(shop, "Both", deployment=Deployment(), name="shop")
    jobs = Dueline(shop, "Jobs", **SETTINGS)
    with pytest.raises(ConfigurationError, match=r"^there is no queue 'email'; there are emails, invoices$"):
        jobs.queue("email")
    elsewhere = Stack(app, "Elsewhere", env=Environment(region="eu-west-1"))
    with pytest.raises(ConfigurationError, match=rf"^Elsewhere/Role is in .*/eu-west-1: .* deployment {jobs.name} is"):
        jobs.queue("emails").grant_consumer(role(elsewhere))
