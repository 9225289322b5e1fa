"""Who may do what: each managed policy by a role that has nothing else."""

import json
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from dueline.core.queue_settings import PLANNER
from tests.acceptance.conftest import IS_AWS
from tests.acceptance.rights import KINDS
from tests.waiting import wait_until

OWN, OTHER = "plain", "plain-vip"
ID = "0.t.4102444800000.0d6a387e-1c2f-4b7a-9a51-7f6f0a3f9d10"
# A missing job of the future may be on its way: one who moves it has to try again.
LONG_AGO = ID.replace("4102444800000", "1600000000000")


@dataclass(frozen=True, slots=True)
class Request:
    """A method of HTTP on a path. What IAM lets pass and Dueline refuses is allowed, unless it `must_succeed`."""

    method: str
    path: str
    body: Any = None
    must_succeed: bool = False

    def request(self, http):
        return http.request(self.method, self.path, json=self.body)

    def is_allowed(self, http):
        answer = self.request(http)
        if answer.is_success or self.must_succeed:
            return answer.is_success
        try:
            return answer.json().get("code", "route_not_found") not in ("route_not_found", "forbidden")
        except (ValueError, AttributeError):
            return False


def of_producers(queue):
    jobs, schedule = f"/queues/{queue}/jobs", f"/queues/{queue}/schedules/rights"
    return [
        Request("GET", f"/queues/{queue}"),
        Request("POST", jobs, {"payload": None, "delay": 86_400}),
        Request("GET", jobs),
        Request("GET", f"{jobs}/{queue}.{ID}"),
        Request("PATCH", f"{jobs}/{queue}.{LONG_AGO}", {"delay": 86_400}),
        Request("DELETE", f"{jobs}/{queue}.{ID}"),
        Request("POST", f"/queues/{queue}/cancellations", {"ids": [f"{queue}.{ID}"]}),
        Request("POST", f"/queues/{queue}/uploads", {"bytes": 1, "sha256": "0" * 64}),
        Request("GET", f"/queues/{queue}/schedules"),
        Request("PUT", schedule, {"every": 3600, "payload": None}),
        Request("GET", schedule),
        Request("POST", f"{schedule}/pause"),
        Request("POST", f"{schedule}/resume"),
        Request("GET", f"{schedule}/history"),
        Request("DELETE", schedule),
    ]


def of_operators(queue):
    return [
        Request("POST", f"/queues/{queue}/pause"),
        Request("PUT", f"/queues/{queue}/rate", {"rate": None}),
        Request("POST", f"/queues/{queue}/resume"),
    ]


# Ways to write another queue's path. One may look like a job of the queue's own, which there is not.
EVASIONS = [
    Request("GET", path, must_succeed=True)
    for path in (
        f"/queues/{OWN}%2Dvip/jobs",
        f"/queues/{OWN}/jobs/..%2F..%2F{OTHER}%2Fjobs",
        f"/queues/{OWN}/../{OTHER}/jobs",
        f"/queues//{OTHER}/jobs",
        f"//queues/{OTHER}/jobs",
        f"/queues/{OTHER}/jobs/",
        "/queues/%70lain-vip/jobs",
    )
]
ALLOWED = {
    "producer": [*of_producers(OWN), Request("GET", "/queues")],
    "operator": [Request("GET", f"/queues/{OWN}"), *of_operators(OWN)],
}
DENIED = {
    "producer": of_operators(OWN),
    "operator": [Request("POST", f"/queues/{OWN}/jobs", {"payload": None})],
    "consumer": [*of_producers(OWN), *of_operators(OWN)],
    "direct": of_operators(OWN),
}
DENIED = {kind: [*denied, *of_producers(OTHER), *of_operators(OTHER)] for kind, denied in DENIED.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_policy_allows_what_is_documented(holder, http_of, kind):
    http = http_of(holder(kind, OWN))
    refused = [each for each in ALLOWED.get(kind, []) if not each.is_allowed(http)]
    passed = [each for each in [*DENIED[kind], *EVASIONS] if each.is_allowed(http)]
    assert (refused, passed) == ([], [])


ALIASES = [f"{kind}-{queue}" for kind in "qo" for queue in (OWN, OTHER)]
# The gateway's alias, no alias, and the code as it was last deployed.
OTHERS = ["live", "", "$LATEST"]
OF_ALIAS = {"producer": f"q-{OWN}", "operator": f"o-{OWN}"}


@pytest.mark.parametrize("kind", KINDS)
def test_policy_allows_its_own_alias(holder, names, kind):
    functions = holder(kind, OWN).client("lambda")

    def may_invoke(alias):
        name = f"{names.function('api')}:{alias}".removesuffix(":")
        return may(lambda: functions.invoke(FunctionName=name, InvocationType="DryRun"))

    own = [OF_ALIAS[kind]] if kind in OF_ALIAS else []
    assert [each for each in [*ALIASES, *OTHERS] if may_invoke(each)] == own


# Who an event may claim to be.
_FORGED = {"stage": "$default", "authorizer": {"iam": {"userArn": "arn:aws:iam::123456789012:root"}}}


class AliasTransport(httpx.BaseTransport):
    """Invokes one alias of a function, whatever a request is, as one who knows how the gateway does."""

    def __init__(self, function, session):
        self._function = function
        self._lambda = session.client("lambda")

    def handle_request(self, request):
        path = request.url.raw_path.decode()
        event = {
            "version": "2.0",
            "rawPath": path,
            "headers": dict(request.headers),
            "requestContext": {"http": {"method": request.method, "path": path}, **_FORGED},
            "body": request.read().decode(),
        }
        answer = self._lambda.invoke(FunctionName=self._function, Payload=json.dumps(event).encode())
        assert "FunctionError" not in answer
        content = json.loads(answer["Payload"].read())
        return httpx.Response(content["statusCode"], headers=content["headers"], content=content["body"])


@pytest.mark.parametrize("kind", OF_ALIAS)
def test_alias_allows_what_is_documented(holder, names, kind):
    alias = AliasTransport(f"{names.function('api')}:{OF_ALIAS[kind]}", holder(kind, OWN))
    with httpx.Client(base_url="http://alias", transport=alias) as http:
        refused = [each for each in ALLOWED[kind] if not each.is_allowed(http)]
        denied = [each.request(http).status_code for each in DENIED[kind]]
        passed = [each for each in EVASIONS if each.is_allowed(http)]
    assert (refused, set(denied), passed) == ([], {403}, [])


def test_unsigned_requests_may_do_nothing(http_of):
    stranger = http_of(None)
    for each in [*of_producers(OWN), *of_operators(OWN), Request("GET", "/queues")]:
        assert each.request(stranger).status_code == 403


def may(do):
    try:
        do()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if "AccessDenied" not in code and code != "ConditionalCheckFailedException":
            raise
        return "AccessDenied" not in code
    return True


def test_consumer_receives_from_its_queue_alone(holder, names, url_of):
    url, inbound = {queue: url_of(names.queue(queue)) for queue in (OWN, OTHER)}, url_of(names.inbound)
    for kind in KINDS:
        sqs = holder(kind, OWN).client("sqs")
        for queue in (OWN, OTHER):
            allowed = may(lambda sqs=sqs, queue=queue: sqs.receive_message(QueueUrl=url[queue], VisibilityTimeout=0))
            assert allowed is (kind == "consumer" and queue == OWN), (kind, queue)
        if kind != "direct":
            assert not may(lambda sqs=sqs: sqs.send_message(QueueUrl=inbound, MessageBody="from nobody who may"))


def test_nobody_sends_planning_jobs(holder, names, aws, url_of):
    """Not even who may send to every queue: the planner's own policy refuses them."""
    session = holder("producer", OWN)
    role = session.client("sts").get_caller_identity()["Arn"].split("/")[-2]
    document = {"Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}], "Version": "2012-10-17"}
    aws("iam").put_role_policy(RoleName=role, PolicyName="all", PolicyDocument=json.dumps(document))
    try:
        sender, url = session.client("sqs"), url_of(names.queue("moved"))
        assert wait_until(lambda: may(lambda: sender.send_message(QueueUrl=url, MessageBody="no job")))
        with pytest.raises(ClientError, match="AccessDenied"):
            sender.send_message(QueueUrl=url_of(names.queue(PLANNER.name)), MessageBody="no job")
    finally:
        aws("iam").delete_role_policy(RoleName=role, PolicyName="all")


# What may be done with rows of the own queue, by table.
ROWS = {
    "producer": set(),
    "operator": set(),
    "consumer": {("jobs", "get"), ("state", "get")},
    "direct": {("jobs", "get"), ("jobs", "query"), ("jobs", "put"), ("state", "get")},
}


@pytest.mark.parametrize("kind", KINDS)
def test_policy_reaches_rows_of_its_queue(holder, names, kind):
    dynamodb, tables = holder(kind, OWN).client("dynamodb"), {"jobs": names.table, "state": names.state}

    def allowed(queue):
        row = {"pk": {"S": f"{queue}#0"}, "sk": {"S": "rights"}}
        query = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": row["pk"]}}
        calls = {
            "get": partial(dynamodb.get_item, Key=row),
            "query": partial(dynamodb.query, **query),
            # There is no such row: nothing is written.
            "put": partial(dynamodb.put_item, Item=row, ConditionExpression="attribute_exists(pk)"),
            "scan": dynamodb.scan,
        }
        pairs = product(tables, calls)
        return {(table, call) for table, call in pairs if may(partial(calls[call], TableName=tables[table]))}

    assert allowed(OWN) == ROWS[kind]
    # The local AWS knows no conditions on a row's key.
    assert not IS_AWS or allowed(OTHER) == set()
