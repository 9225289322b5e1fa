"""A role that works with many queues has one policy for all of them."""

import pytest
from aws_cdk import App

from dueline.config.deployment import Deployment
from dueline.config.yaml_file import ConfigurationError
from infra.groups_stack import MOST_CHARACTERS, GroupsStack
from tests.template.iam import allows, policy
from tests.template.synthesis import Assembly, Template

JOBS = "dynamodb:table/dueline-jobs"


@pytest.fixture(scope="module")
def groups(neighbours: Assembly) -> Template:
    """The stack of the group `mail`, which is of the queues emails and e."""
    return neighbours.templates[neighbours.deployment.names.groups_stack]


def test_a_group_has_a_policy_of_each_kind_and_a_stack_that_comes_with_the_first_group(
    groups: Template, three: Assembly
) -> None:
    names = {each["ManagedPolicyName"] for each in groups.of_type("AWS::IAM::ManagedPolicy").values()}
    assert names == {f"dueline_group_mail_{kind}" for kind in ("producer", "consumer", "operator", "direct")}
    assert three.deployment.names.groups_stack not in three.templates


@pytest.mark.parametrize(("queue", "may"), [("emails", True), ("e", True), ("emails-vip", False), ("invoices", False)])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/jobs"), ("DELETE", "/jobs/id"), ("PUT", "/schedules/s"), ("POST", "/uploads")]
)
def test_producers_of_a_group_may_use_its_queues_and_no_other(
    groups: Template, queue: str, may: bool, method: str, path: str
) -> None:
    request = f"execute-api:<HttpApiId>/$default/{method}/queues/{queue}{path}"
    assert allows(policy(groups, "dueline_group_mail_producer"), "execute-api:Invoke", request) is may


@pytest.mark.parametrize("path", ["POST/queues/emails/pause", "POST/queues/emails/resume", "PUT/queues/emails/rate"])
def test_producers_of_a_group_may_not_control_its_queues_and_operators_may(groups: Template, path: str) -> None:
    request = f"execute-api:<HttpApiId>/$default/{path}"
    kinds = {kind: policy(groups, f"dueline_group_mail_{kind}") for kind in ("producer", "operator")}
    assert not allows(kinds["producer"], "execute-api:Invoke", request)
    assert allows(kinds["operator"], "execute-api:Invoke", request)


@pytest.mark.parametrize(("queue", "may"), [("emails", True), ("e", True), ("emails-vip", False)])
def test_workers_and_direct_producers_of_a_group_reach_the_rows_and_queues_of_its_queues_and_no_other(
    groups: Template, queue: str, may: bool
) -> None:
    consumer, direct = (policy(groups, f"dueline_group_mail_{kind}") for kind in ("consumer", "direct"))
    rows = {"dynamodb:LeadingKeys": [f"{queue}#0"]}
    assert allows(consumer, "sqs:ReceiveMessage", f"sqs:dueline_{queue}") is may
    assert allows(consumer, "dynamodb:GetItem", JOBS, rows) is may
    assert allows(direct, "dynamodb:PutItem", JOBS, rows) is may
    # emails alone is tracked.
    outcomes = {"dynamodb:LeadingKeys": [f"{queue}#outcome#0"]}
    assert allows(consumer, "dynamodb:PutItem", JOBS, outcomes) is (queue == "emails")


def test_a_group_of_more_queues_than_a_policy_holds_ends_the_synthesis_and_says_so() -> None:
    queues = [f"a-queue-with-a-longer-name-{number:02}" for number in range(16)]
    full = Deployment.model_validate({"queues": dict.fromkeys(queues), "groups": {"all": queues}})
    with pytest.raises(ConfigurationError, match=rf"^groups.all has too many queues: .* limit is {MOST_CHARACTERS:,}"):
        GroupsStack(App(), "groups", deployment=full)
