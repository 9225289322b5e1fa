"""The trace context of a request, on the message that a plain consumer gets."""

from typing import Any

import httpx

from tests.e2e.early import TRACE, Job, schedule
from tests.e2e.inbox import Receive


def trace_of(message: dict[str, Any]) -> dict[str, str]:
    attributes = message["MessageAttributes"]
    return {name: attributes[name]["StringValue"] for name in ("traceparent", "tracestate") if name in attributes}


def test_a_job_by_the_table_and_a_direct_one_arrive_with_the_trace_of_their_request(
    http: httpx.Client, early: dict[str, Job], receive: Receive
) -> None:
    direct, by_the_table = schedule(http, "archive", payload=1, headers=TRACE), early["traced"]
    assert (direct["route"], by_the_table["route"]) == ("direct", "table")
    assert [trace_of(receive(job["id"])) for job in (direct, by_the_table)] == [TRACE, TRACE]


def test_all_jobs_of_a_request_have_its_trace(http: httpx.Client, receive: Receive) -> None:
    answer = http.post("/queues/archive/jobs", json={"jobs": [{"payload": n} for n in range(2)]}, headers=TRACE)
    assert [trace_of(receive(job["id"])) for job in answer.json()["jobs"]] == [TRACE, TRACE]


def test_a_job_is_scheduled_whatever_its_headers_of_a_trace_are(http: httpx.Client, receive: Receive) -> None:
    job = schedule(http, "archive", payload=1, headers={"traceparent": "no good", "tracestate": "x" * 600})
    assert trace_of(receive(job["id"])) == {}
