"""Bodies and query strings: what is wrong with a field is reported, whatever it holds."""

import json
from dataclasses import replace

import pytest

from dueline.client.models import ScheduledJob, job_json
from dueline.core import instant
from dueline.core.listing import FAR_END, Span, place_text
from dueline.core.ports import Pointer
from dueline.core.request import Request
from dueline.core.trace import TraceContext
from dueline.errors import InvalidJob
from dueline.functions.http import requests
from dueline.functions.http.requests import JobsQuery, validate
from tests.builders import NOW, a_job


@pytest.mark.parametrize("depth", [100, 300_000])
@pytest.mark.parametrize("form", ['{"payload":1,"tenant":%s}', '{"jobs":{"a":%s}}', "%s"])
def test_deeply_nested_field_is_refused(form, depth):
    with pytest.raises(InvalidJob, match=r"^(tenant|jobs|body) is ") as error:
        requests.read_jobs(form % ("[" * depth + "]" * depth))
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("value", [{"a": [1, None]}, "ü", "x" * 200, [1] * 99, [[]] * 99, True])
def test_wrong_value_is_quoted_and_cut(value):
    with pytest.raises(InvalidJob) as error:
        requests.read_jobs(json.dumps({"payload": 1, "at": value}))
    assert str(error.value).startswith(f"at is {json.dumps(value)[:100]}: must be")


def test_three_wrong_fields_are_named():
    with pytest.raises(InvalidJob) as error:
        requests.read_jobs(json.dumps({"payload": 1} | {f"column_{n}": n for n in range(150)}))
    first, second, third, more = str(error.value).split("; ")
    assert [each.partition(" ")[0] for each in (first, second, third)] == ["column_0", "column_1", "column_2"]
    assert more == "and 147 more"


@pytest.mark.parametrize("form", [requests.JobBody, requests.JobsBody, JobsQuery])
def test_too_many_fields_are_refused_unread(form):
    many = {str(number): "" for number in range(1001)}
    with pytest.raises(InvalidJob, match=r'^body is {"0": "".*: at most 1000 fields are allowed, and it has 1001$'):
        validate(form, many)


def test_answer_about_500_wrong_jobs_fits_lambda():
    wrong = {"é" * 50 + str(n): n for n in range(30)}
    results = requests.read_jobs(json.dumps({"jobs": [wrong] * 500}))
    assert sum(len(json.dumps(json.dumps(str(each)))) for each in results) < 6_000_000 / 2


def test_key_of_a_batch_has_room_for_its_numbers():
    body = json.dumps({"jobs": [{"payload": 1}] * 11})
    calls = [request.call for request in requests.read_jobs(body, call="k" * 252)]
    assert calls == [f"{'k' * 252}#{index}" for index in range(11)]
    with pytest.raises(InvalidJob, match="Idempotency-Key has 253 characters: with 11 jobs it has at most 252"):
        requests.read_jobs(body, call="k" * 253)


def test_job_becomes_a_request_with_all_its_fields():
    fields = {"payload": [1], "delay": 5, "key": "k", "kind": "welcome", "tenant": "acme", "priority": 2}
    fields["if_exists"] = "replace"
    of_header = {"call": "header", "trace": TraceContext(parent=f"00-{'1' * 32}-{'2' * 16}-01")}
    request = requests.read_jobs(json.dumps(fields), **of_header)
    assert request == Request(**fields, **of_header)
    own = requests.read_jobs(json.dumps(fields | {"idempotency_key": "own"}), **of_header)
    assert own == replace(request, call="own")


@pytest.mark.parametrize("one", ["1", "1.0", "0.1e1"])
def test_number_without_a_fraction_is_an_integer(one):
    size = requests.read_body(requests.UploadBody, f'{{"bytes": {one}, "sha256": "{"0" * 64}"}}').bytes
    request = requests.read_jobs(f'{{"payload": 1, "priority": {one}}}')
    assert (size, type(size)) == (request.priority, type(request.priority)) == (1, int)


@pytest.mark.parametrize("size", ["1.5", '"2"', "true", "1e400", "null"])
def test_no_integer_is_refused(size):
    with pytest.raises(InvalidJob, match=r"^bytes is "):
        requests.read_body(requests.UploadBody, f'{{"bytes": {size}, "sha256": "{"0" * 64}"}}')
    with pytest.raises(InvalidJob, match=r"^priority is .*: .*valid integer"):
        requests.read_jobs(f'{{"payload": 1, "priority": {size}}}')


def test_answer_has_all_of_a_scheduled_job():
    own = {"key": "k", "kind": "welcome", "tenant": "acme", "priority": 2, "schedule": "digest"}
    parent = f"00-{'1' * 32}-{'2' * 16}-01"
    of_run = {"scheduled_for": NOW, "trace": TraceContext(parent=parent)}
    pointer = Pointer(bucket="b", key="k")
    answer = job_json(ScheduledJob.of_job(a_job(payload=pointer.text, offloaded_bytes=7, **own, **of_run)))
    rest = {"state": "scheduled", "scheduled_for": instant.text(NOW), "traceparent": parent, **own}
    rest["payload_at"] = {"bucket": "b", "key": "k", "bytes": 7}
    assert answer.items() >= rest.items()
    assert answer.keys() - rest == {"id", "queue", "due", "route"}


# Query strings of a listing


BEYOND_ALL_JOBS = {"from": "1969-12-31T23:59:59Z", "to": "9999-12-31T23:59:59Z"}
PLACE = "2026-12-01T00:00:00.000Z#00000000-0000-4000-8000-000000000000#job"


@pytest.mark.parametrize(
    ("query", "span"),
    [
        ({}, Span(start=NOW, end=FAR_END, limit=20)),
        (BEYOND_ALL_JOBS, Span(start=instant.EPOCH, end=FAR_END, limit=20)),
        ({"next": place_text(PLACE)}, Span(start=instant.EPOCH, after=PLACE)),
    ],
)
def test_query_is_the_first_20_from_now_or_a_place(query, span):
    assert validate(JobsQuery, query).span(now=NOW) == span


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"from": "soon"}, ["from is", "soon", "ISO 8601"]),
        ({"from": "2030-01-01T00:00:00"}, ["from is", "zone"]),
        ({"from": "0001-01-01T00:00:00+23:59"}, ["from is", "zone"]),
        ({"to": "2026-01-01T00:00:00Z"}, ["to is 2026-01-01", "before from", instant.text(NOW)]),
        ({"limit": "0"}, ['limit is "0"', "greater than or equal to 1"]),
        ({"limit": "101"}, ['limit is "101"', "less than or equal to 100"]),
        ({"limit": "9" * 5000}, ["limit is", "integer"]),
        ({"next": ""}, ['next is ""', "earlier answer"]),
        ({"next": "abc"}, ['next is "abc"', "earlier answer"]),
        ({"start": "2030-01-01T00:00:00Z"}, ["start is no field: there are from, to, limit, next"]),
        ({"limit": "x", "next": "x"}, ["limit is", "next is"]),
    ],
)
def test_wrong_query_names_what_is_allowed(query, reason):
    with pytest.raises(InvalidJob) as refused:
        validate(JobsQuery, query).span(now=NOW)
    assert all(part in str(refused.value) for part in reason), str(refused.value)
