from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core import instant

ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(datetime.fromisoformat("1970-01-02"), datetime.fromisoformat("2200-01-01"), timezones=ZONES)


@given(INSTANTS)
def test_instant_is_rounded_up_by_less_than_a_millisecond(at):
    rounded = instant.round_up(at)
    assert timedelta(0) <= rounded - at < timedelta(milliseconds=1)
    assert rounded.microsecond % 1000 == 0
    assert rounded.tzinfo is UTC


@given(INSTANTS)
def test_rounded_instant_survives_text_and_milliseconds(at):
    rounded = instant.round_up(at)
    assert instant.parse(instant.text(rounded)) == rounded
    assert instant.from_epoch_ms(instant.epoch_ms(rounded)) == rounded


@given(INSTANTS, INSTANTS)
def test_text_sorts_as_time_does(one, other):
    one, other = instant.round_up(one), instant.round_up(other)
    assert (instant.text(one) < instant.text(other)) == (one < other)


@pytest.mark.parametrize("read", [instant.round_up, instant.text])
def test_instant_without_a_zone_is_refused(read):
    with pytest.raises(ValueError, match="has no time zone"):
        read(datetime.fromisoformat("2026-01-01"))


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-01-01T00:00:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-12:00"]
)
def test_text_that_names_no_instant_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        instant.parse(text)
