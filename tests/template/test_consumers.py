"""Workers and operators have what one queue needs, and nothing of another's."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

from tests.template.iam import allows, policy
from tests.template.synthesis import Assembly

TABLE = "dynamodb:table/dueline-jobs"
STATE = "dynamodb:table/dueline-state"
READS = "dynamodb:BatchGetItem", "dynamodb:GetItem"
KEYS = "dynamodb:LeadingKeys"


def allowed(
    statements: list[dict[str, Any]], actions: Iterable[str], resource: str, keys: Iterable[list[str]]
) -> list[tuple[str, list[str]]]:
    """Return which of some actions on rows a policy allows, each with the partition keys that it names."""
    asked = product(actions, keys)
    return [(action, named) for action, named in asked if allows(statements, action, resource, {KEYS: named})]


@pytest.fixture
def consumer(neighbours: Assembly) -> list[dict[str, Any]]:
    return policy(neighbours.queues["emails"], "dueline_emails_consumer")


@pytest.fixture
def operator(neighbours: Assembly) -> list[dict[str, Any]]:
    return policy(neighbours.queues["emails"], "dueline_emails_operator")


def test_a_consumer_may_read_its_queues_rows(consumer: list[dict[str, Any]]) -> None:
    own = [
        ["emails#0"],
        ["emails#0", "emails#17"],
        ["emails#keys3"],
        ["emails#0", "emails#outcome#0"],
    ]
    assert allowed(consumer, READS, TABLE, own) == list(product(READS, own))


def test_a_consumer_may_ask_whether_its_own_queue_is_paused_and_no_other_and_read_no_fence(
    consumer: list[dict[str, Any]],
) -> None:
    asked = [["emails#control"], ["emails-vip#control"], ["emails#control", "emails#0"], ["emails#0"], []]
    assert allowed(consumer, READS, STATE, asked) == list(product(READS, asked[:1]))


def test_a_consumer_may_read_no_other_row_and_not_without_naming_a_key(consumer: list[dict[str, Any]]) -> None:
    others = [
        ["emails-vip#0"],
        ["emails#0", "emails-vip#0"],
        ["emails"],
        ["invoices#0"],
        ["#emails#0"],
        ["Emails#0"],
        [],
    ]
    assert allowed(consumer, READS, TABLE, others) == []


def test_a_consumer_may_do_nothing_else_with_the_table(consumer: list[dict[str, Any]]) -> None:
    actions = [
        *("dynamodb:Scan", "dynamodb:PartiQLSelect", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"),
        *("dynamodb:DeleteItem", "dynamodb:BatchWriteItem", "dynamodb:ExportTableToPointInTime"),
    ]
    assert allowed(consumer, actions, TABLE, [["emails#0"], ["emails#control"], []]) == []
    assert allowed(consumer, actions, STATE, [["emails#0"], ["emails#control"], []]) == []


def test_a_consumer_of_a_queue_that_tracks_may_note_outcomes(consumer: list[dict[str, Any]]) -> None:
    for partition in (0, 17):
        assert allows(consumer, "dynamodb:PutItem", TABLE, {KEYS: [f"emails#outcome#{partition}"]})


def test_a_consumer_may_write_no_other_row(consumer: list[dict[str, Any]]) -> None:
    others = [
        *("emails#17", "emails#keys3", "emails#control", "emails#outcome", "emails#outcomes#0"),
        *("emails-vip#outcome#0", "invoices#outcome#0", "x#emails#outcome#0", "Emails#outcome#0"),
    ]
    asked = [[key] for key in others] + [["emails#outcome#0", key] for key in others]
    assert allowed(consumer, ["dynamodb:PutItem"], TABLE, asked) == []


def test_a_consumer_may_do_nothing_to_outcomes_but_put_them(consumer: list[dict[str, Any]]) -> None:
    actions = ["dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem", "dynamodb:Query"]
    assert allowed(consumer, actions, TABLE, [["emails#outcome#0"]]) == []


def test_a_consumer_of_a_queue_that_does_not_track_may_write_nothing(neighbours: Assembly) -> None:
    consumer = policy(neighbours.queues["emails-vip"], "dueline_emails-vip_consumer")
    assert allows(consumer, "dynamodb:GetItem", TABLE, {KEYS: ["emails-vip#0"]})
    assert not allows(consumer, "dynamodb:PutItem", TABLE, {KEYS: ["emails-vip#outcome#0"]})


@pytest.mark.parametrize(
    "action",
    ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"],
)
def test_a_consumer_may_work_off_its_own_queue_alone(consumer: list[dict[str, Any]], action: str) -> None:
    assert allows(consumer, action, "sqs:dueline_emails")
    assert allows(consumer, action, "sqs:dueline_emails_p2")
    others = ("dueline_emails-vip", "dueline_emails-vip_p2", "dueline_emails_p3", "dueline_emails_dlq")
    for other in (*others, "dueline-inbound", "dueline-dispatch-dlq"):
        assert not allows(consumer, action, f"sqs:{other}")


def test_a_consumer_may_take_slots_of_its_queues_rate(consumer: list[dict[str, Any]]) -> None:
    assert allows(consumer, "dynamodb:UpdateItem", STATE, {KEYS: ["emails#rate"]})


def test_a_consumer_may_take_locks_of_its_queues_schedules_and_change_no_schedule(
    consumer: list[dict[str, Any]],
) -> None:
    assert allows(consumer, "dynamodb:UpdateItem", STATE, {KEYS: ["emails#runs"]})
    others = [["emails-vip#runs"], ["emails#runs", "emails#schedules"], ["emails#schedules"]]
    assert allowed(consumer, ["dynamodb:UpdateItem"], STATE, others) == []
    actions = ["dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:BatchWriteItem"]
    assert allowed(consumer, actions, STATE, [["emails#runs"], *others]) == []


def test_a_consumer_may_neither_pause_nor_resume_nor_update_any_other_row(consumer: list[dict[str, Any]]) -> None:
    others = [
        *(["emails#control"], ["emails#0"], ["emails#keys3"], ["emails#rate2"], ["emails"], []),
        *(["emails-vip#rate"], ["emails#rate", "emails#control"]),
    ]
    assert allowed(consumer, ["dynamodb:UpdateItem"], STATE, others) == []
    assert allowed(consumer, ["dynamodb:UpdateItem"], TABLE, [["emails#rate"], *others]) == []


def test_a_consumer_may_do_nothing_else_with_the_slots(consumer: list[dict[str, Any]]) -> None:
    actions = ["dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem", "dynamodb:Query"]
    assert allowed(consumer, actions, STATE, [["emails#rate"]]) == []


def test_a_consumer_may_find_its_own_queue_alone(consumer: list[dict[str, Any]]) -> None:
    assert allows(consumer, "ssm:GetParameter", "ssm:parameter/dueline/dueline/queues/emails")
    assert not allows(consumer, "ssm:GetParameter", "ssm:parameter/dueline/dueline/queues/emails-vip")
    assert not allows(consumer, "ssm:GetParameter", "ssm:parameter/dueline/dueline/api-id")


BUCKET = "s3:dueline-payloads-<AWS::AccountId>-<AWS::Region>"


@pytest.mark.parametrize("days", ["0016", "4096"])
def test_a_consumer_may_read_its_own_queues_payloads(consumer: list[dict[str, Any]], days: str) -> None:
    assert allows(consumer, "s3:GetObject", f"{BUCKET}/{days}/emails/a-uid")


@pytest.mark.parametrize(
    "key", ["0016/emails-vip/a-uid", "uploads/emails/a-uid", "016/emails/a-uid", "emails/a-uid", "0016/x/emails/a-uid"]
)
def test_a_consumer_may_read_nothing_else_of_the_bucket(consumer: list[dict[str, Any]], key: str) -> None:
    # IAM's `?` is any one character, a slash too, but no more than one.
    assert not allows(consumer, "s3:GetObject", f"{BUCKET}/{key}")


@pytest.mark.parametrize("action", ["s3:PutObject", "s3:DeleteObject", "s3:ListBucket"])
def test_a_consumer_may_do_nothing_else_with_payloads(consumer: list[dict[str, Any]], action: str) -> None:
    for resource in (BUCKET, f"{BUCKET}/0016/emails/a-uid"):
        assert not allows(consumer, action, resource)


ONCE = "dynamodb:table/dueline-once"
NOTES = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem")


@pytest.mark.parametrize("action", NOTES)
def test_a_consumer_may_note_which_of_its_queues_jobs_had_their_effect(
    consumer: list[dict[str, Any]], action: str
) -> None:
    assert allows(consumer, action, ONCE, {KEYS: ["emails#0f"]})
    for keys in (["emails-vip#0f"], ["emails#0f", "emails-vip#0f"], ["emails"], ["Emails#0f"], []):
        assert not allows(consumer, action, ONCE, {KEYS: keys})


def test_a_consumer_may_do_nothing_else_with_the_notes(consumer: list[dict[str, Any]]) -> None:
    names = ("Scan", "Query", "PartiQLSelect", "BatchGetItem", "BatchWriteItem", "DeleteTable")
    assert allowed(consumer, [f"dynamodb:{name}" for name in names], ONCE, [["emails#0f"], []]) == []


def test_a_consumer_may_put_jobs_into_its_queues_dead_letter_queue_and_send_nowhere_else(
    consumer: list[dict[str, Any]],
) -> None:
    assert allows(consumer, "sqs:SendMessage", "sqs:dueline_emails_dlq")
    others = ("dueline_emails", "dueline_emails_p2", "dueline_emails-vip_dlq", "dueline_emails-vip", "dueline-inbound")
    for queue in (*others, "dueline-dispatch-dlq"):
        assert not allows(consumer, "sqs:SendMessage", f"sqs:{queue}")


def test_an_operator_may_redrive_its_queues_dead_letters(operator: list[dict[str, Any]]) -> None:
    received = ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes")
    for action in ("StartMessageMoveTask", *received):
        assert allows(operator, f"sqs:{action}", "sqs:dueline_emails_dlq")
        assert not allows(operator, f"sqs:{action}", "sqs:dueline_emails-vip_dlq")
    for level in ("dueline_emails", "dueline_emails_p2"):
        assert allows(operator, "sqs:SendMessage", f"sqs:{level}")
        assert allows(operator, "sqs:GetQueueAttributes", f"sqs:{level}")


@pytest.mark.parametrize(
    "queue", ["dueline-inbound", "dueline_emails-vip", "dueline_emails-vip_p2", "dueline-dispatch-dlq"]
)
def test_an_operator_of_one_queue_may_send_to_no_other(operator: list[dict[str, Any]], queue: str) -> None:
    assert not allows(operator, "sqs:SendMessage", f"sqs:{queue}")


def test_an_operator_may_neither_purge_nor_delete_a_queue(operator: list[dict[str, Any]]) -> None:
    for queue in ("dueline_emails", "dueline_emails_p2", "dueline_emails_dlq"):
        for action in ("sqs:PurgeQueue", "sqs:DeleteQueue", "sqs:SetQueueAttributes"):
            assert not allows(operator, action, f"sqs:{queue}")


INVOKE = "execute-api:Invoke"
CONTROLS = ("POST/queues/{}/pause", "POST/queues/{}/resume", "PUT/queues/{}/rate")


def may_ask(statements: list[dict[str, Any]], asked: str) -> bool:
    """Tell whether a policy allows a request, whatever the API's id."""
    return any(
        allows([{**statement, "Resource": [_without_api(each) for each in statement["Resource"]]}], INVOKE, asked)
        for statement in statements
    )


def _without_api(resource: str) -> str:
    return resource.partition("/$default/")[2] if resource.startswith("execute-api:") else resource


def test_an_operator_may_pause_resume_and_limit_its_queue_and_ask_how_it_is(operator: list[dict[str, Any]]) -> None:
    for path in (*CONTROLS, "GET/queues/{}"):
        assert may_ask(operator, path.format("emails"))
        assert not may_ask(operator, path.format("emails-vip"))
    assert may_ask(operator, "GET/queues")


@pytest.mark.parametrize(
    "asked",
    [
        *("POST/queues/emails/jobs", "GET/queues/emails/jobs", "DELETE/queues/emails/jobs/an-id"),
        *("POST/queues/emails/cancellations", "GET/queues/emails/pause", "POST/queues/emails/rate"),
    ],
)
def test_an_operator_may_ask_the_api_for_nothing_else(operator: list[dict[str, Any]], asked: str) -> None:
    assert not may_ask(operator, asked)


def test_an_operator_may_find_the_api_and_its_own_queue_alone(operator: list[dict[str, Any]]) -> None:
    for name, may in (("api-url", True), ("queues/emails", True), ("queues/emails-vip", False), ("settings", False)):
        assert allows(operator, "ssm:GetParameter", f"ssm:parameter/dueline/dueline/{name}") is may


def test_an_operator_may_not_touch_the_table(operator: list[dict[str, Any]]) -> None:
    for action in ("dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:BatchWriteItem", "dynamodb:GetItem"):
        for table in (TABLE, STATE):
            assert not allows(operator, action, table, {KEYS: ["emails#control"]})


@pytest.mark.parametrize("path", CONTROLS)
def test_neither_a_producer_nor_a_consumer_may_pause_resume_or_limit_a_queue(
    neighbours: Assembly, consumer: list[dict[str, Any]], path: str
) -> None:
    producer = policy(neighbours.queues["emails"], "dueline_emails_producer")
    assert may_ask(producer, "POST/queues/emails/jobs")
    for queue in ("emails", "emails-vip"):
        assert not may_ask(producer, path.format(queue))
        assert not may_ask(consumer, path.format(queue))


def test_the_descriptions_of_policies_stay_as_they_were(neighbours: Assembly) -> None:
    """A change would replace the policy, whose name is taken: the deployment would fail."""
    policies = neighbours.queues["emails"].of_type("AWS::IAM::ManagedPolicy").values()
    assert {each["Description"] for each in policies} == {
        "Schedule, look up and cancel jobs of queue emails.",
        "Find queue emails, work off its messages, and ask which of its jobs were cancelled.",
        "See how queue emails is, and redrive its dead-letter queue.",
        "Schedule, look up and cancel jobs of queue emails without HTTP.",
    }
