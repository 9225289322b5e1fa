"""OpenTelemetry, if its API is installed: a job is handled in the trace that it was scheduled in.

Nothing here makes a job fail, or imports OpenTelemetry before it is needed. Attributes and the span's name are those of
https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dueline import __version__
from dueline.core.trace import TraceContext

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, Tracer

logger = logging.getLogger(__name__)


@cache
def is_installed() -> bool:
    """Return whether OpenTelemetry's API is there, and import it if so. Later calls import nothing.

    An import takes a lock each time it finds nothing. A process that is forked meanwhile never gets it.
    """
    try:
        if find_spec("opentelemetry.propagate") is None:
            return False
        import opentelemetry.propagate
        import opentelemetry.trace  # noqa: F401
    except ImportError:
        return False
    return True


def current() -> TraceContext | None:
    """Return the current trace context, as a request would carry it; None if there is none."""
    if not is_installed():
        return None
    carrier: dict[str, str] = {}
    try:
        from opentelemetry import context, propagate

        # Each propagator would look for its own in an empty one.
        if not context.get_current():
            return None
        propagate.inject(carrier)
    except Exception:
        # Which propagators there are, the environment says, and any package may bring one.
        logger.warning("no trace context: OpenTelemetry's propagators failed", exc_info=True)
        return None
    return TraceContext.from_headers(carrier)


@contextmanager
def handling(
    job_trace: TraceContext | None,
    *,
    queue: str,
    job_id: str,
    attempt: int,
    kind: str | None = None,
    expected: tuple[type[BaseException], ...] = (),
) -> Iterator[None]:
    """Run a job's handler in a span `process {queue}` of kind CONSUMER.

    The first attempt is a child of the job's trace context. Later attempts begin a trace of their own, with a link to
    it, because nobody reads a trace of many attempts over days. Without a trace context the span is a child of the
    current one. An exception is recorded in the span and raised; an `expected` one is only raised. Without
    OpenTelemetry it does nothing.
    """
    if not is_installed():
        yield
        return
    from opentelemetry import trace

    context, links = (None, []) if job_trace is None else _place_of(job_trace, is_first=attempt == 1)
    with _tracer().start_as_current_span(
        f"process {queue}",
        context=context,
        kind=trace.SpanKind.CONSUMER,
        attributes=_attributes(queue, job_id, attempt, kind),
        links=links,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except expected:
            raise
        except Exception as error:
            _record(error, span)
            raise


@cache
def _tracer() -> "Tracer":
    from opentelemetry import trace

    return trace.get_tracer("dueline", __version__)


def _place_of(job_trace: TraceContext, *, is_first: bool) -> "tuple[Context, list[Link]]":
    """Return the context that an attempt's span begins in, and its links."""
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    scheduled = trace.get_current_span(TraceContextTextMapPropagator().extract(job_trace.headers, Context()))
    if is_first:
        return trace.set_span_in_context(scheduled), []
    return trace.set_span_in_context(trace.INVALID_SPAN), [trace.Link(scheduled.get_span_context())]


def _attributes(queue: str, job_id: str, attempt: int, kind: str | None) -> dict[str, str | int]:
    return {
        "messaging.system": "aws_sqs",
        "messaging.destination.name": queue,
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.message.id": job_id,
        "dueline.attempt": attempt,
        **({} if kind is None else {"dueline.kind": kind}),
    }


def _record(error: Exception, span: "Span") -> None:
    from opentelemetry.trace import Status, StatusCode

    name = type(error).__qualname__
    # It has no text where the error's own cannot be made.
    with suppress(Exception):
        span.record_exception(error)
    span.set_attribute("error.type", name)
    span.set_status(Status(StatusCode.ERROR, name))
