"""Least privilege: each role and each managed policy may do what it must, of one queue, and nothing else.

What each is granted is in the golden templates; here is what none may ever be.
"""

import json
import re
from fnmatch import translate
from itertools import product

import pytest
from aws_cdk import App
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dueline.cdk.stacks import MOST_CHARACTERS, GroupsStack
from dueline.config import ConfigurationError
from dueline.config.deployment import Deployment
from dueline.config.names import Names
from dueline.config.routes import Caller
from dueline.core.job import MAX_PARTITIONS, QUEUE_NAME
from dueline.core.rows import IDEMPOTENCY_PARTITIONS
from tests.template.iam import allows, as_list, policy, statements

INLINE_LIMIT = 10_240
MANAGED_LIMIT = 6_144
JOBS, STATE, ONCE = (f"dynamodb:table/dueline-{name}" for name in ("jobs", "state", "once"))
KEYS = "dynamodb:LeadingKeys"
READS = ("BatchGetItem", "GetItem", "Query")
WRITES = ("BatchWriteItem", "PutItem", "UpdateItem", "DeleteItem")
POLICIES = ("producer", "consumer", "operator", "direct")
BUCKET = "s3:dueline-payloads-<AWS::AccountId>-<AWS::Region>"
QUEUES = st.from_regex(QUEUE_NAME, fullmatch=True)
CONTROL, TICK, NOTHING = ["emails#control"], ["emails#0"], []
# A policy, actions on rows of a table that it must not allow, and the partition keys that they name.
FORBIDDEN = [
    ("consumer", READS, JOBS, [["emails-vip#0"], ["emails#0", "emails-vip#0"], ["emails"], ["Emails#0"], NOTHING]),
    ("consumer", READS, STATE, [["emails-vip#control"], [*CONTROL, *TICK], TICK, NOTHING]),
    ("consumer", ("Query", *WRITES), JOBS, [TICK, CONTROL, ["emails#keys3"], ["emails#outcome#0", *TICK], NOTHING]),
    ("consumer", WRITES, STATE, [TICK, CONTROL, ["emails#schedules"], ["emails-vip#rate"], ["emails#rate", *CONTROL]]),
    ("consumer", ("PutItem", "DeleteItem", "BatchWriteItem"), STATE, [["emails#runs"]]),
    ("operator", (*READS, *WRITES), JOBS, [TICK, CONTROL, NOTHING]),
    ("operator", (*READS, *WRITES), STATE, [TICK, CONTROL, NOTHING]),
    ("direct", WRITES, JOBS, [CONTROL, ["emails#rate"], ["emails#outcome#0"], ["emails"], [*TICK, *CONTROL], NOTHING]),
    ("direct", WRITES, STATE, [CONTROL, ["emails#rate"], ["emails#runs"], TICK, NOTHING]),
    ("direct", (*READS, *WRITES), ONCE, [["emails#0f"]]),
]


@pytest.mark.parametrize(("kind", "actions", "table", "keys"), FORBIDDEN)
def test_policy_reaches_no_forbidden_rows(neighbours, kind, actions, table, keys):
    granted = policy(neighbours.queues["emails"], f"dueline_emails_{kind}")
    allowed = [
        (action, each)
        for action, each in product(actions, keys)
        if allows(granted, f"dynamodb:{action}", table, {KEYS: each})
    ]
    assert allowed == []


def test_tracking_consumers_alone_write_outcomes(neighbours):
    for queue, tracks in (("emails", True), ("emails-vip", False)):
        consumer = policy(neighbours.queues[queue], f"dueline_{queue}_consumer")
        assert allows(consumer, "dynamodb:PutItem", JOBS, {KEYS: [f"{queue}#outcome#0"]}) is tracks


def _roles(template):
    for role in template.of_type("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role
        yield [each for one in role.get("Policies", []) for each in statements(template, one["PolicyDocument"])]


def test_nobody_may_scan_or_use_partiql(neighbours):
    """LeadingKeys holds nobody back where no key is named; and no grant is of all actions of a service."""
    for template in neighbours.templates.values():
        policies = {**template.of_type("AWS::IAM::ManagedPolicy"), **template.of_type("AWS::IAM::Policy")}
        granted = [each for one in policies.values() for each in one["PolicyDocument"]["Statement"]]
        granted += [each for role in _roles(template) for each in role]
        actions = {action for statement in granted for action in as_list(statement["Action"])}
        assert [each for each in actions if re.search(r"\*|:Scan|PartiQL", each)] == []
        assert {statement["Effect"] for statement in granted} <= {"Allow"}


def test_policies_fit(neighbours, strict):
    """IAM's limits, with intrinsics in place of what becomes of them: no longer.

    A new queue changes none of the core's: tests/template/test_stacks.py.
    """
    for template in (*neighbours.templates.values(), *strict.templates.values()):
        for role in template.of_type("AWS::IAM::Role").values():
            documents = [each["PolicyDocument"] for each in role.get("Policies", [])]
            assert len(json.dumps(documents)) < INLINE_LIMIT
        for managed in template.of_type("AWS::IAM::ManagedPolicy").values():
            assert len(json.dumps(managed["PolicyDocument"])) < MANAGED_LIMIT


@pytest.fixture(scope="module")
def of_emails(neighbours):
    """All policies of the queue emails as one text, in which `emails` is its name wherever it stands."""
    return _policies(neighbours, "emails")


def test_queue_policies_differ_in_names_only(neighbours, of_emails):
    longest = "emails" * 10
    of_longest = json.loads(_policies(neighbours, longest).replace(longest, "emails"))
    of_shortest = json.loads(of_emails)
    for each in (of_shortest, of_longest):
        for statement in each:
            statement["Resource"] = [arn for arn in statement["Resource"] if "_p" not in arn]
    assert of_shortest == of_longest


@settings(max_examples=15)
@given(queue=QUEUES, other=QUEUES, more=QUEUES)
@example(queue="emails", other="emails-vip", more="e")
@example(queue="emails-vip", other="emails", more="-")
@example(queue="q" * 60, other="q", more="q" * 59)
def test_no_pattern_matches_another_queue(of_emails, queue, other, more):
    granted = json.loads(of_emails.replace("emails", queue))
    keys, resources = _any_of(_leading_keys(granted)), _any_of(_resources(granted))
    assert keys.match(f"{queue}#0")
    assert resources.match(f"sqs:dueline_{queue}")
    for name in {other, more, (queue + more)[:60], (more + queue)[:60], queue[:-1] or more} - {queue}:
        assert not [key for key in _partition_keys(name) if keys.match(key)]
        assert not [each for each in _belongings(name) if resources.match(each)]


def _policies(assembly, queue):
    names = [f"dueline_{queue}_{kind}" for kind in POLICIES]
    return json.dumps([each for name in names for each in policy(assembly.queues[queue], name)])


def _any_of(patterns):
    """Return what a text fits that fits any of the patterns, in one: thousands are tried."""
    return re.compile("|".join(map(translate, sorted(set(patterns)))))


def _leading_keys(granted):
    """Yield the patterns of partition keys; every statement about a table has some."""
    for statement in granted:
        if any(resource.startswith("dynamodb:") for resource in statement["Resource"]):
            condition = statement["Condition"]
            assert condition["Null"] == {KEYS: "false"}
            yield from condition["ForAllValues:StringLike"][KEYS]


def _resources(granted):
    """Return the resources but the tables, an API's without its id."""
    resources = {resource for statement in granted for resource in statement["Resource"]}
    return {each.rpartition("/$default/")[2] for each in resources if not each.startswith("dynamodb:")}


def _partition_keys(queue):
    numbers = (0, 9, 10, 99, 100, MAX_PARTITIONS)
    keys = [f"keys{number}" for number in (0, 9, 10, IDEMPOTENCY_PARTITIONS - 1)]
    outcomes = [f"outcome#{number}" for number in numbers]
    return [f"{queue}#{rest}" for rest in (*map(str, numbers), *keys, *outcomes, "control", "rate", "runs", "0f")]


def _belongings(queue):
    names = Names("dueline")
    queues = [names.queue(queue), names.queue(queue, 2), names.queue(queue, 5), names.queue_dlq(queue)]
    paths = ("jobs", "jobs/an-id", "uploads", "cancellations", "pause", "rate")
    return [
        *(f"sqs:{name}" for name in queues),
        *(f"{BUCKET}/{days}/{queue}/a-uid" for days in ("0016", "4096")),
        *(f"{method}/queues/{queue}/{path}" for method, path in product(("GET", "POST", "PUT", "DELETE"), paths)),
        f"GET/queues/{queue}",
        *(f"lambda:function:dueline-api:{caller.alias_of(queue)}" for caller in Caller),
        f"ssm:parameter{names.queue_parameter(queue)}",
    ]


@pytest.mark.parametrize(("queue", "may"), [("emails", True), ("e", True), ("emails-vip", False), ("invoices", False)])
def test_group_policies_reach_its_queues_only(neighbours, queue, may):
    groups = neighbours.templates[neighbours.deployment.names.groups_stack]
    producer, consumer, direct = (
        policy(groups, f"dueline_group_mail_{kind}") for kind in ("producer", "consumer", "direct")
    )
    rows = {KEYS: [f"{queue}#0"]}
    for path in ("POST/queues/{}/jobs", "DELETE/queues/{}/jobs/id", "PUT/queues/{}/schedules/s"):
        request = f"execute-api:<HttpApiId>/$default/{path.format(queue)}"
        assert allows(producer, "execute-api:Invoke", request) is may
    assert not allows(producer, "execute-api:Invoke", f"execute-api:<HttpApiId>/$default/POST/queues/{queue}/pause")
    assert allows(consumer, "sqs:ReceiveMessage", f"sqs:dueline_{queue}") is may
    assert allows(consumer, "dynamodb:GetItem", JOBS, rows) is may
    assert allows(direct, "dynamodb:PutItem", JOBS, rows) is may


def test_too_large_group_is_refused():
    queues = [f"a-queue-with-a-longer-name-{number:02}" for number in range(16)]
    full = Deployment.model_validate({"queues": dict.fromkeys(queues), "groups": {"all": queues}})
    with pytest.raises(ConfigurationError, match=rf"^groups.all has too many queues: .* limit is {MOST_CHARACTERS:,}"):
        GroupsStack(App(), "groups", deployment=full)
