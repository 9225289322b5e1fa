"""What the pages for platform teams say is so in the templates."""

import json
import re
from functools import partial

import aws_cdk
import pytest
import yaml

from tests import house
from tests.e2e.newcomer import code_of
from tests.template.iam import allows, policy, statements
from tests.template.synthesis import CONTEXT, ROOT, templates_in

COUNTED = {
    "SQS queues": "AWS::SQS::Queue",
    "DynamoDB tables": "AWS::DynamoDB::Table",
    "Lambda functions": "AWS::Lambda::Function",
    "Scheduler schedules": "AWS::Scheduler::Schedule",
    "CloudWatch alarms": "AWS::CloudWatch::Alarm",
    "IAM roles": "AWS::IAM::Role",
    "IAM managed policies": "AWS::IAM::ManagedPolicy",
    "SSM parameters": "AWS::SSM::Parameter",
    "log groups": "AWS::Logs::LogGroup",
}
NAMES = ("QueueName", "TableName", "BucketName", "Name")


def _page(name):
    return (ROOT / "docs" / name).read_text()


def test_quotas_page_counts_what_is_deployed(neighbours):
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+) \| ?(\d*) ?\|", _page("quotas.md"), re.MULTILINE)
    documented = {what: (int(core), int(queue), int(partition or 0)) for what, core, queue, partition in rows}
    # It has one partition, whose schedule is counted by partitions.
    queue, schedules = neighbours.queues["e"], "Scheduler schedules"
    assert {what: each for what, each in documented.items() if what in COUNTED} == {
        what: (
            len(neighbours.core.of_type(type)),
            len(queue.of_type(type)) - int(what == schedules),
            int(what == schedules),
        )
        for what, type in COUNTED.items()
    }
    assert documented["CloudFormation stacks"] == (1, 1, 0)


@pytest.mark.parametrize(("page", "stack"), [(0, "queue"), (1, "core")])
def test_import_map_has_all_that_is_retained(one_more, page, stack):
    """By its logical id, which must stay: under another one a deployment creates it again, and leaves what it holds.

    But for ticks' schedules, which CloudFormation cannot import, and the deployment makes again.
    """
    mapping = json.loads(re.findall(r"```json\n(.*?)```", _page("removing.md"), re.DOTALL)[page])
    template = one_more.core if stack == "core" else one_more.queues["ahead"]
    kept = {id: each for id, each in template.resources.items() if "Retain" in each.get("DeletionPolicy", "")}
    imported = {id: each for id, each in kept.items() if each["Type"] != "AWS::Scheduler::Schedule"}
    assert mapping.keys() == imported.keys()
    names = {"name": "dueline", "queue": "ahead", "account": "<AWS::AccountId>", "region": "<AWS::Region>"}
    for id, identifier in mapping.items():
        [named] = identifier.values()
        name = next(value for key, value in imported[id]["Properties"].items() if key in NAMES)
        assert named.format(**names).rpartition("/")[2] == template.spelled(name)


def test_cross_account_access_stays_in_account(neighbours):
    template = neighbours.queues["emails"]
    named = set(re.findall(r"dueline_emails_(\w+)", _page("accounts.md")))
    assert named == {"producer", "consumer"}
    for kind in named:
        for statement in policy(template, f"dueline_emails_{kind}"):
            # `spelled` shortens those whose partition, region and account are the stack's own.
            assert [each for each in statement["Resource"] if each.startswith("arn:")] == []
    producer = policy(template, "dueline_emails_producer")
    [api] = [id for id in template.content["Parameters"] if id == "HttpApiId"]
    request = f"execute-api:<{api}>/$default/POST/queues/{{}}/jobs"
    assert allows(producer, "execute-api:Invoke", request.format("emails"))
    assert not allows(producer, "execute-api:Invoke", request.format("emails-vip"))
    for statement in (each for template in neighbours.templates.values() for each in _resource_statements(template)):
        assert statement["Effect"] != "Allow" or set(statement["Principal"]) == {"Service"}, statement


def _resource_statements(template):
    kinds = ("AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy", "AWS::SNS::TopicPolicy")
    return [
        each for kind in kinds for one in template.of_type(kind).values() for each in one["PolicyDocument"]["Statement"]
    ]


# The pages about deploying

EXAMPLES = ROOT / "examples"


def run(code, folder):
    """Run an app's code, which synthesizes into a folder; return the templates by file name."""
    with pytest.MonkeyPatch.context() as patch:
        # The CDK's process, which is one for all tests, has its own environment.
        patch.setattr(aws_cdk, "App", partial(aws_cdk.App, outdir=str(folder), context=CONTEXT))
        exec(code, {})
    return templates_in(folder)


def test_own_app_deploys_its_stacks(tmp_path):
    [code] = code_of("docs/own-app.md", "python")
    named = set(re.findall(r"`(shop-[a-z-]+)`", _page("own-app.md")))
    assert run(code, tmp_path).keys() == {"Shop", *named}


API_OF_EMAILS = "lambda:function:shop-api:q-emails"
EMAILS = {"dynamodb:LeadingKeys": ["emails#0"]}
ACTIONS = {
    "lambda:InvokeFunction": API_OF_EMAILS,
    "dynamodb:PutItem": "dynamodb:table/shop-jobs",
    "sqs:ReceiveMessage": "sqs:shop_emails",
    "sqs:StartMessageMoveTask": "sqs:shop_emails_dlq",
}

IN_A_STACK = """
from aws_cdk import App, Duration, Stack
from aws_cdk.aws_iam import Role, ServicePrincipal
from aws_cdk.aws_lambda import Code, Function, Runtime
from dueline.cdk import Dueline
app = App()
self = Stack(app, "Shop")
tasks = ServicePrincipal("ecs-tasks.amazonaws.com")
service, worker = Role(self, "Service", assumed_by=tasks), Role(self, "Worker", assumed_by=tasks)
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A stack with what docs/lambda-consumer.md and docs/roles.md add to it."""
    folder, [grants] = tmp_path_factory.mktemp("shop"), code_of("docs/roles.md", "python")
    handler, _, consumer = code_of("docs/lambda-consumer.md", "python")
    (folder / "mailer").mkdir()
    (folder / "mailer" / "mailer.py").write_text(handler)
    consumer = consumer.replace('"mailer")', f'"{folder / "mailer"}")')
    return run(f"{IN_A_STACK}{consumer}{grants}app.synth()", folder / "cdk.out")["Shop"]


def test_roles_page_grants_what_it_says(shop):
    may = {}
    for each in shop.of_type("AWS::IAM::Policy").values():
        [role], granted = each["Roles"], statements(shop, each["PolicyDocument"])
        who = (role if isinstance(role, str) else role["Ref"])[:6]
        may[who] = [action for action, on in ACTIONS.items() if allows(granted, action, on, EMAILS)]
    assert may == {
        "Mailer": ["sqs:ReceiveMessage"],
        "Servic": ["lambda:InvokeFunction", "dynamodb:PutItem"],
        "Worker": ["sqs:ReceiveMessage"],
        "on-cal": ["sqs:StartMessageMoveTask"],
    }


def test_terraform_uploads_what_templates_name(tmp_path):
    hcl = (EXAMPLES / "terraform" / "main.tf").read_text()
    templates = run((EXAMPLES / "terraform" / "shop.py").read_text(), tmp_path)
    assert set(re.findall(r'"(shop-(?:core|queue-\w+))"', hcl)) == templates.keys()
    [bucket] = re.findall(r'bucket += "([\w-]+)"', hcl)
    uploaded, used = set(), []
    for name, template in templates.items():
        files = json.loads((tmp_path / f"{name}.assets.json").read_text())["files"]
        uploaded |= {f"{id}.zip" for id, file in files.items() if file["source"]["packaging"] == "zip"}
        used += [each["Code"] for each in template.of_type("AWS::Lambda::Function").values()]
        assert all((tmp_path / file["source"]["path"]).exists() for file in files.values())
        # `cdk bootstrap` makes it.
        assert "BootstrapVersion" not in template.content.get("Parameters", {})
    assert {each["S3Key"] for each in used} == uploaded
    assert {each["S3Bucket"] for each in used} == {bucket}


def test_workflow_assumes_the_role_of_the_page(tmp_path):
    template = run((EXAMPLES / "github_actions" / "deployer.py").read_text(), tmp_path)["Deployer"]
    job = yaml.safe_load((EXAMPLES / "github_actions" / "deploy.yml").read_text())["jobs"]["deploy"]
    [role] = template.of_type("AWS::IAM::Role").values()
    [trust] = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert trust["Condition"]["StringEquals"] == {
        f"{GITHUB}:aud": "sts.amazonaws.com",
        f"{GITHUB}:sub": f"repo:example/shop:environment:{job['environment']}",
    }
    [assumed] = [each["with"]["role-to-assume"] for each in job["steps"] if "role-to-assume" in each.get("with", {})]
    assert assumed.endswith(f":role/{role['RoleName']}")
    assert job["permissions"] == {"contents": "read", "id-token": "write"}


GITHUB = "token.actions.githubusercontent.com"


def test_pages_name_one_version_of_the_cdk():
    makefile = (ROOT / "Makefile").read_text()
    [version] = set(re.findall(r"aws-cdk@[\d.]+", makefile))
    for page in [*house.pages(), *EXAMPLES.rglob("*.yml")]:
        assert set(re.findall(r"aws-cdk@[\d.]+", page.read_text())) <= {version}, page


def test_pages_install_files_and_no_index():
    for page in house.pages():
        named = re.findall(r"pip install [^`\n]*", page.read_text())
        assert [each for each in named if re.search(r"""(^|[ '"])dueline(\[|[ '"]|$)""", each)] == [], page


# CloudFormation's names of services, where IAM has others.
SERVICES = {"apigatewayv2": "apigateway", "applicationautoscaling": "application-autoscaling"}


def test_deploy_policy_has_each_service(neighbours, thrifty):
    document = json.loads((EXAMPLES / "deploy_policy.json").read_text())
    allowed = {action.partition(":")[0] for each in document["Statement"] for action in each["Action"]}
    templates = [*neighbours.templates.values(), *thrifty.templates.values()]
    types = {each["Type"] for template in templates for each in template.resources.values()}
    services = {type.split("::")[1].lower() for type in types} - {"cdk"}
    assert {SERVICES.get(each, each) for each in services} <= allowed
