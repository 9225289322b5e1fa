"""Spans around handlers, and the context that a client sends, with OpenTelemetry and without it."""

import asyncio
import logging
import sys

import boto3
import pytest
from opentelemetry import propagate, trace

from dueline import AsyncClient, Client, NewJob, Patience, otel
from dueline.core.trace import TraceContext
from tests.fake_api_server import DROPPED
from tests.opentelemetry import EXPORTER, TRACER, parent_of

PARENT = "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01"
TRACE_ID, SPAN_ID = 0x0D6A387E6D3B4B8E9F513D7C1F0A2B4C, 0x3D7C1F0A2B4C0D6A
TRACE = TraceContext(parent=PARENT, state="vendor=7")


@pytest.fixture(autouse=True)
def _spans():
    EXPORTER.clear()


@pytest.fixture
def client(api_server):
    return Client(Client.connect(url=api_server.url)._api, patience=Patience(first_wait=0))


def handle(job_trace=TRACE, *, attempt=1, kind=None, expected=(), raising=None):
    """Handle a job; return the span that ended."""
    with otel.handling(job_trace, queue="emails", job_id="job 7", attempt=attempt, kind=kind, expected=expected):
        if raising is not None:
            raise raising
    return ended()


def ended():
    (span,) = (span for span in EXPORTER.get_finished_spans() if span.name.startswith("process"))
    return span


def traceparents(api_server):
    return [request.headers.get("traceparent") for request in api_server.requests]


# Around a handler


def test_first_attempt_continues_the_trace_and_others_link_it():
    span = handle()
    assert (span.context.trace_id, span.parent.span_id) == (TRACE_ID, SPAN_ID)
    assert (span.parent.is_remote, span.context.trace_state.to_header()) == (True, "vendor=7")
    assert span.links == ()
    EXPORTER.clear()
    with TRACER.start_as_current_span("a worker's own"):
        span = handle(attempt=2)
    assert span.parent is None
    assert span.context.trace_id != TRACE_ID
    (link,) = span.links
    assert (link.context.trace_id, link.context.span_id) == (TRACE_ID, SPAN_ID)


@pytest.mark.parametrize("attempt", [1, 2])
def test_untraced_job_uses_the_current_span(attempt):
    with TRACER.start_as_current_span("a function's own") as own:
        span = handle(None, attempt=attempt)
    assert span.parent.span_id == own.get_span_context().span_id
    assert span.links == ()


def test_span_has_queue_job_and_attempt():
    span = handle(attempt=3, kind="welcome")
    assert (span.name, span.kind) == ("process emails", trace.SpanKind.CONSUMER)
    assert dict(span.attributes) == {
        "messaging.system": "aws_sqs",
        "messaging.destination.name": "emails",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.message.id": "job 7",
        "dueline.attempt": 3,
        "dueline.kind": "welcome",
    }
    assert (span.status.status_code, span.events) == (trace.StatusCode.UNSET, ())


def test_handler_runs_within_its_span():
    with otel.handling(TRACE, queue="emails", job_id="job 7", attempt=1):
        sent = otel.current()
    span = ended().context
    assert sent == TraceContext(parent=f"00-{span.trace_id:032x}-{span.span_id:016x}-01", state="vendor=7")
    assert otel.current() is None


def test_exception_is_recorded_and_passed_on():
    with pytest.raises(LookupError, match="no ann"):
        handle(raising=LookupError("no ann"))
    span = ended()
    assert (span.status.status_code, span.attributes["error.type"]) == (trace.StatusCode.ERROR, "LookupError")
    (event,) = span.events
    assert event.attributes["exception.message"] == "no ann"
    EXPORTER.clear()
    with pytest.raises(KeyError):
        handle(raising=KeyError(), expected=(KeyError,))
    span = ended()
    assert (span.status.status_code, span.events) == (trace.StatusCode.UNSET, ())
    assert "error.type" not in span.attributes


def test_nothing_needs_opentelemetry(client, api_server, monkeypatch, request):
    for name in ("opentelemetry", "opentelemetry.trace", "opentelemetry.propagate"):
        monkeypatch.setitem(sys.modules, name, None)
    otel.is_installed.cache_clear()
    request.addfinalizer(otel.is_installed.cache_clear)
    with otel.handling(TRACE, queue="emails", job_id="job 7", attempt=1):
        client.schedule("emails", 1)
    with pytest.raises(LookupError), otel.handling(TRACE, queue="emails", job_id="job 7", attempt=1):
        raise LookupError
    assert EXPORTER.get_finished_spans() == ()
    with TRACER.start_as_current_span("order"):
        client.schedule("emails", 1)
    assert traceparents(api_server) == [None, None]


# What a client sends


def test_outside_of_any_span_nothing_is_sent(client, api_server, monkeypatch, caplog):
    """Nor where a propagator fails: that makes no job fail."""

    def fail(carrier):
        raise RuntimeError("a propagator of somebody's")

    client.schedule("emails", 1)
    assert otel.current() is None
    monkeypatch.setattr(propagate, "inject", fail)
    with caplog.at_level(logging.WARNING), TRACER.start_as_current_span("order"):
        client.schedule("emails", 1)
    assert traceparents(api_server) == [None, None]
    assert "OpenTelemetry's propagators failed" in caplog.text


def test_retries_keep_the_current_span(client, api_server):
    api_server.script = [DROPPED]
    with TRACER.start_as_current_span("order") as span:
        client.schedule("emails", 1)
        asyncio.run(AsyncClient(client).schedule("emails", 1))
    assert traceparents(api_server) == [parent_of(span)] * 3


def test_schedule_many_uses_the_span_of_its_call(client, api_server):
    def jobs():
        for n in range(101):
            with TRACER.start_as_current_span("made"):
                yield NewJob(payload=n)

    with TRACER.start_as_current_span("order") as span:
        client.schedule_many("emails", jobs())
    assert traceparents(api_server) == [parent_of(span)] * 2


def test_trace_headers_are_not_signed(api_server):
    session = boto3.Session("AKIDEXAMPLE", "s", region_name="eu-west-1")
    with TRACER.start_as_current_span("order") as span:
        Client.connect(url=api_server.url, session=session).schedule("emails", 1)
    assert traceparents(api_server) == [parent_of(span)]
    (request,) = api_server.requests
    headers = request.headers
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert "host" in signed
    assert "traceparent" not in signed
