"""What a failed attempt leaves: its stack in the log and in the dead letter, and calls of `on_error` and `on_dead`."""

import json
from datetime import timedelta
from functools import partial

import pytest

from dueline.core.message import BATCH_BYTES, STACK, TRACEPARENT, Message
from dueline.core.text import shown, stack_of
from dueline.operations.dead_letters import to_its_queue
from dueline.worker.delivery import DeadLettered, Discard, EventKind, Retries, Retry, RetryLater, with_failure
from dueline.worker.execution import Callbacks, HandlerRunner
from dueline.worker.handlers import Handler, Handlers
from dueline.worker.worker import Worker
from tests.builders import a_job
from tests.unit.worker.test_verdict import Later
from tests.wire import failing
from tests.work import Events, a_connection, a_received_message

PRIVATE = "swordfish"
NO_HANDLERS = Handlers(queue="emails", by_kind={})


def run(call, *, payload='{"to":"ada"}', receives=1, retry=None, handlers=None, **callbacks):
    """Return the verdict on one job, and its events."""
    events = Events()
    handler = Handler(queue="emails", call=call, retry=retry or Retries())
    handlers = handlers or Handlers(queue="emails", by_kind={None: handler})
    connection, callbacks = a_connection(report=events), Callbacks(**callbacks)
    runner = HandlerRunner(handlers, connection, callbacks=callbacks, jitter=lambda: 1.0)
    received = a_received_message(a_job(payload=payload), receives=receives)
    return runner.run(received), events


def broken(job):
    password = job.payload
    raise KeyError("name") if password else ValueError("none")


# The stack


def test_retried_job_is_reported_with_its_stack():
    _, events = run(broken, payload=f'"{PRIVATE}"')
    (retried,) = events.of(EventKind.RETRIED)
    lines = retried.stack.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "test_failures.py" in lines[1]
    assert lines[1].endswith("in broken")
    assert lines[-1] == "KeyError: 'name'"
    assert PRIVATE not in retried.stack
    assert "dueline/worker" not in retried.stack


def test_stack_has_the_causes_and_no_local_values():
    def fail():
        payload = PRIVATE
        try:
            json.loads(payload)
        except ValueError as error:
            raise RuntimeError("bad order") from error

    with pytest.raises(RuntimeError) as raised:
        fail()
    stack = stack_of(raised.value)
    assert stack.index("JSONDecodeError: Expecting value") < stack.index("direct cause") < stack.index("bad order")
    assert PRIVATE not in stack


def test_source_that_a_syntax_error_quotes_is_left_out():
    with pytest.raises(SyntaxError) as raised:
        compile(f"{PRIVATE} {PRIVATE}", "payload", "eval")
    stack = stack_of(raised.value)
    assert ("SyntaxError: " in stack, PRIVATE in stack) == (True, False)


def test_long_text_leaves_room_for_the_frames():
    def fail():
        raise ValueError("x" * 100_000)

    with pytest.raises(ValueError, match="x") as raised:
        fail()
    stack = stack_of(raised.value)
    assert "in fail" in stack
    assert len(stack) < 2000


def test_deliberate_retry_has_the_stack_of_its_cause_only():
    def call(job):
        try:
            broken(job)
        except KeyError as error:
            raise Retry(5) from (error if job.attempt == 2 else None)

    assert [run(call, receives=receives)[0].stack.count("in broken") for receives in (1, 2)] == [0, 1]
    assert run(call)[0].stack == ""


# The dead letter


def test_last_4_kb_of_a_stack_are_kept_in_ascii():
    long = "\n".join(f"ü\x1b line {number}" for number in range(1000))
    stack = with_failure(Message.of(a_job()), DeadLettered(error="E", stack=long), attempt=1).attributes[STACK]
    assert len(stack) == 4096
    assert stack.isascii()
    assert stack.endswith("\n\\xfc\\x1b line 999")


def test_stack_displaces_no_other_attribute():
    message = Message(body="1", attributes={**Message.of(a_job()).attributes, TRACEPARENT: "00-trace"})
    without = with_failure(message, DeadLettered(error="E", reason="r"), attempt=1)
    full = Message(body="1" * (1 + BATCH_BYTES - without.sent_bytes), attributes=message.attributes)
    dead = with_failure(full, DeadLettered(error="E", reason="r", stack="s" * 4096), attempt=1)
    assert dead.attributes == without.attributes


def test_redriven_job_loses_its_stack():
    message = Message.of(a_job())
    dead = with_failure(message, DeadLettered(error="E", reason="r", stack="s"), attempt=1)
    assert dead.attributes[STACK] == "s"
    assert to_its_queue(dead, levels=1).attributes == message.attributes


# The callbacks


@pytest.mark.parametrize(
    ("error", "of_job", "called"),
    [
        (KeyError("name"), {}, ["error"]),
        (KeyError("name"), {"retry": Retries(attempts=1)}, ["error", "dead"]),
        (Retry(5), {}, []),
        (Discard("never"), {}, ["dead"]),
        (None, {"payload": "no JSON"}, ["dead"]),
        (None, {"handlers": NO_HANDLERS}, []),
        (None, {"handlers": NO_HANDLERS, "receives": 99}, ["dead"]),
    ],
)
def test_callbacks_get_the_job_and_its_error(error, of_job, called):
    """What a handler raises on purpose is no error, nor is a job without a handler; each job that dies is reported."""
    got = []
    callbacks = {f"on_{what}": partial(lambda *each: got.append(each), what) for what in ("error", "dead")}
    run(failing(error), **of_job, **callbacks)
    assert [what for what, _, _ in got] == called
    for _, job, raised in got:
        assert job.payload == (None if "payload" in of_job else {"to": "ada"})
        assert raised is error or type(raised).__name__ in ("Discard", "NoHandler")


@pytest.mark.parametrize("fault", [RuntimeError("Sentry is down"), SystemExit(1)])
def test_callback_that_raises_is_reported_and_harms_nothing(fault):
    def callback(job, error):
        raise fault

    verdict, events = run(broken, retry=Retries(attempts=1), on_error=callback, on_dead=callback)
    assert isinstance(verdict, DeadLettered)
    reasons = [event.reason for event in events.of(EventKind.TROUBLE)]
    assert [reason.split(":")[0] for reason in reasons] == ["on_error raised", "on_dead raised"]
    assert all("in callback" in event.stack for event in events.of(EventKind.TROUBLE))


async def a_coroutine(job, error): ...


@pytest.mark.parametrize("callback", ["text", a_coroutine])
def test_callback_must_be_a_plain_function(callback):
    with pytest.raises(ValueError, match=r"on_dead is .*: it must be a plain function"):
        Worker(on_dead=callback)


def test_sentry_gets_the_error_and_its_frames():
    """The three lines of docs/worker.md, with Sentry's own SDK."""
    sentry_sdk = pytest.importorskip("sentry_sdk")
    sent = []

    class Captured(sentry_sdk.transport.Transport):
        def capture_envelope(self, envelope):
            sent.append(envelope.get_event())

    def capture(job, error):
        sentry_sdk.capture_exception(error, tags={"queue": job.queue})

    sentry_sdk.init(dsn="https://key@sentry.invalid/1", transport=Captured, include_local_variables=False)
    try:
        run(broken, payload=f'"{PRIVATE}"', on_error=capture)
    finally:
        sentry_sdk.get_client().close()
        sentry_sdk.init()
    (event,) = sent
    (value,) = event["exception"]["values"]
    assert (value["type"], value["value"], event["tags"]) == ("KeyError", "'name'", {"queue": "emails"})
    assert value["stacktrace"]["frames"][-1]["function"] == "broken"
    assert PRIVATE not in json.dumps(event, default=str)


@pytest.mark.parametrize("delay", [-1, 42_601, float("nan"), "5", timedelta(days=1)], ids=str)
def test_impossible_delay_of_a_subclass_fails_as_its_own(delay):
    """As `Retry(delay)` itself raises in a handler: by the policy, and reported."""
    errors = []

    def call(job):
        raise Later(delay=delay)

    for receives, verdict_type in ((1, RetryLater), (99, DeadLettered)):
        verdict, _ = run(call, receives=receives, on_error=lambda _, error: errors.append(error))
        assert (type(verdict), verdict.error) == (verdict_type, "ValueError")
        assert f"delay is {shown(delay)}: it must be from 0 to 42600" in verdict.reason
        assert "in call" in verdict.stack
    assert [type(error) for error in errors] == [ValueError] * 2


# Attempts


def test_job_knows_its_last_attempt():
    attempts = []

    def call(job):
        attempts.append((job.attempt, job.max_attempts, job.is_last_attempt))

    for receives in (1, 2, 4):
        run(call, receives=receives, retry=Retries(attempts=2))
    run(call)
    assert attempts == [(1, 2, False), (2, 2, True), (4, 2, True), (1, a_connection().settings.attempts, False)]
