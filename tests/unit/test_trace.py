"""The trace context that a job is scheduled in reaches its worker, whichever way it goes, and never makes it fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core import rows
from dueline.core.message import Message
from dueline.core.trace import MAX_STATE_CHARACTERS, TraceContext
from dueline.errors import InvalidJob
from tests.builders import a_job

PARENT = "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01"
STATES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=MAX_STATE_CHARACTERS)
PARENTS = st.from_regex(r"00-[0-9a-f]{31}[1-9a-f]-[1-9a-f][0-9a-f]{15}-[0-9a-f]{2}", fullmatch=True)
TRACES = st.builds(TraceContext, parent=PARENTS, state=STATES)
NO_PARENTS = [
    PARENT + "-00",
    PARENT + "\n",
    PARENT.upper(),
    "01" + PARENT[2:],
    PARENT[:-1] + "g",
    PARENT.replace("0d6a387e6d3b4b8e9f513d7c1f0a2b4c", "0" * 32),
    PARENT.replace("3d7c1f0a2b4c0d6a", "0" * 16),
    PARENT.replace("01", "\u0660\u0661"),
]
NO_STATES = ["x" * (MAX_STATE_CHARACTERS + 1), "naïve=1", "a=1\nb=2", "\0"]


# Values


@pytest.mark.parametrize("parent", NO_PARENTS)
def test_bad_traceparent_is_refused_or_ignored(parent):
    with pytest.raises(InvalidJob, match=r"traceparent is .*: it must be 00, 32, 16 and 2 hexadecimal digits"):
        TraceContext(parent=parent)
    assert TraceContext.from_headers({"traceparent": parent, "tracestate": "vendor=7"}) is None


@pytest.mark.parametrize("state", NO_STATES)
def test_bad_tracestate_is_refused_or_dropped(state):
    with pytest.raises(InvalidJob, match=r"tracestate is .*: it must have at most 512 printable ASCII characters"):
        TraceContext(parent=PARENT, state=state)
    assert TraceContext.from_headers({"traceparent": PARENT, "tracestate": state}) == TraceContext(parent=PARENT)


@pytest.mark.parametrize("headers", [{}, {"tracestate": "vendor=7"}, {"traceparent": None}, {"traceparent": 5}])
def test_missing_traceparent_is_no_trace(headers):
    assert TraceContext.from_headers(headers) is None


def test_names_of_headers_are_read_in_any_case():
    assert TraceContext.from_headers({"TraceParent": PARENT, "TRACESTATE": "vendor=7"}) == TraceContext(
        parent=PARENT, state="vendor=7"
    )


@given(TRACES)
def test_trace_survives_headers_messages_and_rows(trace):
    job = a_job(trace=trace)
    assert TraceContext.from_headers(trace.headers) == trace
    assert Message.of(job).job() == Message.of(job).with_reason("gone").job() == job
    assert rows.read_job(rows.job_row(job)) == job
