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


def test_the_command_tells_first_and_changes_nothing(client, monkeypatch, tmp_path):
    deployed(client)
    leave(client, "d_emails", "d_emails_dlq")
    monkeypatch.setattr(connect, "adopter", lambda _: Adopter(client=client))
    file = tmp_path / f"{STACK}.template.json"
    file.write_text(json.dumps(TEMPLATE))
    told = CliRunner().invoke(app, ["adopt", str(file)])
    assert told.exit_code == 0, told.output
    first, *_, schedule, last = told.output.splitlines()
    assert first.startswith("to import: Dead, https://")
    assert schedule == "to delete: schedule d-ticks/emails.0, which the deployment makes anew"
    assert last == "nothing was changed: --apply does so"
    assert client("scheduler").get_schedule(GroupName="d-ticks", Name="emails.0")
    wrong = CliRunner().invoke(app, ["adopt", str(tmp_path / "queues.yaml")])
    assert wrong.exit_code == 2
