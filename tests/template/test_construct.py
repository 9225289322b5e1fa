"""Dueline in an app of one's own: where its stacks are, what they are called, and what other stacks use of them."""

import json
import re
from dataclasses import dataclass

import pytest
from aws_cdk import App, Duration, Environment, Stack, Stage
from aws_cdk.aws_iam import Role, ServicePrincipal
from aws_cdk.aws_lambda import Code, Function, Runtime
from aws_cdk.cx_api import CloudAssembly

from dueline.cdk import Dueline
from dueline.config import ConfigurationError
from dueline.config.deployment import Deployment
from tests.template import iam
from tests.template.synthesis import CONTEXT, Template

SETTINGS = {"queues": {"emails": {"priorities": 2, "partitions": 2}, "invoices": None}}
KINDS = {"producer": "producer", "direct_producer": "direct", "consumer": "consumer", "operator": "operator"}


@dataclass(frozen=True)
class Shop:
    """An app with two deployments in a stack, and with one in a stage; and all templates by stack."""

    stack: Stack
    jobs: Dueline
    others: Dueline
    in_stage: Dueline
    assembly: CloudAssembly

    @property
    def templates(self):
        return {each.stack_name: Template(each.template) for each in self.assembly.stacks_recursively}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    app = App(context=CONTEXT, analytics_reporting=False, outdir=str(tmp_path_factory.mktemp("shop")))
    stack = Stack(app, "Shop")
    jobs = Dueline(stack, "Jobs", **SETTINGS)
    others = Dueline(stack, "123 Very-Long Name", queues={"emails": None})
    for kind in KINDS:
        getattr(jobs.queue("emails"), f"grant_{kind}")(role(stack, kind))
    worker = function(Stack(app, "Working"), timeout=Duration.seconds(5))
    jobs.queue("emails").add_consumer(worker, batch_size=100, max_batching_window=Duration.seconds(0))
    service = role(Stack(app, "Both"))
    for deployment in (jobs, others):
        deployment.queue("emails").grant_producer(service)
    within = Stack(Stage(app, "Test"), "Shop")
    in_stage = Dueline(within, "Jobs")
    role(within)
    return Shop(stack, jobs, others, in_stage, app.synth())


def role(scope, id="Role"):
    return Role(scope, id, assumed_by=ServicePrincipal("ecs-tasks.amazonaws.com"))


def function(scope, id="Function", **options):
    code = Code.from_inline("def handler(event, context): ...")
    return Function(scope, id, runtime=Runtime.PYTHON_3_13, handler="index.handler", code=code, **options)


def test_stack_with_it_is_deployed_after_its_stacks(shop):
    artifacts = {each.stack_name: each for each in shop.assembly.stacks}
    names = {f"{each.name}-{stack}" for each in (shop.jobs, shop.others) for stack in ("core", "queue-emails")}
    names.add(f"{shop.jobs.name}-queue-invoices")
    assert artifacts.keys() == {"Shop", "Working", "Both", *names}
    assert {each.id for each in artifacts["Shop"].dependencies} >= names


def test_name_is_of_its_place(shop):
    assert shop.jobs.name.startswith("jobs-")
    assert shop.others.name.startswith("verylong-")
    assert shop.in_stage.name != shop.jobs.name
    in_stage = shop.assembly.get_nested_assembly("assembly-Test")
    assert f"{shop.in_stage.name}-core" in {each.stack_name for each in in_stage.stacks}


def test_grant_is_the_managed_policy(shop):
    managed = shop.templates[f"{shop.jobs.name}-queue-emails"].of_type("AWS::IAM::ManagedPolicy").values()
    reviewed = {each["ManagedPolicyName"]: statements(each) for each in managed}
    granted = {id: statements(each) for id, each in shop.templates["Shop"].of_type("AWS::IAM::Policy").items()}
    for kind, name in KINDS.items():
        [of_kind] = [each for id, each in granted.items() if id.lower().startswith(kind.replace("_", ""))]
        assert of_kind == reviewed[f"{shop.jobs.name}_emails_{name}"]


def statements(policy):
    # The API's id is a parameter of each stack.
    return re.sub(r'"\w*HttpApiId\w*"', '"HttpApiId"', json.dumps(policy["PolicyDocument"]["Statement"]))


def test_consumer_reads_each_priority(shop):
    template, name = shop.templates["Working"], shop.jobs.name
    sources = template.of_type("AWS::Lambda::EventSourceMapping").values()
    queues = [template.spelled(each["EventSourceArn"]) for each in sources]
    assert queues == [f"sqs:{name}_emails", f"sqs:{name}_emails_p2"]
    for each in sources:
        assert each["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert each["BatchSize"] == 100
    [granted] = template.of_type("AWS::IAM::Policy").values()
    allowed = iam.statements(template, granted["PolicyDocument"])
    assert iam.allows(allowed, "sqs:DeleteMessage", f"sqs:{name}_emails_p2")
    assert iam.allows(allowed, "ssm:GetParameter", f"ssm:parameter/dueline/{name}/queues/emails")
    assert not iam.allows(allowed, "sqs:ReceiveMessage", f"sqs:{name}_invoices")


def test_visibility_timeout_is_long_enough(shop):
    queue = shop.jobs.queue("emails")

    def add(*, timeout, window):
        options = {} if timeout is None else {"timeout": Duration.seconds(timeout)}
        worker = function(shop.stack, f"Worker{timeout}-{window}", **options)
        queue.add_consumer(worker, max_batching_window=Duration.seconds(window))

    add(timeout=5, window=0)
    add(timeout=None, window=12)
    for timeout, window, least in ((5, 1, 31), (6, 0, 36)):
        said = f"queues.emails.visibility_timeout is 30: for the function Shop/Worker.* which is {least}$"
        with pytest.raises(ConfigurationError, match=said):
            add(timeout=timeout, window=window)


def test_two_deployments_serve_one_role(shop):
    parameters = shop.templates["Both"].content["Parameters"].values()
    read = [
        each["Default"] for each in parameters if "HttpApi" in each["Description"] or "HTTP API" in each["Description"]
    ]
    assert sorted(read) == sorted(f"/dueline/{each.name}/api-id" for each in (shop.jobs, shop.others))


def test_what_is_wrong_is_said(shop):
    with pytest.raises(ConfigurationError, match=r"^settings .*: 1\n  queues\.emails\.partitions is 0: "):
        Dueline(shop.stack, "Wrong", queues={"emails": {"partitions": 0}})
    with pytest.raises(ConfigurationError, match=r"^name: settings are given, or a deployment, and not both$"):
        Dueline(shop.stack, "Both", deployment=Deployment(), name="shop")
    with pytest.raises(ConfigurationError, match=r"^there is no queue 'email'; there are emails, invoices$"):
        shop.jobs.queue("email")
    elsewhere, name = Stack(App(), "Elsewhere", env=Environment(region="eu-west-1")), shop.jobs.name
    with pytest.raises(ConfigurationError, match=rf"^Elsewhere/Role is in .*/eu-west-1: .* deployment {name} is"):
        shop.jobs.queue("emails").grant_consumer(role(elsewhere))
