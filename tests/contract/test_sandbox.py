"""What `dueline verify` asks of AWS, held to AWS's protocol: messages, roles, rows, and nothing left behind."""

import json
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from dueline.aws import clients
from dueline.aws.sandbox import holders
from dueline.aws.sandbox.dead_letters import DeadLetters
from dueline.aws.sandbox.expiring import Expiring
from dueline.aws.sandbox.holders import Holders
from dueline.aws.sandbox.inbox import failing, receiving
from dueline.aws.sandbox.levels import AwsLevels
from dueline.aws.sandbox.removal import Removal
from dueline.config.names import STRAND_GUARD, Names
from dueline.model.message import ID
from dueline.model.queue_settings import PLANNER
from dueline.verify.sandbox import LEVELS, PRIORITIES, QUEUES, Call
from tests.waiting import wait_until

NAMES = Names("dueline-verify")
SECOND = NAMES.queue(LEVELS, PRIORITIES)
LONGEST = timedelta(seconds=20)
URL = "https://sqs.us-east-1.amazonaws.com/123456789012/"


@pytest.fixture
def session(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        yield boto3.Session(region_name="us-east-1")


@pytest.fixture
def sqs(session):
    client = clients.sqs(session, longest=LONGEST)
    own = (NAMES.inbound_dlq, NAMES.dispatch_dlq, NAMES.tick_dlq)
    dead = (NAMES.queue_dlq(queue) for queue in (*QUEUES, PLANNER.name))
    for name in (*own, *dead, *map(NAMES.queue, QUEUES), SECOND):
        client.create_queue(QueueName=name)
    return client


def waiting(sqs, name):
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"]
    told = sqs.get_queue_attributes(QueueUrl=URL + name, AttributeNames=names)["Attributes"]
    return sum(map(int, told.values()))


def test_a_stack_that_the_jobs_of_a_killed_run_keep_is_removed_with_them(session, monkeypatch):
    cloudformation, of_service = session.client("cloudformation"), clients.of_service

    def made(service, *args, **given):
        return cloudformation if service == "cloudformation" else of_service(service, *args, **given)

    monkeypatch.setattr(clients, "of_service", made)
    session.client("scheduler").create_schedule_group(Name=NAMES.schedule_group)
    about = {"LogicalResourceId": "StrandAfter1", "ResourceType": STRAND_GUARD, "Timestamp": datetime.now(UTC)}
    first, *others = (NAMES.queue_stack(queue) for queue in QUEUES)
    with Stubber(cloudformation) as answering:
        answering.add_response("delete_stack", {}, {"StackName": first})
        stack = {"StackName": first, "StackStatus": "DELETE_FAILED", "CreationTime": datetime.now(UTC)}
        answering.add_response("describe_stacks", {"Stacks": [stack]})
        resources = {"StackResources": [{**about, "ResourceStatus": "DELETE_FAILED"}]}
        answering.add_response("describe_stack_resources", resources)
        answering.add_response("delete_stack", {}, {"StackName": first, "RetainResources": ["StrandAfter1"]})
        answering.add_client_error("describe_stacks", "ValidationError", "Stack does not exist")
        for each in (*others, NAMES.core_stack):
            answering.add_response("delete_stack", {}, {"StackName": each})
            answering.add_client_error("describe_stacks", "ValidationError", "Stack does not exist")
        answering.add_response("describe_stacks", {"Stacks": []})
        assert Removal(NAMES, session, tell=lambda _: None).run() == []
        answering.assert_no_pending_responses()


def test_an_inbox_has_each_message_with_sqss_own_times_and_deletes_it(sqs):
    url, begun = URL + NAMES.queue("plain"), datetime.now(UTC)
    attributes = {ID: {"DataType": "String", "StringValue": "plain.0.d.1.x"}}
    sqs.send_message(QueueUrl=url, MessageBody="of Dueline", MessageAttributes=attributes)
    sqs.send_message(QueueUrl=url, MessageBody="of nobody")
    with receiving(sqs, url, lanes=2) as landed:
        assert wait_until(lambda: len(landed) == 2)
    assert {each.id: each.body for each in landed} == {"plain.0.d.1.x": "of Dueline", "": "of nobody"}
    assert all(begun - timedelta(seconds=1) <= each.sent <= each.visible for each in landed)
    assert waiting(sqs, NAMES.queue("plain")) == 0


def test_every_dead_letter_queue_has_a_message_while_they_ring_and_none_after(session, sqs):
    dead = DeadLetters(NAMES, sqs, url=lambda name: URL + name)
    names = [NAMES.tick_dlq, NAMES.dispatch_dlq, NAMES.inbound_dlq, *map(NAMES.queue_dlq, (*QUEUES, PLANNER.name))]
    with dead.ringing():
        assert [waiting(sqs, name) for name in names] == [1] * len(names)
    assert [waiting(sqs, name) for name in names] == [0] * len(names)


def test_purging_takes_what_is_delayed_too(session, sqs):
    names = (NAMES.queue("flood"), SECOND)
    for name in names:
        sqs.send_message(QueueUrl=URL + name, MessageBody="later", DelaySeconds=900)
    DeadLetters(NAMES, sqs, url=lambda name: URL + name).purge_levels()
    assert [waiting(sqs, name) for name in names] == [0, 0]


def test_a_level_that_was_deleted_is_made_again_as_the_first_one_is(sqs):
    policy = {
        "Statement": [{"Effect": "Deny", "Resource": f"arn:aws:sqs:us-east-1:123456789012:{NAMES.queue(LEVELS)}"}]
    }
    given = {"MessageRetentionPeriod": "120", "VisibilityTimeout": "7", "Policy": json.dumps(policy)}
    sqs.set_queue_attributes(QueueUrl=URL + NAMES.queue(LEVELS), Attributes=given)
    levels = AwsLevels(NAMES, sqs, url=lambda name: URL + name)
    with levels.gone(LEVELS, PRIORITIES), pytest.raises(sqs.exceptions.QueueDoesNotExist):
        waiting(sqs, SECOND)
    levels.mend()
    made = sqs.get_queue_attributes(QueueUrl=URL + SECOND, AttributeNames=["All"])["Attributes"]
    assert {name: made[name] for name in ("MessageRetentionPeriod", "VisibilityTimeout")} == {
        "MessageRetentionPeriod": "120",
        "VisibilityTimeout": "7",
    }
    assert json.loads(made["Policy"])["Statement"][0]["Resource"].endswith(f":{SECOND}")


def test_what_fails_is_received_again_and_again_and_never_deleted(sqs):
    url, received = URL + NAMES.queue("plain"), []
    sqs.meta.events.register(
        "after-call.sqs.ReceiveMessage", lambda parsed, **_: received.extend(parsed.get("Messages", []))
    )
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "43200"})
    sqs.send_message(QueueUrl=url, MessageBody="poison")
    with failing(sqs, url):
        assert wait_until(lambda: len(received) > 3)
    assert {each["Body"] for each in received} == {"poison"}


def test_a_holder_has_one_policy_and_is_gone_whatever_happens(session, sqs, monkeypatch):
    monkeypatch.setattr(holders, "_KNOWN_AFTER_SECONDS", 0)
    iam = session.client("iam")
    nothing = json.dumps({"Version": "2012-10-17", "Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}})
    iam.create_policy(PolicyName=NAMES.consumer_policy("plain"), PolicyDocument=nothing)
    made = Holders(NAMES, session, url="https://localhost", queue_url=lambda name: URL + name)

    def interrupted():
        with made.holding("consumer", "plain") as may:
            (role,) = iam.list_roles()["Roles"]
            (attached,) = iam.list_attached_role_policies(RoleName=role["RoleName"])["AttachedPolicies"]
            assert attached["PolicyName"] == NAMES.consumer_policy("plain")
            # moto lets everyone do everything.
            assert may(Call(action="receive", on="plain"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert iam.list_roles()["Roles"] == []
    made.remove("consumer")


def test_a_row_that_was_left_is_told_until_it_is_forgotten(session):
    dynamodb = session.client("dynamodb")
    keys = {"pk": "HASH", "sk": "RANGE"}
    dynamodb.create_table(
        TableName=NAMES.table,
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
        BillingMode="PAY_PER_REQUEST",
    )
    rows, until = Expiring(dynamodb, NAMES.table), datetime(2026, 11, 23, tzinfo=UTC)
    rows.leave("one", until=until)
    (left,) = rows.left()
    assert (left.name, left.until, left.is_there) == ("one", until, True)
    dynamodb.delete_item(TableName=NAMES.table, Key={"pk": {"S": "!verify#ttl"}, "sk": {"S": "row#one"}})
    assert [each.is_there for each in rows.left()] == [False]
    rows.forget("one")
    assert rows.left() == []
