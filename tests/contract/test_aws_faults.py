"""What AWS answers when it fails, through botocore's own parsing, and what the adapters make of it."""

import json
from contextlib import nullcontext
from itertools import pairwise

import pytest
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

from dueline.aws import clients
from dueline.aws.dynamodb import RESERVE_ATTEMPTS, DynamoTable
from dueline.aws.dynamodb_items import CONFLICT_ATTEMPTS
from dueline.aws.sqs import SqsQueue
from dueline.core.job import State
from dueline.core.ports import BatchFailure, MoveOutcome
from dueline.core.status import Outcome, outcome_row
from dueline.errors import DuelineError, QueueNotFound, Throttled, Unavailable
from tests.builders import EMAILS, NOW, a_message, an_id
from tests.contract.answers import answer, answering, error
from tests.contract.engines import LONGEST

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/emails"
ROW = {"pk": "emails#0", "sk": "1"}
KEY = ("emails#0", "1")
AN_OUTCOME = Outcome(state=State.RUNNING, attempts=1, started=NOW)


def table(*answers):
    return DynamoTable(answering("dynamodb", *answers), "jobs", state="state")


def queue(*answers):
    return SqsQueue(answering("sqs", *answers), URL)


CALLS = {
    "write": lambda table: table.write([ROW]),
    "read": lambda table: table.read([KEY]),
    "page": lambda table: table.page(EMAILS, after="0", until="9"),
    "add": lambda table: table.add(ROW),
    "claim": lambda table: table.claim(ROW, now=NOW),
    "take_over": lambda table: table.take_over(ROW, there={"id": "id", "done": False}),
    "record": lambda table: table.record(outcome_row(an_id(), AN_OUTCOME, expires=NOW)),
    "share": lambda table: table.share(KEY, id="id"),
    "release_key": lambda table: table.release(KEY, id="id", ttl=1),
    "mark_done": lambda table: table.mark_done(KEY, id="id"),
    "change_calls": lambda table: table.change_calls(KEY, before="[]", after="[1]"),
    "move": lambda table: table.move(ROW, {**ROW, "sk": "2"}, state=("emails#0", "!state"), fence_below="9"),
    "mark_exact": lambda table: table.mark_exact(KEY),
    "read_barrier": lambda table: table.read_barrier(KEY),
    "reserve": lambda table: table.reserve(KEY, now=5, amount=2, ttl=9),
    "acquire_lease": lambda table: table.acquire_lease(EMAILS, owner="me", now="1", lease="2", fence="3"),
    "checkpoint": lambda table: table.checkpoint(EMAILS, owner="me", cursor="1", fence="2", lease="3"),
    "release": lambda table: table.checkpoint(EMAILS, owner="me", cursor="1", fence="2", lease=""),
}
NO_ANSWER = [
    ReadTimeoutError(endpoint_url="https://aws"),
    ConnectTimeoutError(endpoint_url="https://aws"),
    EndpointConnectionError(endpoint_url="https://aws"),
]


# The table


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("ProvisionedThroughputExceededException", Throttled),
        ("ThrottlingException", Throttled),
        ("RequestLimitExceeded", Throttled),
        ("AccessDeniedException", Unavailable),
        ("InternalServerError", Unavailable),
        *((each, Unavailable) for each in NO_ANSWER),
    ],
)
def test_each_table_call_reports_its_fault(fault, expected):
    is_code = isinstance(fault, str)
    port = table(error(fault) if is_code else fault)
    for name, call in CALLS.items():
        with pytest.raises(DuelineError) as raised:
            call(port)
        assert isinstance(raised.value, expected), name
        assert (f"{fault}: because" if is_code else "https://aws") in str(raised.value), name


ODD = pytest.mark.parametrize("body", [{}, [], "ok"], ids=["empty", "list", "text"])


@ODD
def test_odd_dynamodb_answer_is_unavailable(body):
    """A proxy may answer with 200, and with what AWS never says, or says of a write."""
    client = clients.client("dynamodb", longest=LONGEST)
    port = DynamoTable(answering("dynamodb", (200, body), client=client), "jobs", state="state")
    for call in CALLS.values():
        with pytest.raises(Unavailable):
            call(port)


@ODD
def test_odd_sqs_answer_acknowledges_nothing(body):
    inbox = queue((200, body))
    with pytest.raises(Unavailable):
        inbox.depth()
    for acknowledge in (lambda: inbox.delete(["a", "b"]), lambda: inbox.hide(["a", "b"], [0, 1])):
        try:
            failures = acknowledge()
        except Unavailable:
            continue
        assert [(each.index, each.final) for each in failures] == [(0, False), (1, False)]


def counting(answer):
    """Return a table whose requests are all answered alike, and a list of them that grows."""
    requests, client = [], answering("dynamodb", answer)
    client.meta.events.register_first("before-send", lambda request, **_: requests.append(request))
    return requests, DynamoTable(client, "jobs", state="state")


def test_transaction_conflict_is_retried():
    requests, port = counting(error("TransactionConflictException"))
    for call in ("add", "record", "mark_exact", "read_barrier", "acquire_lease", "checkpoint", "release", "reserve"):
        requests.clear()
        with pytest.raises(Throttled, match="TransactionConflictException"):
            CALLS[call](port)
        assert len(requests) == CONFLICT_ATTEMPTS, call


def cancelled(*codes):
    reasons = [{"Code": code, "Message": "because"} for code in codes]
    content = {"__type": "com.amazonaws.aws#TransactionCanceledException", "Message": "because"}
    return answer(400, {**content, "CancellationReasons": reasons})


@pytest.mark.parametrize(
    ("answer", "outcome", "tries"),
    [
        (cancelled("TransactionConflict", "ConditionalCheckFailed", "None"), MoveOutcome.REFUSED, 1),
        (cancelled("ConditionalCheckFailed", "None", "None"), MoveOutcome.REFUSED, 1),
        (cancelled("None", "TransactionConflict", "None"), Throttled, CONFLICT_ATTEMPTS),
        (cancelled("None", "ProvisionedThroughputExceeded", "None"), Throttled, 1),
        (cancelled("None", "ThrottlingError", "None"), Throttled, 1),
        (error("TransactionInProgressException"), Throttled, 1),
        (cancelled("None", "ValidationError", "None"), Unavailable, 1),
        (error("IdempotentParameterMismatchException"), Unavailable, 1),
    ],
)
def test_move_is_retried_after_a_conflict_alone(answer, outcome, tries):
    requests, port = counting(answer)
    with nullcontext() if outcome is MoveOutcome.REFUSED else pytest.raises(outcome):
        assert CALLS["move"](port) is outcome
    assert len(requests) == tries


ITEM = {"pk": {"S": "emails#0"}, "sk": {"S": "1"}}
UNREAD = (200, {"Responses": {}, "UnprocessedKeys": {"jobs": {"Keys": [ITEM]}}})


def test_unprocessed_items_are_reported():
    left = {"jobs": [{"PutRequest": {"Item": ITEM}}]}
    assert table((200, {"UnprocessedItems": left})).write([ROW, {**ROW, "sk": "2"}]) == [ROW]
    reading = table(UNREAD).read([KEY])
    assert (reading.rows, reading.unread) == ({}, {KEY})


REFUSED = error("ConditionalCheckFailedException")


@pytest.mark.parametrize(
    ("table_name", "sort_key", "call"), [("jobs", "1", CALLS["add"]), ("state", "!state", CALLS["acquire_lease"])]
)
def test_unread_row_is_not_a_missing_row(table_name, sort_key, call):
    keys = [{"pk": {"S": "emails#0"}, "sk": {"S": sort_key}}]
    unread = (200, {"Responses": {}, "UnprocessedKeys": {table_name: {"Keys": keys}}})
    with pytest.raises(Unavailable, match="could not be read"):
        call(table(REFUSED, unread))


def test_reservation_gives_up_as_throttled():
    requests, port = counting(REFUSED)
    with pytest.raises(Throttled, match="was changed by others"):
        port.reserve(KEY, now=5, amount=2, ttl=9)
    conditions = [json.loads(request.body)["ConditionExpression"] for request in requests]
    assert len(conditions) == RESERVE_ATTEMPTS
    assert [condition != following for condition, following in pairwise(conditions)] == [True] * (RESERVE_ATTEMPTS - 1)


def test_reads_are_consistent():
    requests = []
    client = answering("dynamodb", (200, {"Responses": {}, "UnprocessedKeys": {}, "Items": []}))
    client.meta.events.register("before-call", lambda params, **_: requests.append(json.loads(params["body"])))
    port = DynamoTable(client, "jobs", state="state")
    port.read([KEY])
    port.page(EMAILS, after="0", until="9")
    assert requests[0]["RequestItems"]["jobs"]["ConsistentRead"] is True
    assert requests[1]["ConsistentRead"] is True


# The queue


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        *((code, Throttled) for code in ("ThrottlingException", "RequestThrottled", "KMS.ThrottlingException")),
        *((code, Unavailable) for code in ("AccessDeniedException", "InternalFailure", "KMS.DisabledException")),
        *((code, QueueNotFound) for code in ("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue")),
        *((fault, Unavailable) for fault in NO_ANSWER),
    ],
)
def test_queue_that_fails_says_why(fault, expected):
    is_code = isinstance(fault, str)
    failing = queue(error(fault) if is_code else fault)
    calls = {
        "sending to": lambda: failing.send([a_message()]),
        "reading how full": failing.depth,
        "receiving from": lambda: failing.receive(most=1, wait=0),
    }
    for doing, call in calls.items():
        with pytest.raises(expected, match=f"{doing} queue emails.*{fault if is_code else 'https://aws'}"):
            call()


def failed(index, code):
    return {"Id": str(index), "Code": code, "Message": "because", "SenderFault": True}


def test_failed_entry_is_final_or_not():
    entries = [failed(0, "InvalidMessageContents"), failed(2, "InternalError"), failed(3, "ThrottlingException")]
    refusals = queue((200, {"Failed": entries, "Successful": [{"Id": "1"}]})).send([a_message()] * 4)
    assert refusals == [
        BatchFailure(index=0, reason="InvalidMessageContents: because", final=True),
        BatchFailure(index=2, reason="InternalError: because", final=False),
        BatchFailure(index=3, reason="ThrottlingException: because", final=False),
    ]


@pytest.mark.parametrize("content", [{}, {"Failed": [failed(7, "InternalError")]}])
def test_unanswered_message_is_not_final(content):
    failures = queue((200, content)).send([a_message()] * 2)
    assert [(each.index, each.final) for each in failures] == [(0, False), (1, False)]


UNSENDABLE = ("InvalidMessageContents", "BatchRequestTooLong", "InvalidParameterValue")


@pytest.mark.parametrize("code", [*UNSENDABLE, "ThrottlingException"])
def test_refused_batch_is_sent_one_by_one(code):
    is_final, done = code in UNSENDABLE, (200, {"Successful": [{"Id": "0"}], "Failed": []})
    of_batch = code if is_final else "InvalidMessageContents"
    refusals = queue(error(of_batch), done, error(code), done).send([a_message()] * 3)
    assert refusals == [BatchFailure(index=1, reason=f"sending to queue emails: {code}: because", final=is_final)]
