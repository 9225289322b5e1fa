"""That a job has its effect once at most, whatever ends an attempt."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from threading import Barrier

import pytest
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyPersistenceLayerError,
)
from aws_lambda_powertools.utilities.idempotency.persistence import base
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ReadTimeoutError

from dueline.aws.once import REMEMBERED, DynamoOnce
from dueline.core.text import stack_of
from dueline.errors import Throttled, Unavailable
from dueline.worker.delivery import Discard, Interrupted
from tests.contract.answers import answering, error

KEYS, THREADS = 20, 8
# Powertools raises and handles these itself.
POWERTOOLS_OWN = [
    IdempotencyAlreadyInProgressError("of an effect within"),
    IdempotencyPersistenceLayerError("of an effect within"),
]


class Effects(Counter):
    """Counts the effects that were had, by key."""

    def of(self, key, *, then=None):
        """Return an effect, after which an error is raised."""

        def effect():
            self[key] += 1
            if then is not None:
                raise then

        return effect


@pytest.fixture
def effects():
    return Effects()


@pytest.fixture
def engine(started):
    return started("dynalite")


@pytest.fixture
def table(engine):
    return engine.new_table("id")


@pytest.fixture
def once(engine, table):
    return DynamoOnce(engine.dynamodb, table, queue="emails")


@contextmanager
def failing(engine, operation, fault, *, at="before-call"):
    """Let AWS answer requests of one kind with an error's code, or not at all; before the call it does nothing."""

    def fail(**event):
        if isinstance(fault, Exception):
            raise fault
        return AWSResponse(event["params"]["url"], 400, {}, None), {"Error": {"Code": fault, "Message": "because"}}

    events, name = engine.dynamodb.meta.events, f"{at}.dynamodb.{operation}"
    events.register_first(name, fail)
    try:
        yield
    finally:
        events.unregister(name, fail)


# AWS does its work, and its answers are lost.
losing_answers = partial(failing, fault=ReadTimeoutError(endpoint_url="https://aws"), at="before-parse")


@pytest.mark.parametrize("raised", [ValueError("no"), Discard("no"), Interrupted(), *POWERTOOLS_OWN])
def test_failed_effect_may_run_again(once, effects, raised):
    for _ in range(2):
        with pytest.raises(type(raised)) as caught:
            once("id", effects.of("id", then=raised))
        assert caught.value is raised
        assert raised.__cause__ is raised.__context__ is None
    once("id", effects.of("id"))
    once("id", effects.of("id"))
    assert effects == {"id": 3}


@pytest.mark.parametrize("death", [SystemExit(), KeyboardInterrupt()], ids=["exit", "interrupt"])
def test_interrupted_attempt_is_never_repeated(engine, table, once, effects, death):
    with pytest.raises(type(death)):
        once("id", effects.of("id", then=death))
    for _ in range(3):
        with pytest.raises(Interrupted, match="not known to have ended") as caught:
            DynamoOnce(engine.dynamodb, table, queue="emails")("id", effects.of("id"))
        # Without the frame of this test: those of Powertools, whose error is not printed, are none of a handler.
        assert stack_of(caught.value.with_traceback(caught.tb.tb_next)) == ""
    once("id/1", effects.of("id/1"))
    assert effects == {"id": 1, "id/1": 1}


def test_record_is_kept_for_45_days(engine, table, once, effects):
    before = time.time()
    once("done", effects.of("done"))
    with pytest.raises(SystemExit):
        once("cut off", effects.of("cut off", then=SystemExit()))
    kept = engine.dynamodb.scan(TableName=table)["Items"]
    assert {each["status"]["S"] for each in kept} == {"COMPLETED", "INPROGRESS"}
    for each in kept:
        assert each["id"]["S"].startswith("emails#")
        # A SHA-256 in hex: two jobs of one hash would be one.
        assert len(each["id"]["S"].removeprefix("emails#")) == 64
        assert int(before) <= int(each["expiration"]["N"]) - REMEMBERED.total_seconds() <= time.time()
        in_millis = int(each["in_progress_expiration"]["N"])
        assert int(before) <= in_millis / 1000 - REMEMBERED.total_seconds() <= time.time()


def test_one_of_two_concurrent_runs_has_effect(engine, table, effects):
    barrier = Barrier(2)
    both = [DynamoOnce(engine.dynamodb, table, queue="emails") for _ in range(2)]

    def attempt(once):
        interrupted = 0
        for key in range(KEYS):
            barrier.wait()
            try:
                once(str(key), effects.of(key))
            except Interrupted:
                interrupted += 1
        return interrupted

    with ThreadPoolExecutor(2) as pool:
        interrupted = sum(pool.map(attempt, both))
    assert effects == dict.fromkeys(range(KEYS), 1)
    assert interrupted <= KEYS


def test_concurrent_first_calls_share_a_key(engine, table, effects, monkeypatch):
    # Powertools configures itself at the first call, and takes its time here.
    monkeypatch.setattr(base, "PowertoolsFunctions", lambda: time.sleep(0.2))
    once, barrier = DynamoOnce(engine.dynamodb, table, queue="emails"), Barrier(THREADS)

    def attempt(_):
        barrier.wait()
        with suppress(Interrupted):
            once("id", effects.of("id"))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(attempt, range(THREADS)))
    assert effects == {"id": 1}


# What AWS answers when it fails

FAULTS = pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("ThrottlingException", Throttled),
        ("AccessDeniedException", Unavailable),
        (ReadTimeoutError(endpoint_url="https://aws"), Unavailable),
    ],
    ids=["throttled", "denied", "unanswered"],
)


@FAULTS
def test_failing_table_prevents_the_effect(effects, fault, expected):
    is_code = isinstance(fault, str)
    once = DynamoOnce(answering("dynamodb", error(fault) if is_code else fault), "once", queue="emails")
    says = f"noting whether job id had its effect: {fault}: because" if is_code else "https://aws"
    with pytest.raises(expected, match=says):
        once("id", effects.of("id"))
    assert not effects


def test_unreadable_record_prevents_the_effect(effects):
    broken = {"Item": {"id": {"S": "emails#0"}}}
    refused = {"__type": "com.amazonaws.aws#ConditionalCheckFailedException", "message": "no", **broken}
    with pytest.raises(Unavailable, match="job id"):
        DynamoOnce(answering("dynamodb", (400, refused)), "once", queue="emails")("id", effects.of("id"))
    assert not effects


@FAULTS
def test_unrecorded_effect_is_not_repeated(once, engine, effects, fault, expected):
    with failing(engine, "UpdateItem", fault), pytest.raises(expected, match="job id"):
        once("id", effects.of("id"))
    for _ in range(2):
        with pytest.raises(Interrupted):
            once("id", effects.of("id"))
    assert effects == {"id": 1}


@pytest.mark.parametrize(
    ("operation", "then"),
    [("PutItem", pytest.raises(Interrupted)), ("UpdateItem", nullcontext())],
    ids=["first", "last"],
)
def test_lost_answer_is_an_interruption_or_success(once, engine, effects, operation, then):
    with losing_answers(engine, operation), pytest.raises(Unavailable):
        once("id", effects.of("id"))
    with then:
        once("id", effects.of("id"))
    assert effects == ({"id": 1} if operation == "UpdateItem" else {})


def test_unrecorded_error_reports_both(once, engine, effects):
    denied = "raised ValueError: no such address: AccessDeniedException: because"
    with failing(engine, "DeleteItem", "AccessDeniedException"), pytest.raises(Unavailable, match=denied):
        once("id", effects.of("id", then=ValueError("no such address")))
    with pytest.raises(Interrupted):
        once("id", effects.of("id"))
    assert effects == {"id": 1}


def test_discard_needs_no_record(once, engine, effects):
    with failing(engine, "DeleteItem", "AccessDeniedException"), pytest.raises(Discard, match="bounced"):
        once("id", effects.of("id", then=Discard("bounced")))
