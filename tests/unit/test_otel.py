"""Spans around handlers, and the context that a client sends, with OpenTelemetry and without it."""

import asyncio
import logging
import sys
import uuid

import boto3
import pytest
from opentelemetry import propagate, trace

from dueline import AsyncClient, Client, NewJob, Patience, otel
from dueline.aws.gateway import connect
from dueline.client.http_api import HttpApi
from dueline.memory import VirtualClock
from dueline.model.trace import TraceContext
from dueline.retry.calls import LANES
from tests.builders import NOW
from tests.gate import DROPPED, open_gate
from tests.opentelemetry import EXPORTER, TRACER, parent_of

PARENT = "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01"
TRACE_ID, SPAN_ID = 0x0D6A387E6D3B4B8E9F513D7C1F0A2B4C, 0x3D7C1F0A2B4C0D6A
TRACE = TraceContext(parent=PARENT, state="vendor=7")
WITHOUT_IT = {"opentelemetry": None, "opentelemetry.trace": None, "opentelemetry.propagate": None}


class Expected(Exception):
    pass


@pytest.fixture(autouse=True)
def _spans():
    EXPORTER.clear()


@pytest.fixture
def _not_installed(monkeypatch):
    for name, module in WITHOUT_IT.items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def gate():
    with open_gate() as opened:
        yield opened


@pytest.fixture
def client(gate):
    clock = VirtualClock(NOW)
    http = connect("dueline", url=gate.url, session=None, lanes=LANES)
    api = HttpApi(http, clock=clock, new_key=lambda: str(uuid.uuid4()))
    return Client(api, clock=clock, patience=Patience(first_wait=0))


def handle(job_trace=TRACE, *, attempt=1, expected=(), raising=None):
    """Handle a job; return the span that ended."""
    with otel.handling(job_trace, queue="emails", job_id="job 7", attempt=attempt, expected=expected):
        if raising is not None:
            raise raising
    return ended()


def ended():
    (span,) = (span for span in EXPORTER.get_finished_spans() if span.name.startswith("process"))
    return span


def traceparents(gate):
    return [{name.lower(): value for name, value in asked.headers.items()}.get("traceparent") for asked in gate.asked]


# Around a handler


def test_the_first_attempt_is_a_child_of_the_span_that_scheduled_its_job():
    span = handle()
    assert (span.context.trace_id, span.parent.span_id) == (TRACE_ID, SPAN_ID)
    assert (span.parent.is_remote, span.context.trace_state.to_header()) == (True, "vendor=7")
    assert span.links == ()


def test_a_later_attempt_is_a_trace_of_its_own_with_a_link_to_the_span_that_scheduled_its_job():
    with TRACER.start_as_current_span("a worker's own"):
        span = handle(attempt=2)
    assert span.parent is None
    assert span.context.trace_id != TRACE_ID
    (link,) = span.links
    assert (link.context.trace_id, link.context.span_id) == (TRACE_ID, SPAN_ID)


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_job_without_a_trace_goes_on_with_what_is_current(attempt):
    with TRACER.start_as_current_span("a function's own") as own:
        span = handle(None, attempt=attempt)
    assert span.parent.span_id == own.get_span_context().span_id
    assert span.links == ()


def test_a_span_tells_its_queue_its_job_and_its_attempt():
    span = handle(attempt=3)
    assert (span.name, span.kind) == ("process emails", trace.SpanKind.CONSUMER)
    assert dict(span.attributes) == {
        "messaging.system": "aws_sqs",
        "messaging.destination.name": "emails",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.message.id": "job 7",
        "dueline.attempt": 3,
    }
    assert (span.status.status_code, span.events) == (trace.StatusCode.UNSET, ())


def test_what_a_handler_does_is_within_its_span():
    with otel.handling(TRACE, queue="emails", job_id="job 7", attempt=1):
        sent = otel.current()
    assert sent == TraceContext(parent=parent_of_ended(), state="vendor=7")
    assert otel.current() is None


def parent_of_ended():
    told = ended().context
    return f"00-{told.trace_id:032x}-{told.span_id:016x}-01"


def test_an_exception_is_recorded_and_passed_on():
    with pytest.raises(LookupError, match="no ann"):
        handle(raising=LookupError("no ann"))
    span = ended()
    assert (span.status.status_code, span.attributes["error.type"]) == (trace.StatusCode.ERROR, "LookupError")
    (event,) = span.events
    assert event.attributes["exception.message"] == "no ann"


def test_an_exception_whose_text_cannot_be_made_is_passed_on_all_the_same():
    class Speechless(Exception):
        def __str__(self):
            raise KeyError("message")

    with pytest.raises(Speechless):
        handle(raising=Speechless())
    assert EXPORTER.get_finished_spans()[0].attributes["error.type"].endswith("Speechless")


def test_an_expected_exception_is_passed_on_and_no_error():
    with pytest.raises(Expected):
        handle(raising=Expected(), expected=(Expected,))
    span = ended()
    assert (span.status.status_code, span.events) == (trace.StatusCode.UNSET, ())
    assert "error.type" not in span.attributes


@pytest.mark.usefixtures("_not_installed")
def test_without_opentelemetry_a_handler_runs_as_it_is():
    with otel.handling(TRACE, queue="emails", job_id="job 7", attempt=1):
        pass
    with pytest.raises(LookupError), otel.handling(TRACE, queue="emails", job_id="job 7", attempt=1):
        raise LookupError
    assert EXPORTER.get_finished_spans() == ()


# What a client sends


def test_outside_of_any_span_nothing_is_sent(client, gate):
    client.schedule("emails", 1)
    assert otel.current() is None
    assert traceparents(gate) == [None]


def test_a_job_is_scheduled_in_the_current_span_each_time_it_is_tried(client, gate):
    gate.script = [DROPPED]
    with TRACER.start_as_current_span("order") as span:
        client.schedule("emails", 1)
    assert traceparents(gate) == [parent_of(span)] * 2


def test_many_are_scheduled_in_the_span_of_their_call_whatever_their_iterable_does(client, gate):
    def jobs():
        for n in range(1001):
            with TRACER.start_as_current_span("made"):
                yield NewJob(payload=n)

    with TRACER.start_as_current_span("order") as span:
        client.schedule_many("emails", jobs())
    assert len(gate.asked) > 1
    assert set(traceparents(gate)) == {parent_of(span)}


def test_a_tracestate_is_sent_as_well(client, gate):
    with otel.handling(TRACE, queue="emails", job_id="job 7", attempt=1):
        client.schedule("emails", 1)
    assert {name.lower(): value for name, value in gate.asked[0].headers.items()}["tracestate"] == "vendor=7"


def test_from_asyncio_too(client, gate):
    async def order():
        with TRACER.start_as_current_span("order") as span:
            await AsyncClient(client).schedule("emails", 1)
        return parent_of(span)

    assert [asyncio.run(order())] == traceparents(gate)


def test_no_other_call_sends_it(client, gate):
    with TRACER.start_as_current_span("order"):
        job = client.schedule("emails", 1)
        client.get(job.id)
        client.cancel(job.id)
    assert traceparents(gate)[1:] == [None, None]


def test_it_is_not_signed_because_what_instruments_http_calls_puts_its_own_in_its_place(gate):
    session = boto3.Session("AKIDEXAMPLE", "s", region_name="eu-west-1")
    with TRACER.start_as_current_span("order") as span:
        Client.connect(url=gate.url, session=session).schedule("emails", 1)
    assert traceparents(gate) == [parent_of(span)]
    (asked,) = gate.asked
    headers = {name.lower(): value for name, value in asked.headers.items()}
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert "host" in signed
    assert "traceparent" not in signed


@pytest.mark.usefixtures("_not_installed")
def test_without_opentelemetry_nothing_is_sent(client, gate):
    with TRACER.start_as_current_span("order"):
        client.schedule("emails", 1)
    assert traceparents(gate) == [None]


def test_a_propagator_that_fails_makes_no_job_fail(client, gate, monkeypatch, caplog):
    def fail(carrier):
        raise RuntimeError("a propagator of somebody's")

    monkeypatch.setattr(propagate, "inject", fail)
    with caplog.at_level(logging.WARNING), TRACER.start_as_current_span("order"):
        client.schedule("emails", 1)
    assert traceparents(gate) == [None]
    assert "OpenTelemetry's propagators failed" in caplog.text
