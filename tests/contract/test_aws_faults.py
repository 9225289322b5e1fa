"""What AWS answers when it fails, through botocore's own parsing, and what the adapters make of it."""

import json
from itertools import pairwise

import pytest
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

from dueline.aws import clients
from dueline.aws.dynamodb.items import CONFLICT_ATTEMPTS
from dueline.aws.dynamodb.table import RESERVE_ATTEMPTS, DynamoTable
from dueline.aws.sqs.queue import SqsQueue
from dueline.errors import DuelineError, QueueNotFound, Throttled, Unavailable
from dueline.lookup.outcome import Outcome, outcome_row
from dueline.model.job import State
from dueline.model.rows import PartitionState
from dueline.ports import Depth, Refusal
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
    "record": lambda table: table.record(outcome_row(an_id(), AN_OUTCOME, expires=NOW)),
    "mark_done": lambda table: table.mark_done(KEY, id="id"),
    "move": lambda table: table.move(ROW, {**ROW, "sk": "2"}, state=("emails#0", "!state"), fence_below="9"),
    "mark_exact": lambda table: table.mark_exact(KEY),
    "ask_for": lambda table: table.ask_for(KEY),
    "reserve": lambda table: table.reserve(KEY, now=5, amount=2, ttl=9),
    "take": lambda table: table.take(EMAILS, owner="me", now="1", lease="2", fence="3"),
    "checkpoint": lambda table: table.checkpoint(EMAILS, owner="me", cursor="1", fence="2", lease="3"),
    "release": lambda table: table.checkpoint(EMAILS, owner="me", cursor="1", fence="2", lease=""),
}
NO_ANSWER = [
    ReadTimeoutError(endpoint_url="https://aws"),
    ConnectTimeoutError(endpoint_url="https://aws"),
    EndpointConnectionError(endpoint_url="https://aws"),
]


# The table


def assert_every_call_raises(expected, message, fault):
    for name, call in CALLS.items():
        with pytest.raises(DuelineError) as raised:
            call(table(fault))
        assert isinstance(raised.value, expected), name
        assert message in str(raised.value), name


@pytest.mark.parametrize(
    "code", ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"]
)
def test_a_table_that_throttles_is_throttled(code):
    assert_every_call_raises(Throttled, code, error(code))


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "ResourceNotFoundException", "ValidationException", "ExpiredTokenException"]
)
def test_a_table_that_refuses_is_unavailable_and_the_message_says_why(code):
    assert_every_call_raises(Unavailable, f"{code}: because", error(code))


def test_a_table_that_fails_is_unavailable():
    assert_every_call_raises(Unavailable, "InternalServerError", error("InternalServerError", status=500))


@pytest.mark.parametrize("fault", NO_ANSWER, ids=lambda fault: type(fault).__name__)
def test_a_table_that_does_not_answer_is_unavailable(fault):
    assert_every_call_raises(Unavailable, "https://aws", fault)


def counting(answer):
    """Return a table whose requests are all answered alike, and a list of them that grows."""
    requests, client = [], answering("dynamodb", answer)
    client.meta.events.register_first("before-send", lambda request, **_: requests.append(request))
    return requests, DynamoTable(client, "jobs", state="state")


@pytest.mark.parametrize("call", ["add", "record", "mark_exact", "ask_for", "take", "checkpoint", "release", "reserve"])
def test_a_row_that_a_transaction_has_in_hand_is_tried_again_and_then_throttled(call):
    conflict = error("TransactionConflictException")
    requests, port = counting(conflict)
    with pytest.raises(Throttled, match="TransactionConflictException"):
        CALLS[call](port)
    assert len(requests) == CONFLICT_ATTEMPTS


@pytest.mark.parametrize("conflicts", range(1, CONFLICT_ATTEMPTS))
def test_a_lease_is_taken_once_a_transaction_is_through_with_its_row(conflicts):
    held = (200, {"Attributes": {"owner": {"S": "me"}, "lease": {"S": "2"}, "fence": {"S": "3"}}})
    answers = [error("TransactionConflictException") for _ in range(conflicts)]
    taken = table(*answers, held).take(EMAILS, owner="me", now="1", lease="2", fence="3")
    assert taken == PartitionState(owner="me", lease="2", fence="3")


def cancelled(*codes):
    reasons = [{"Code": code, "Message": "because"} for code in codes]
    told = {"__type": "com.amazonaws.aws#TransactionCanceledException", "Message": "because"}
    return answer(400, {**told, "CancellationReasons": reasons})


@pytest.mark.parametrize(
    "codes",
    [
        ("ConditionalCheckFailed", "ConditionalCheckFailed", "None"),
        ("None", "ConditionalCheckFailed", "None"),
        ("TransactionConflict", "ConditionalCheckFailed", "None"),
    ],
)
def test_a_move_of_a_job_that_is_cancelled_is_refused_at_once(codes):
    requests, port = counting(cancelled(*codes))
    assert CALLS["move"](port) is False
    assert len(requests) == 1


def test_a_move_is_refused_by_the_fence_that_is_there_and_by_none_that_came_since():
    by_the_fence = cancelled("ConditionalCheckFailed", "None", "None")
    above, below = (
        (
            200,
            {
                "Responses": {"state": [{"pk": {"S": "emails#0"}, "sk": {"S": "!state"}, "fence": {"S": fence}}]},
                "UnprocessedKeys": {},
            },
        )
        for fence in ("9", "8")
    )
    assert CALLS["move"](table(by_the_fence, above)) is False
    assert CALLS["move"](table(by_the_fence, below, (200, {}))) is True


@pytest.mark.parametrize(
    ("code", "tries"),
    [("TransactionConflict", CONFLICT_ATTEMPTS), ("ProvisionedThroughputExceeded", 1), ("ThrottlingError", 1)],
)
def test_a_move_that_meets_another_or_is_throttled_is_throttled(code, tries):
    requests, port = counting(cancelled("None", code, "None"))
    with pytest.raises(Throttled, match="TransactionCanceledException"):
        CALLS["move"](port)
    assert len(requests) == tries


def test_a_move_that_met_another_takes_effect_when_that_is_through():
    assert CALLS["move"](table(cancelled("TransactionConflict", "None", "None"), (200, {})))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (error("TransactionInProgressException"), Throttled),
        (cancelled("None", "ValidationError", "None"), Unavailable),
        (error("IdempotentParameterMismatchException"), Unavailable),
    ],
)
def test_a_move_that_dynamodb_does_not_decide_is_no_refusal(answer, expected):
    with pytest.raises(expected):
        CALLS["move"](table(answer))


def test_an_unprocessed_item_is_a_row_left_unwritten():
    item = {"pk": {"S": "emails#0"}, "sk": {"S": "1"}}
    left = {"jobs": [{"PutRequest": {"Item": item}}]}
    assert table((200, {"UnprocessedItems": left})).write([ROW, {**ROW, "sk": "2"}]) == [ROW]


def test_an_unprocessed_key_is_a_key_of_which_nothing_was_learned():
    left = {"jobs": {"Keys": [{"pk": {"S": "emails#0"}, "sk": {"S": "1"}}]}}
    reading = table((200, {"Responses": {"jobs": []}, "UnprocessedKeys": left})).read([KEY])
    assert (reading.rows, reading.unread) == ({}, {KEY})


def test_a_page_that_dynamodb_cut_short_says_that_there_is_more():
    item = {"pk": {"S": "emails#0"}, "sk": {"S": "1"}}
    assert table((200, {"Items": [item], "LastEvaluatedKey": item})).page(EMAILS, after="0", until="9").more
    assert not table((200, {"Items": [item]})).page(EMAILS, after="0", until="9").more


REFUSED = error("ConditionalCheckFailedException")
UNREAD = (200, {"Responses": {}, "UnprocessedKeys": {"jobs": {"Keys": [{"pk": {"S": "emails#0"}, "sk": {"S": "1"}}]}}})


def test_a_row_that_is_there_but_could_not_be_read_is_never_taken_for_the_one_given():
    with pytest.raises(Unavailable, match="left unread"):
        table(REFUSED, UNREAD).add(ROW)


def test_a_state_that_could_not_be_read_is_never_taken_for_none():
    state = {"pk": {"S": "emails#0"}, "sk": {"S": "!state"}}
    unread = (200, {"Responses": {}, "UnprocessedKeys": {"state": {"Keys": [state]}}})
    with pytest.raises(Unavailable, match="left unread"):
        table(REFUSED, unread).take(EMAILS, owner="me", now="1", lease="2", fence="3")


def test_a_take_whose_first_answer_was_lost_is_mine_by_the_row_that_it_returns():
    held = {"owner": {"S": "me"}, "lease": {"S": "2"}, "fence": {"S": "3"}}
    taken = table((200, {"Attributes": held})).take(EMAILS, owner="me", now="1", lease="2", fence="3")
    assert taken == PartitionState(owner="me", lease="2", fence="3")


@pytest.mark.parametrize("refusals", range(RESERVE_ATTEMPTS))
def test_a_reservation_that_others_come_before_is_tried_by_its_other_condition(refusals):
    reserved = (200, {"Attributes": {"until": {"N": "7"}}})
    answers = [error("ConditionalCheckFailedException") for _ in range(refusals)]
    assert table(*answers, reserved).reserve(KEY, now=5, amount=2, ttl=9) == 7


def test_a_reservation_that_others_always_come_before_is_throttled_and_reserves_nothing():
    requests, port = counting(error("ConditionalCheckFailedException"))
    with pytest.raises(Throttled, match="was changed by others"):
        port.reserve(KEY, now=5, amount=2, ttl=9)
    conditions = [json.loads(request.body)["ConditionExpression"] for request in requests]
    assert len(conditions) == RESERVE_ATTEMPTS
    assert [condition != following for condition, following in pairwise(conditions)] == [True] * (RESERVE_ATTEMPTS - 1)


def test_every_read_that_the_protocol_rests_on_is_consistent():
    asked = []
    client = answering("dynamodb", (200, {"Responses": {}, "UnprocessedKeys": {}, "Items": []}))
    client.meta.events.register("before-call", lambda params, **_: asked.append(json.loads(params["body"])))
    port = DynamoTable(client, "jobs", state="state")
    port.read([KEY])
    port.page(EMAILS, after="0", until="9")
    assert asked[0]["RequestItems"]["jobs"]["ConsistentRead"] is True
    assert asked[1]["ConsistentRead"] is True


def test_a_request_is_tried_once_more_before_it_counts_as_failed():
    client = clients.dynamodb(longest=LONGEST)
    port = DynamoTable(
        answering("dynamodb", NO_ANSWER[0], (200, {"UnprocessedItems": {}}), client=client), "jobs", state="state"
    )
    assert port.write([ROW]) == []


# The queue


@pytest.mark.parametrize("code", ["ThrottlingException", "RequestThrottled", "KMS.ThrottlingException"])
def test_a_queue_that_throttles_is_throttled(code):
    with pytest.raises(Throttled, match=code):
        queue(error(code)).send([a_message()])


@pytest.mark.parametrize("code", ["AccessDeniedException", "InternalFailure", "KMS.DisabledException"])
def test_a_queue_that_refuses_or_fails_is_unavailable(code):
    with pytest.raises(Unavailable, match=code):
        queue(error(code)).send([a_message()])


@pytest.mark.parametrize("fault", NO_ANSWER, ids=lambda fault: type(fault).__name__)
def test_a_queue_that_does_not_answer_is_unavailable(fault):
    with pytest.raises(Unavailable, match="sending to queue emails"):
        queue(fault).send([a_message()])


def test_what_waits_is_in_flight_and_is_held_back_are_told_apart():
    names = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"
    told = (200, {"Attributes": dict(zip(names, "123", strict=True))})
    assert queue(told).depth() == Depth(waiting=1, in_flight=2, delayed=3)


@pytest.mark.parametrize("fault", NO_ANSWER, ids=lambda fault: type(fault).__name__)
def test_a_queue_that_does_not_tell_how_full_it_is_is_unavailable(fault):
    with pytest.raises(Unavailable, match="asking how full queue emails is"):
        queue(fault).depth()


@pytest.mark.parametrize("code", ["QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"])
def test_a_queue_that_does_not_exist_is_not_found_in_either_spelling(code):
    with pytest.raises(QueueNotFound):
        queue(error(code)).send([a_message()])
    with pytest.raises(QueueNotFound):
        queue(error(code)).depth()


def failed(index, code):
    return {"Id": str(index), "Code": code, "Message": "because", "SenderFault": True}


def test_a_message_that_failed_in_its_batch_is_refused_for_good_or_for_now():
    entries = [failed(0, "InvalidMessageContents"), failed(2, "InternalError"), failed(3, "ThrottlingException")]
    refusals = queue((200, {"Failed": entries, "Successful": []})).send([a_message()] * 4)
    assert refusals == [
        Refusal(index=0, reason="InvalidMessageContents: because", final=True),
        Refusal(index=2, reason="InternalError: because", final=False),
        Refusal(index=3, reason="ThrottlingException: because", final=False),
    ]


@pytest.mark.parametrize("code", ["InvalidMessageContents", "BatchRequestTooLong", "InvalidParameterValue"])
def test_a_batch_that_is_refused_for_one_message_is_sent_one_by_one(code):
    done = (200, {"Successful": [], "Failed": []})
    refusals = queue(error(code), done, error(code), done).send([a_message()] * 3)
    assert refusals == [Refusal(index=1, reason=f"sending to queue emails: {code}: because", final=True)]


def test_of_a_batch_that_is_sent_one_by_one_a_fault_hides_nothing_that_was_sent():
    done = (200, {"Successful": [], "Failed": []})
    answers = error("InvalidMessageContents"), done, error("ThrottlingException"), done
    (refusal,) = queue(*answers).send([a_message()] * 3)
    assert (refusal.index, refusal.final) == (1, False)
