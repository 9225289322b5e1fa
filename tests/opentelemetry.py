"""OpenTelemetry's SDK, whose provider is set once a process, with the spans that end kept in memory."""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

EXPORTER = InMemorySpanExporter()
_PROVIDER = TracerProvider(shutdown_on_exit=False)
_PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))
trace.set_tracer_provider(_PROVIDER)
TRACER = trace.get_tracer("tests")


def parent_of(span: trace.Span) -> str:
    """Return the traceparent of a span."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
