"""Each role may do what it must and nothing else."""

import json
from typing import Any

import pytest

from tests.template.iam import allows
from tests.template.synthesis import Assembly, Template

INLINE_LIMIT = 10_240
MANAGED_LIMIT = 6_144
SEND = ("sqs:SendMessage",)
JOBS, STATE = "dynamodb:table/dueline-jobs", "dynamodb:table/dueline-state"
PAYLOADS = "s3:dueline-payloads-<AWS::AccountId>-<AWS::Region>"
PUBLISHED = "ssm:parameter/dueline/dueline/queues/*"
LOG = ("logs:CreateLogStream", "logs:PutLogEvents")


def _grants(template: Template, statements: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return who may do what to which as pairs of an action and a resource."""
    assert all(statement["Effect"] == "Allow" for statement in statements)
    return {
        (action, template.spelled(resource))
        for statement in statements
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _statements(role: dict[str, Any]) -> list[dict[str, Any]]:
    assert "ManagedPolicyArns" not in role
    return [statement for policy in role["Policies"] for statement in policy["PolicyDocument"]["Statement"]]


def _role_of(template: Template, function: str) -> dict[str, Any]:
    functions = template.of_type("AWS::Lambda::Function").values()
    [id] = [one["Role"]["Fn::GetAtt"][0] for one in functions if one["FunctionName"] == function]
    role: dict[str, Any] = template.resources[id]["Properties"]
    return role


def _granted(template: Template, function: str) -> set[tuple[str, str]]:
    return _grants(template, _statements(_role_of(template, function)))


def _each(actions: tuple[str, ...], *resources: str) -> set[tuple[str, str]]:
    return {(action, resource) for action in actions for resource in resources}


def test_ingest_may_write_rows_move_jobs_and_ask_for_moved_ones_read_fences_and_send(three: Assembly) -> None:
    writes = ("dynamodb:BatchWriteItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
    assert _granted(three.core, "dueline-ingest") == (
        _each((*writes, "dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem"), JOBS)
        | _each(("dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem"), STATE)
        | _each(SEND, "sqs:dueline_*", "sqs:dueline-dispatch-dlq", "sqs:dueline-inbound-dlq")
        | _each(("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"), "sqs:dueline-inbound")
        | _each(("ssm:GetParameter",), PUBLISHED)
        | _each(LOG, "logs:/aws/lambda/dueline-ingest")
    )


def test_a_tick_may_move_its_cursor_and_states_of_before_read_jobs_ask_for_moved_ones_and_send(three: Assembly) -> None:
    assert _granted(three.core, "dueline-tick") == (
        _each(("dynamodb:Query", "dynamodb:BatchGetItem", "dynamodb:BatchWriteItem", "dynamodb:UpdateItem"), JOBS)
        | _each(("dynamodb:UpdateItem", "dynamodb:BatchGetItem", "dynamodb:PutItem"), STATE)
        | _each(SEND, "sqs:dueline_*", "sqs:dueline-dispatch-dlq")
        | _each(("sqs:SendMessage",), "sqs:dueline-tick-dlq")
        | _each(LOG, "logs:/aws/lambda/dueline-tick")
    )


def test_the_guard_of_ttl_may_read_switch_ttl_and_nothing_else(three: Assembly) -> None:
    switches = ("dynamodb:DescribeTimeToLive", "dynamodb:UpdateTimeToLive")
    assert _granted(three.core, "dueline-ttl") == (
        _each(("dynamodb:BatchGetItem", "dynamodb:Query", *switches), JOBS)
        | _each(("dynamodb:BatchGetItem",), STATE)
        | {("scheduler:ListSchedules", "*")}
        | _each(LOG, "logs:/aws/lambda/dueline-ttl")
    )


def test_the_guard_of_deployments_may_read_and_nothing_else(three: Assembly) -> None:
    own = "<AWS::Region>:<AWS::AccountId>"
    assert _granted(three.core, "dueline-strand") == (
        _each(("dynamodb:BatchGetItem", "dynamodb:Query"), JOBS)
        | _each(("dynamodb:BatchGetItem", "dynamodb:Query"), STATE)
        | {("sqs:GetQueueAttributes", "sqs:dueline_*")}
        | {("cloudformation:DescribeStacks", f"arn:<AWS::Partition>:cloudformation:{own}:stack/dueline-queue-*/*")}
        | _each(LOG, "logs:/aws/lambda/dueline-strand")
    )


def test_the_planner_may_write_jobs_of_all_queues_read_fences_send_what_is_late_and_work_off_its_queue(
    three: Assembly,
) -> None:
    writes = ("dynamodb:BatchWriteItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
    receive = ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes")
    assert _granted(three.core, "dueline-planner") == (
        _each((*writes, "dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem"), JOBS)
        | _each(("dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem"), STATE)
        | _each(("dynamodb:Query", "dynamodb:UpdateItem"), STATE)
        | _each(SEND, "sqs:dueline_*", "sqs:dueline-dispatch-dlq")
        | _each(tuple(f"sqs:{action}" for action in receive), "sqs:dueline_dueline-planner")
        | _each(LOG, "logs:/aws/lambda/dueline-planner")
    )


def test_nobody_but_the_core_functions_may_send_planning_jobs_whatever_their_policies_allow(three: Assembly) -> None:
    policies = three.core.of_type("AWS::SQS::QueuePolicy").values()
    denied = [
        each
        for policy in policies
        for each in policy["PolicyDocument"]["Statement"]
        if each["Action"] == "sqs:SendMessage"
    ]
    [refused] = denied
    senders = ("ingest", "tick", "api", "planner")
    roles = [
        three.core.resources[one["Fn::GetAtt"][0]] for one in refused["Condition"]["ArnNotEquals"]["aws:PrincipalArn"]
    ]
    assert (refused["Effect"], refused["Principal"]) == ("Deny", {"AWS": "*"})
    assert three.core.spelled(refused["Resource"]) == "sqs:dueline_dueline-planner"
    assert [role["Properties"] for role in roles] == [_role_of(three.core, f"dueline-{name}") for name in senders]


def test_the_api_may_write_jobs_cancel_look_up_list_send_park_keep_payloads_control_and_ask_how_full_queues_are(
    three: Assembly,
) -> None:
    jobs = ("dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:BatchGetItem", "dynamodb:Query")
    assert _granted(three.core, "dueline-api") == (
        _each((*jobs, "dynamodb:BatchWriteItem", "dynamodb:ConditionCheckItem"), JOBS)
        | _each(("dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:BatchWriteItem"), STATE)
        | _each(("dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"), STATE)
        | _each(SEND, "sqs:dueline_*", "sqs:dueline-inbound", "sqs:dueline-dispatch-dlq")
        | _each(("sqs:GetQueueAttributes",), "sqs:dueline_*")
        | _each(("ssm:GetParameter", "ssm:GetParameters"), PUBLISHED)
        | _each(("s3:GetObject", "s3:PutObject"), f"{PAYLOADS}/????/*", f"{PAYLOADS}/uploads/*")
        | _each(("s3:ListBucket",), PAYLOADS)
        | _each(LOG, "logs:/aws/lambda/dueline-api")
    )


@pytest.mark.parametrize(
    ("keys", "may"),
    [
        (["emails#control"], True),
        (["emails#0"], False),
        (["emails#control", "emails#0"], False),
        (["emails#rate"], False),
        ([], False),
    ],
)
def test_of_what_is_updated_the_api_may_put_and_delete_those_rows_alone_that_control_a_queue(
    three: Assembly, keys: list[str], may: bool
) -> None:
    spelled = _spelled(three.core, "dueline-api")
    assert allows(spelled, "dynamodb:BatchWriteItem", STATE, {"dynamodb:LeadingKeys": keys}) is may


@pytest.mark.parametrize("function", ["dueline-api", "dueline-planner"])
@pytest.mark.parametrize(
    ("keys", "may"),
    [
        (["emails#schedules"], True),
        (["emails#0"], False),
        (["emails#schedules", "emails#0"], False),
        (["emails#control"], False),
        ([], False),
    ],
)
def test_who_changes_or_plans_schedules_may_update_no_other_row_of_what_is_updated(
    three: Assembly, function: str, keys: list[str], may: bool
) -> None:
    spelled = _spelled(three.core, function)
    assert allows(spelled, "dynamodb:UpdateItem", STATE, {"dynamodb:LeadingKeys": keys}) is may


def _spelled(template: Template, function: str) -> list[dict[str, Any]]:
    return [
        {**each, "Resource": [template.spelled(one) for one in _listed(each["Resource"])]}
        for each in _statements(_role_of(template, function))
    ]


def test_tracing_adds_its_two_actions_alone(traced: Assembly) -> None:
    plain = {action for action, _ in _granted(traced.core, "quiet-api")}
    assert {action for action in plain if action.startswith("xray:")} == {
        "xray:PutTraceSegments",
        "xray:PutTelemetryRecords",
    }


def test_the_scheduler_may_invoke_the_tick_and_the_planner_and_tell_of_failures_for_our_schedules_alone(
    three: Assembly,
) -> None:
    roles = three.core.of_type("AWS::IAM::Role").values()
    [role] = [role for role in roles if role.get("RoleName") == "dueline-scheduler"]
    assert _grants(three.core, _statements(role)) == {
        ("lambda:InvokeFunction", "lambda:function:dueline-tick:live"),
        ("lambda:InvokeFunction", "lambda:function:dueline-planner:live"),
        # Schedules of before there was an alias outlive their queue.
        ("lambda:InvokeFunction", "lambda:function:dueline-tick"),
        ("sqs:SendMessage", "sqs:dueline-tick-dlq"),
    }
    [trust] = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    said = trust["Condition"]["StringEquals"]
    assert (set(trust["Condition"]), set(said)) == ({"StringEquals"}, {"aws:SourceAccount", "aws:SourceArn"})
    assert said["aws:SourceAccount"] == {"Ref": "AWS::AccountId"}
    assert {three.core.spelled(each) for each in said["aws:SourceArn"]} == {
        "scheduler:schedule-group/dueline-ticks",
        "scheduler:schedule-group/dueline-watches",
    }


def test_a_producer_may_use_its_own_queues_paths_find_the_api_and_ask_which_queues_there_are_and_nothing_else(
    three: Assembly,
) -> None:
    for queue, template in three.queues.items():
        policies = template.of_type("AWS::IAM::ManagedPolicy").values()
        [policy] = [each for each in policies if each["ManagedPolicyName"].endswith("_producer")]
        api = template.content["Parameters"]["HttpApiId"]
        assert (api["Type"], api["Default"]) == ("AWS::SSM::Parameter::Value<String>", "/dueline/dueline/api-id")
        assert policy["ManagedPolicyName"] == f"dueline_{queue}_producer"
        assert len(policies) == 4
        assert _grants(template, policy["PolicyDocument"]["Statement"]) == {
            ("execute-api:Invoke", f"execute-api:<HttpApiId>/$default/{path}")
            for path in (
                f"POST/queues/{queue}/jobs",
                f"POST/queues/{queue}/uploads",
                f"POST/queues/{queue}/cancellations",
                f"GET/queues/{queue}/jobs",
                f"GET/queues/{queue}/jobs/*",
                f"PATCH/queues/{queue}/jobs/*",
                f"DELETE/queues/{queue}/jobs/*",
                f"GET/queues/{queue}/schedules",
                f"GET/queues/{queue}/schedules/*",
                f"PUT/queues/{queue}/schedules/*",
                f"POST/queues/{queue}/schedules/*",
                f"DELETE/queues/{queue}/schedules/*",
                f"GET/queues/{queue}",
                "GET/queues",
                "POST/schedules/preview",
            )
        } | {("ssm:GetParameter", "ssm:parameter/dueline/dueline/api-url")}


def test_codedeploy_may_move_the_apis_alias_and_look_at_alarms_and_nothing_else(three: Assembly) -> None:
    [group] = three.core.of_type("AWS::CodeDeploy::DeploymentGroup").values()
    role = three.core.resources[group["ServiceRoleArn"]["Fn::GetAtt"][0]]["Properties"]
    move = ("lambda:GetAlias", "lambda:UpdateAlias", "lambda:GetProvisionedConcurrencyConfig")
    assert _grants(three.core, _statements(role)) == (
        _each(move, "lambda:function:dueline-api", "lambda:function:dueline-api:live")
        | {("cloudwatch:DescribeAlarms", "*")}
    )
    [trust] = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "codedeploy.amazonaws.com"}


def test_there_are_no_roles_or_policies_but_these(three: Assembly) -> None:
    assert len(three.core.of_type("AWS::IAM::Role")) == 8
    for template in three.templates.values():
        assert not template.of_type("AWS::IAM::Policy")
    for template in three.queues.values():
        assert not template.of_type("AWS::IAM::Role")


def test_policies_fit_whatever_the_number_of_queues_and_the_length_of_their_names(
    three: Assembly, one_more: Assembly, neighbours: Assembly
) -> None:
    for role in three.core.of_type("AWS::IAM::Role").values():
        assert _size([policy["PolicyDocument"] for policy in role["Policies"]]) < INLINE_LIMIT
    assert [one["Policies"] for one in three.core.of_type("AWS::IAM::Role").values()] == [
        one["Policies"] for one in one_more.core.of_type("AWS::IAM::Role").values()
    ]
    for template in neighbours.queues.values():
        for policy in template.of_type("AWS::IAM::ManagedPolicy").values():
            assert _size(policy["PolicyDocument"]) < MANAGED_LIMIT


def _size(policy: Any) -> int:
    """Return a policy's size, with intrinsics in place of what becomes of them, which is no longer."""
    return len(json.dumps(policy))
