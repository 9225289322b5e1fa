"""What a stack left behind is found, and what an import is told of it; moto cannot import, the emulator does so."""

import json
from datetime import UTC, datetime
from functools import cache

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from typer.testing import CliRunner

from dueline.aws.adoption import Adopter
from dueline.cli import connect
from dueline.cli.app import app
from dueline.errors import InvalidJob

NOW = datetime(2026, 11, 23, tzinfo=UTC)
STACK = "dueline-queue-emails"
KEPT = {"DeletionPolicy": "RetainExceptOnCreate"}
JOIN = {"Fn::Join": ["", ["d-payloads-", {"Ref": "AWS::AccountId"}, "-", {"Ref": "AWS::Region"}]]}


def a_queue(name, **more):
    return {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": name, **more}, "DependsOn": ["Before"], **KEPT}


QUEUE = a_queue("d_emails", RedrivePolicy={"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}})
SCHEDULE = {"Type": "AWS::Scheduler::Schedule", "Properties": {"GroupName": "d-ticks", "Name": "emails.0"}}
TEMPLATE = {
    "Resources": {
        "Dead": a_queue("d_emails_dlq"),
        "Queue": QUEUE,
        "Partition0": SCHEDULE,
        "Before": {"Type": "Custom::X"},
    }
}


@pytest.fixture
def client():
    """Make clients of moto's, and one of CloudFormation's that has the stack that is `deployed`, if any."""
    with mock_aws():
        session = boto3.Session("AKIDEXAMPLE", "s", region_name="eu-west-1")
        cloudformation = session.client("cloudformation")

        def make(service):
            return cloudformation if service == "cloudformation" else session.client(service)

        make = cache(make)
        with Stubber(cloudformation) as answering:
            make.answering = answering
            yield make


def deployed(client, template=None):
    """Let the stack have a template, or let there be no such stack."""
    if template:
        told = {"StackName": STACK, "StackStatus": "UPDATE_COMPLETE", "CreationTime": NOW}
        client.answering.add_response("describe_stacks", {"Stacks": [told]})
        client.answering.add_response("get_template", {"TemplateBody": json.dumps(template)})
    else:
        client.answering.add_client_error("describe_stacks", "ValidationError", "Stack does not exist")


def leave(client, *queues):
    """Leave queues and a schedule behind, as a stack does that is deleted."""
    for name in queues:
        client("sqs").create_queue(QueueName=name)
    client("scheduler").create_schedule_group(Name="d-ticks")
    target = {"Arn": "arn:aws:lambda:eu-west-1:123456789012:function:f", "RoleArn": "arn:aws:iam::1:role/r"}
    rest = {"ScheduleExpression": "rate(1 minute)", "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": target}
    client("scheduler").create_schedule(Name="emails.0", GroupName="d-ticks", **rest)


def test_queues_that_are_there_are_imported_by_their_urls_and_schedules_are_made_anew(client):
    deployed(client)
    leave(client, "d_emails", "d_emails_dlq")
    found = Adopter(client=client).plan(STACK, TEMPLATE)
    assert [each["LogicalResourceId"] for each in found.imports] == ["Dead", "Queue"]
    assert found.imports[1]["ResourceIdentifier"]["QueueUrl"].endswith("/d_emails")
    assert found.schedules == [("d-ticks", "emails.0")]
    # An import makes nothing else, and so depends on nothing else.
    kept = {id: {k: v for k, v in TEMPLATE["Resources"][id].items() if k != "DependsOn"} for id in ("Dead", "Queue")}
    assert found.template == {"Resources": kept}


def test_where_nothing_was_left_there_is_nothing_to_take_over(client):
    deployed(client)
    found = Adopter(client=client).plan(STACK, TEMPLATE)
    assert (found.imports, found.schedules) == ([], [])


def test_a_stack_whose_creation_failed_because_a_queue_was_there_is_deleted_before_that_is_imported(client):
    told = {"StackName": STACK, "StackStatus": "ROLLBACK_COMPLETE", "CreationTime": NOW}
    client.answering.add_response("describe_stacks", {"Stacks": [told]})
    leave(client, "d_emails", "d_emails_dlq")
    adopter = Adopter(client=client)
    found = adopter.plan(STACK, TEMPLATE)
    assert [each["LogicalResourceId"] for each in found.imports] == ["Dead", "Queue"]
    client.answering.add_response("delete_stack", {}, {"StackName": STACK})
    client.answering.add_client_error("describe_stacks", "ValidationError", "Stack does not exist")
    carried_out(client)
    adopter.carry_out(found)
    client.answering.assert_no_pending_responses()


@pytest.mark.parametrize("status", ["DELETE_FAILED", "ROLLBACK_FAILED"])
def test_a_stack_that_can_only_be_deleted_is_told_and_not_taken_for_one_that_has_all(client, status):
    told = {"StackName": STACK, "StackStatus": status, "CreationTime": NOW}
    client.answering.add_response("describe_stacks", {"Stacks": [told]})
    leave(client, "d_emails", "d_emails_dlq")
    with pytest.raises(InvalidJob, match=f"stack {STACK} is {status}, so it can only be deleted"):
        Adopter(client=client).plan(STACK, TEMPLATE)


@pytest.mark.parametrize("status", ["DELETE_COMPLETE", "REVIEW_IN_PROGRESS"])
def test_a_stack_that_is_gone_or_was_never_begun_has_nothing_whatever_its_template_says(client, status):
    told = {"StackName": STACK, "StackStatus": status, "CreationTime": NOW}
    client.answering.add_response("describe_stacks", {"Stacks": [told]})
    leave(client, "d_emails", "d_emails_dlq")
    found = Adopter(client=client).plan(STACK, TEMPLATE)
    assert [each["LogicalResourceId"] for each in found.imports] == ["Dead", "Queue"]
    assert not found.was_never_made


def test_each_import_has_a_change_set_of_its_own_since_one_that_failed_keeps_its_name(client):
    leave(client, "d_emails", "d_emails_dlq")
    names, adopter = set(), Adopter(client=client)
    client("cloudformation").meta.events.register(
        "before-parameter-build.cloudformation.CreateChangeSet", lambda params, **_: names.add(params["ChangeSetName"])
    )
    for _ in range(2):
        deployed(client)
        found = adopter.plan(STACK, {"Resources": {"Dead": TEMPLATE["Resources"]["Dead"]}})
        carried_out(client)
        adopter.carry_out(found)
    assert len(names) == 2


def carried_out(client):
    """Let CloudFormation import."""
    client.answering.add_response("create_change_set", {})
    client.answering.add_response("describe_change_set", {"Status": "CREATE_COMPLETE"})
    client.answering.add_response("execute_change_set", {})
    told = {"StackName": STACK, "StackStatus": "IMPORT_COMPLETE", "CreationTime": NOW}
    client.answering.add_response("describe_stacks", {"Stacks": [told]})


def test_what_the_stack_has_already_is_left_alone_and_the_rest_comes_beside_it(client):
    leave(client, "d_emails", "d_emails_dlq")
    there = {"Resources": {"Dead": a_queue("d_other_dlq")}, "Parameters": {}}
    deployed(client, there)
    found = Adopter(client=client).plan(STACK, TEMPLATE)
    assert [each["LogicalResourceId"] for each in found.imports] == ["Queue"]
    assert (set(found.template["Resources"]), found.template["Parameters"]) == ({"Dead", "Queue"}, {})


def test_a_queue_whose_dead_letter_queue_is_gone_cannot_be_imported(client):
    deployed(client)
    leave(client, "d_emails")
    with pytest.raises(InvalidJob, match="Queue cannot be imported: it refers to Dead, which is not there"):
        Adopter(client=client).plan(STACK, TEMPLATE)


def test_tables_the_bucket_and_the_group_of_schedules_are_imported_by_their_names(client):
    deployed(client)
    leave(client)
    keys = {"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}], "BillingMode": "PAY_PER_REQUEST"}
    keys |= {"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}]}
    client("dynamodb").create_table(TableName="d-jobs", **keys)
    bucket = "d-payloads-123456789012-eu-west-1"
    client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    core = {
        "Jobs": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "d-jobs"}, **KEPT},
        "Once": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "d-once"}, **KEPT},
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": JOIN}, **KEPT},
        "Group": {"Type": "AWS::Scheduler::ScheduleGroup", "Properties": {"Name": "d-ticks"}, **KEPT},
    }
    found = Adopter(client=client).plan("d-core", {"Resources": core})
    assert {each["LogicalResourceId"]: each["ResourceIdentifier"] for each in found.imports} == {
        "Jobs": {"TableName": "d-jobs"},
        "Bucket": {"BucketName": bucket},
        "Group": {"Name": "d-ticks"},
    }


def test_a_template_that_no_request_takes_is_told_with_what_does_it(client):
    leave(client, "d_emails", "d_emails_dlq")
    there = {"Resources": {"Dead": a_queue("d_other_dlq")}, "Description": "x" * 51_000}
    deployed(client, there)
    with pytest.raises(InvalidJob, match=r'--resource-mapping` with a file that holds \{"Queue": \{"QueueUrl": "http'):
        Adopter(client=client).plan(STACK, TEMPLATE)


@pytest.mark.parametrize("was_made", [True, False])
def test_the_command_tells_first_and_changes_nothing(client, monkeypatch, tmp_path, was_made):
    if was_made:
        deployed(client)
    else:
        told = {"StackName": STACK, "StackStatus": "ROLLBACK_COMPLETE", "CreationTime": NOW}
        client.answering.add_response("describe_stacks", {"Stacks": [told]})
    leave(client, "d_emails", "d_emails_dlq")
    monkeypatch.setattr(connect, "adopter", lambda _: Adopter(client=client))
    file = tmp_path / f"{STACK}.template.json"
    file.write_text(json.dumps(TEMPLATE))
    told = CliRunner().invoke(app, ["adopt", str(file)])
    assert told.exit_code == 0, told.output
    *before, first, _, schedule, last = told.output.splitlines()
    assert before == [] if was_made else before[0].startswith(f"to delete: stack {STACK}, which failed to be made")
    assert first.startswith("to import: Dead, https://")
    assert schedule == "to delete: schedule d-ticks/emails.0, which the deployment makes anew"
    assert last == "nothing was changed: --apply does so"
    assert client("scheduler").get_schedule(GroupName="d-ticks", Name="emails.0")
    wrong = CliRunner().invoke(app, ["adopt", str(tmp_path / "queues.yaml")])
    assert wrong.exit_code == 2
