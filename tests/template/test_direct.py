"""Direct producers write the rows of one queue's jobs, and nothing that controls their way or is another queue's."""

import json
import re
from collections.abc import Iterable, Iterator
from fnmatch import translate
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dueline.config.names import Names
from dueline.model.job import MAX_PARTITIONS, QUEUE_NAME
from dueline.model.rows import IDEMPOTENCY_PARTITIONS
from tests.template.iam import allows, listed, policy
from tests.template.synthesis import Assembly

JOBS, STATE, ONCE = (f"dynamodb:table/dueline-{name}" for name in ("jobs", "state", "once"))
KEYS = "dynamodb:LeadingKeys"
READS = ("BatchGetItem", "GetItem", "Query", "ConditionCheckItem")
WRITES = ("BatchWriteItem", "PutItem", "UpdateItem", "DeleteItem")
POLICIES = ("producer", "consumer", "operator", "direct")
BUCKET = "s3:dueline-payloads-<AWS::AccountId>-<AWS::Region>"
_AT_ONCE = ("settings", "schema")
QUEUES = st.from_regex(QUEUE_NAME, fullmatch=True)


@pytest.fixture(scope="module")
def direct(neighbours: Assembly) -> list[dict[str, Any]]:
    return policy(neighbours.queues["emails"], "dueline_emails_direct")


def may(
    statements: list[dict[str, Any]], actions: tuple[str, ...], table: str, keys: list[list[str]]
) -> list[tuple[str, list[str]]]:
    """Return which actions on rows a policy allows, each with the partition keys that it names."""
    asked = product(actions, keys)
    return [(do, named) for do, named in asked if allows(statements, f"dynamodb:{do}", table, {KEYS: named})]


def test_a_direct_producer_may_write_and_read_the_rows_of_its_queues_jobs(direct: list[dict[str, Any]]) -> None:
    own = [["emails#0"], ["emails#17", "emails#999"], ["emails#keys0", "emails#keys31"]]
    assert may(direct, WRITES[:3], JOBS, own) == list(product(WRITES[:3], own))
    read = [*own, ["emails#0", "emails#outcome#999"]]
    assert may(direct, READS, JOBS, read) == list(product(READS, read))


def test_a_direct_producer_may_read_fences_and_whether_its_queue_is_paused_and_check_fences_in_a_transaction(
    direct: list[dict[str, Any]],
) -> None:
    own, actions = [["emails#0", "emails#999"], ["emails#control"]], ("BatchGetItem", "GetItem", "ConditionCheckItem")
    assert may(direct, actions, STATE, own) == list(product(actions, own))


def test_a_direct_producer_may_write_no_fence_no_pause_no_rate_no_outcome_and_no_note(
    direct: list[dict[str, Any]],
) -> None:
    rest = [["emails#control"], ["emails#rate"], ["emails#runs"], ["emails#outcome#0"], ["emails#keys"], ["emails"]]
    assert may(direct, WRITES, JOBS, [*rest, ["emails#0", "emails#control"], []]) == []
    assert may(direct, WRITES, STATE, [*rest, ["emails#0"], []]) == []
    assert may(direct, (*READS, *WRITES), ONCE, [["emails#0f"]]) == []


def test_a_direct_producer_may_not_go_round_the_rows_keys(direct: list[dict[str, Any]]) -> None:
    around = ("Scan", "PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete", "DeleteItem", *READS)
    for table in (JOBS, STATE):
        assert may(direct, around[:6], table, [["emails#0"]]) == []
        assert may(direct, around, table, [[]]) == []


def test_a_direct_producer_may_send_to_its_own_levels_alone_and_not_to_the_inbound_queue(
    direct: list[dict[str, Any]],
) -> None:
    def sends(queue: str) -> bool:
        return allows(direct, "sqs:SendMessage", f"sqs:{queue}")

    assert sends("dueline_emails")
    assert sends("dueline_emails_p2")
    others = ("dueline_emails-vip", "dueline_e", "dueline_emails_p3", "dueline_emails_dlq")
    assert not any(map(sends, (*others, "dueline-inbound", "dueline-dispatch-dlq", "dueline-inbound-dlq")))
    assert allows(direct, "sqs:GetQueueAttributes", "sqs:dueline_emails_dlq")


def test_a_direct_producer_may_find_the_deployment_and_its_own_queue_and_keep_its_own_payloads(
    direct: list[dict[str, Any]],
) -> None:
    for name, found in (("settings", True), ("api-url", True), ("queues/emails", True), ("queues/emails-vip", False)):
        assert allows(direct, "ssm:GetParameter", f"ssm:parameter/dueline/dueline/{name}") is found
    # Both are asked for at once.
    assert all(allows(direct, "ssm:GetParameters", f"ssm:parameter/dueline/dueline/{name}") for name in _AT_ONCE)
    for action in ("s3:GetObject", "s3:PutObject"):
        assert allows(direct, action, f"{BUCKET}/0016/emails/a-uid")
        assert not allows(direct, action, f"{BUCKET}/uploads/emails/a-uid")
    assert not [each for each in direct if "execute-api:Invoke" in listed(each["Action"])]


@pytest.fixture(scope="module")
def shapes(neighbours: Assembly) -> str:
    """What is in all policies of the queue emails, as one text, in which `emails` is its name wherever it stands."""
    return _policies(neighbours, "emails")


def test_policies_differ_in_the_queues_name_levels_and_tracking_alone(neighbours: Assembly, shapes: str) -> None:
    longest = "emails" * 10
    of_longest = json.loads(_policies(neighbours, longest).replace(longest, "emails"))
    asked = json.loads(shapes)
    for each in (asked, of_longest):
        for statement in each:
            statement["Resource"] = [arn for arn in statement["Resource"] if "_p" not in arn]
    assert asked == of_longest


@settings(max_examples=50)
@given(queue=QUEUES, other=QUEUES, more=QUEUES)
@example(queue="emails", other="emails-vip", more="e")
@example(queue="emails-vip", other="emails", more="-")
@example(queue="q" * 60, other="q", more="q" * 59)
def test_no_pattern_of_a_queues_policies_fits_what_is_another_queues(
    shapes: str, queue: str, other: str, more: str
) -> None:
    statements = json.loads(shapes.replace("emails", queue))
    keys, resources = _any_of(_leading_keys(statements)), _any_of(_resources(statements))
    assert keys.match(f"{queue}#0")
    assert resources.match(f"sqs:dueline_{queue}")
    for name in {other, more, (queue + more)[:60], (more + queue)[:60], queue[:-1] or more} - {queue}:
        assert not [key for key in _partition_keys(name) if keys.match(key)]
        assert not [each for each in _belongings(name) if resources.match(each)]


def _policies(assembly: Assembly, queue: str) -> str:
    names = [f"dueline_{queue}_{kind}" for kind in POLICIES]
    return json.dumps([each for name in names for each in policy(assembly.queues[queue], name)])


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return what a text fits that fits any of the patterns, in one: thousands are tried."""
    return re.compile("|".join(map(translate, sorted(set(patterns)))))


def _leading_keys(statements: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the patterns of partition keys; every statement about a table has some."""
    for statement in statements:
        if any(resource.startswith("dynamodb:") for resource in statement["Resource"]):
            condition = statement["Condition"]
            assert condition["Null"] == {KEYS: "false"}
            yield from condition["ForAllValues:StringLike"][KEYS]


def _resources(statements: list[dict[str, Any]]) -> set[str]:
    """Return the resources but the tables, an API's without its id."""
    found = {resource for statement in statements for resource in statement["Resource"]}
    return {each.rpartition("/$default/")[2] for each in found if not each.startswith("dynamodb:")}


def _partition_keys(queue: str) -> list[str]:
    numbers = (0, 9, 10, 99, 100, MAX_PARTITIONS)
    keys = [f"keys{number}" for number in (0, 9, 10, IDEMPOTENCY_PARTITIONS - 1)]
    outcomes = [f"outcome#{number}" for number in numbers]
    return [f"{queue}#{rest}" for rest in (*map(str, numbers), *keys, *outcomes, "control", "rate", "runs", "0f")]


def _belongings(queue: str) -> list[str]:
    names = Names("dueline")
    queues = [names.queue(queue), names.queue(queue, 2), names.queue(queue, 5), names.queue_dlq(queue)]
    paths = ("jobs", "jobs/an-id", "uploads", "cancellations", "pause", "rate")
    return [
        *(f"sqs:{name}" for name in queues),
        *(f"{BUCKET}/{days}/{queue}/a-uid" for days in ("0016", "4096")),
        *(f"{method}/queues/{queue}/{path}" for method, path in product(("GET", "POST", "PUT", "DELETE"), paths)),
        f"GET/queues/{queue}",
        f"ssm:parameter{names.queue_parameter(queue)}",
    ]
