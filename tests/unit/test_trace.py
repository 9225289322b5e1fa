"""The trace context that a job is scheduled in reaches its worker, whichever way it goes, and never makes it fail."""

import json
import random
import string
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.errors import InvalidJob
from dueline.model import rows
from dueline.model.job import Job
from dueline.model.message import Message
from dueline.model.request import Request
from dueline.model.trace import MAX_STATE_CHARACTERS, TraceContext
from dueline.model.units import write_units
from dueline.protocol.keys import Repeat
from functions.http import bodies
from tests.builders import NOW, a_job
from tests.system import System

AN_HOUR = 3600
PARENT = "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01"
ANOTHER = "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4d-3d7c1f0a2b4c0d6b-00"
TRACE = TraceContext(parent=PARENT, state="vendor=7,other=x y")
STATES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=MAX_STATE_CHARACTERS)
PARENTS = st.from_regex(r"00-[0-9a-f]{31}[1-9a-f]-[1-9a-f][0-9a-f]{15}-[0-9a-f]{2}", fullmatch=True)
TRACES = st.builds(TraceContext, parent=PARENTS, state=STATES)
NO_PARENTS = [
    "",
    PARENT + "-00",
    PARENT + "\n",
    PARENT.upper(),
    "01" + PARENT[2:],
    "ff" + PARENT[2:],
    PARENT[:-1] + "g",
    PARENT.replace("0d6a387e6d3b4b8e9f513d7c1f0a2b4c", "0" * 32),
    PARENT.replace("3d7c1f0a2b4c0d6a", "0" * 16),
    f"{PARENT},{ANOTHER}",
    PARENT.replace("01", "\u0660\u0661"),
]
NO_STATES = ["x" * (MAX_STATE_CHARACTERS + 1), "naïve=1", "a=1\nb=2", "\0"]


# Values


@pytest.mark.parametrize("parent", NO_PARENTS)
def test_what_is_no_traceparent_is_refused_as_a_value_and_is_none_in_headers(parent):
    with pytest.raises(InvalidJob, match=r"traceparent is .*: it must be 00, 32, 16 and 2 hexadecimal digits"):
        TraceContext(parent=parent)
    assert TraceContext.from_headers({"traceparent": parent, "tracestate": "vendor=7"}) is None


@pytest.mark.parametrize("state", NO_STATES)
def test_what_is_no_tracestate_is_refused_as_a_value_and_dropped_from_headers(state):
    with pytest.raises(InvalidJob, match=r"tracestate is .*: it must have at most 512 printable ASCII characters"):
        TraceContext(parent=PARENT, state=state)
    assert TraceContext.from_headers({"traceparent": PARENT, "tracestate": state}) == TraceContext(parent=PARENT)


@pytest.mark.parametrize("headers", [{}, {"tracestate": "vendor=7"}, {"traceparent": None}, {"traceparent": 5}])
def test_headers_without_a_traceparent_tell_of_no_trace(headers):
    assert TraceContext.from_headers(headers) is None


def test_the_names_of_headers_are_read_in_any_case():
    assert TraceContext.from_headers({"TraceParent": PARENT, "TRACESTATE": "vendor=7"}) == TraceContext(
        parent=PARENT, state="vendor=7"
    )


def test_no_tracestate_is_no_header():
    assert TraceContext(parent=PARENT).headers == {"traceparent": PARENT}


@given(TRACES)
def test_a_trace_is_read_as_it_was_written_in_headers_messages_and_rows(trace):
    job = a_job(trace=trace)
    assert TraceContext.from_headers(trace.headers) == trace
    assert Message.of(job).job() == Message.of(job).with_reason("gone").job() == job
    assert rows.read_job(rows.job_row(job)) == job


ANYTHING = st.text() | st.sampled_from([PARENT, *NO_PARENTS, *NO_STATES])


@given(st.fixed_dictionaries({}, optional={"traceparent": ANYTHING, "tracestate": ANYTHING}))
def test_no_trace_makes_a_message_or_a_row_fail(told):
    job = a_job()
    assert Message(body=job.payload, attributes={**Message.of(job).attributes, **told}).job().id == job.id
    assert rows.read_job({**rows.job_row(job), **told}).id == job.id


def test_who_does_not_trace_pays_for_nothing():
    job = a_job()
    assert not {"traceparent", "tracestate"} & {*rows.job_row(job), *Message.of(job).attributes}


def test_a_trace_costs_write_units_only_where_its_bytes_begin_another():
    traces = [None, TraceContext(parent=PARENT), TraceContext(parent=PARENT, state="s" * MAX_STATE_CHARACTERS)]
    full = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=880))
    units = [[write_units(rows.job_row(a_job(payload=each, trace=trace))) for trace in traces] for each in ("{}", full)]
    assert units == [[1, 1, 1], [1, 1, 2]]


# The way of a job


def traces_in(queue):
    return [TraceContext.from_headers(delivery.message.attributes) for delivery in queue.deliveries]


def submitted(system, **request):
    (job,) = system.submit(Request(**{"payload": {}, "trace": TRACE} | request))
    assert isinstance(job, Job), job
    return job


def test_a_direct_job_comes_with_its_trace():
    system = System()
    submitted(system)
    assert traces_in(system.queues["emails"]) == [TRACE]


@pytest.mark.parametrize("payload", [{}, "x" * 20_000])
def test_a_job_by_the_table_comes_with_its_trace_large_or_not(payload):
    system = System()
    system.breakers["emails"].trip()
    submitted(system, payload=payload, delay=AN_HOUR)
    system.ingest()
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert traces_in(system.inbound) == traces_in(system.queues["emails"]) == [TRACE]


def test_a_late_job_comes_with_its_trace():
    system = System()
    submitted(system, delay=AN_HOUR)
    system.clock.sleep(AN_HOUR)
    system.tick()
    system.ingest()
    assert traces_in(system.queues["emails"]) == [TRACE]


def test_a_parked_job_keeps_its_trace():
    system = System()
    submitted(system, delay=AN_HOUR)
    system.ingest()
    system.queues["emails"].gone = True
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert traces_in(system.dead_letters) == [TRACE]


def test_a_job_that_is_moved_keeps_its_trace():
    system = System()
    job = submitted(system, delay=AN_HOUR)
    system.ingest()
    moved = system.reschedule(job.id, at=NOW + timedelta(hours=2))
    system.ingest()
    system.clock.sleep(2 * AN_HOUR)
    system.tick()
    assert system.arrived() == [moved]
    assert traces_in(system.queues["emails"]) == [TRACE]


def test_a_repeat_under_a_key_is_one_whatever_its_trace_and_the_first_jobs_is_kept():
    system = System()
    submitted(system, key="order 17")
    assert isinstance(submitted(system, key="order 17", trace=TraceContext(parent=ANOTHER)), Repeat)
    assert traces_in(system.queues["emails"]) == [TRACE]


def test_a_job_under_a_key_that_was_not_submitted_the_first_time_comes_with_its_trace():
    system = System()
    system.queues["emails"].gone = True
    system.submit(Request(payload={}, key="order 17"))
    system.queues["emails"].gone = False
    submitted(system, key="order 17")
    assert traces_in(system.queues["emails"]) == [TRACE]


# What is posted


def test_the_trace_of_a_request_is_that_of_each_of_its_jobs():
    one = bodies.read_jobs('{"payload": 1}', trace=TRACE)
    many = bodies.read_jobs(json.dumps({"jobs": [{"payload": 1}, {"payload": 2}]}), trace=TRACE)
    assert [each.trace for each in (one, *many)] == [TRACE] * 3
