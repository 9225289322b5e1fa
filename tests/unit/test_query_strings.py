"""What a query string may select in a listing."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core import instant
from dueline.core.listing import FAR_END, Span, place_text
from dueline.errors import InvalidJob
from functions.http.requests import JobsQuery, validate
from tests.builders import NOW


def read_span(query, *, now):
    return validate(JobsQuery, query).span(now=now)


PLACE = "2026-12-01T00:00:00.000Z#00000000-0000-4000-8000-000000000000#job"


def test_empty_query_is_the_first_20_from_now():
    assert read_span({}, now=NOW) == Span(start=NOW, end=FAR_END, limit=20)


def test_times_of_a_query_may_have_any_zone():
    query = {"from": "2030-01-01T09:00:00+01:00", "to": "2030-01-02T00:00:00Z", "limit": "100"}
    berlin = timezone(timedelta(hours=1))
    assert read_span(query, now=NOW) == Span(
        start=datetime(2030, 1, 1, 9, tzinfo=berlin), end=datetime(2030, 1, 2, tzinfo=UTC), limit=100
    )


def test_next_page_starts_where_the_last_ended():
    query = {"next": place_text(PLACE)}
    assert read_span(query, now=NOW + timedelta(days=999)) == Span(start=instant.EPOCH, after=PLACE)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"from": "soon"}, ["from is", "soon", "ISO 8601"]),
        ({"from": "2030-01-01T00:00:00"}, ["from is", "zone"]),
        ({"to": "2030-01-01T00:00:00 01:00"}, ["to is", "zone"]),
        ({"from": "1969-12-31T23:59:59Z"}, ["from is 1969", "1970-01-01", "9999-01-01"]),
        ({"to": "9999-12-31T23:59:59.999999Z"}, ["to is 9999-12-31", "9999-01-01"]),
        ({"from": "0001-01-01T00:00:00+23:59"}, ["from is", "zone"]),
        ({"to": "2026-01-01T00:00:00Z"}, ["to is 2026-01-01", "before from", instant.text(NOW)]),
        ({"limit": "0"}, ['limit is "0"', "from 1 to 100"]),
        ({"limit": "101"}, ['limit is "101"', "from 1 to 100"]),
        ({"limit": "9" * 5000}, ["limit is", "from 1 to 100"]),
        ({"limit": "1.5"}, ['limit is "1.5"', "from 1 to 100"]),
        ({"limit": "٣"}, ["limit is", "from 1 to 100"]),
        ({"limit": ""}, ['limit is ""', "from 1 to 100"]),
        ({"next": ""}, ['next is ""', "earlier answer"]),
        ({"next": "abc"}, ['next is "abc"', "earlier answer"]),
        ({"start": "2030-01-01T00:00:00Z"}, ["start is no field: there are from, to, limit, next"]),
        ({"limit": "x", "next": "x"}, ["limit is", "next is"]),
    ],
)
def test_wrong_query_is_refused_with_what_is_allowed(query, reason):
    with pytest.raises(InvalidJob) as refused:
        read_span(query, now=NOW)
    assert all(part in str(refused.value) for part in reason), str(refused.value)


@given(st.dictionaries(st.sampled_from(["from", "to", "limit", "next"]), st.text()))
def test_any_query_is_read_or_refused(query):
    with suppress(InvalidJob):
        assert 1 <= read_span(query, now=NOW).limit <= 100
