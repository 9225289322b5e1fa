"""The time as a service's answers show it."""

import math
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from unittest.mock import Mock

import boto3
import pytest
from botocore.config import Config
from hypothesis import given
from hypothesis import strategies as st

from dueline.aws.server_clock import ServiceClock
from dueline.core.clock import LearnedTime, Skew
from dueline.errors import Unavailable
from tests.fake_api_server import DROPPED
from tests.waiting import HANG_SECONDS


@pytest.fixture
def sqs(api_server):
    keys = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "s", "region_name": "eu-west-1"}
    return boto3.client("sqs", endpoint_url=api_server.url, config=Config(retries={"total_max_attempts": 1}), **keys)


@pytest.mark.parametrize("ahead", [-86_400, 0, 86_400])
def test_first_response_corrects_a_wrong_clock(sqs, ahead):
    clock = ServiceClock(lambda: time.time() + ahead)
    clock.listen_to(sqs)
    sqs.list_queues()
    behind = datetime.now(UTC) - clock.now()
    assert timedelta() <= behind < timedelta(seconds=HANG_SECONDS)


def test_request_that_is_not_sent_says_why(sqs):
    """botocore calls who listens to answers all the same."""
    ServiceClock().listen_to(sqs)
    sqs.meta.events.register_first("before-send.sqs", Mock(side_effect=Unavailable("not sent")))
    with pytest.raises(Unavailable, match="not sent"):
        sqs.list_queues()


def test_local_time_counts_before_any_response(sqs, api_server):
    clock = ServiceClock(lambda: time.time() + 2 * HANG_SECONDS)
    clock.listen_to(sqs)
    api_server.respond = lambda _: DROPPED
    with pytest.raises(Exception, match="Connection was closed"):
        sqs.list_queues()
    assert api_server.requests
    assert timedelta(seconds=HANG_SECONDS) < clock.now() - datetime.now(UTC) <= timedelta(seconds=2 * HANG_SECONDS)


class Virtual(ServiceClock):
    """A clock whose time passes while it rests; `looked` counts its looks at AWS, whose time is `ahead`."""

    def __init__(self, *, ahead):
        self.local, self.ahead, self.looked = 1_000_000.3, ahead, 0
        super().__init__(lambda: self.local)

    def monotonic(self):
        return self.local

    def _rests(self, seconds):
        self.local += seconds
        if self.local > 1_000_100:
            self.close()
        return super()._rests(0)

    def look(self):
        self.looked += 1
        if self.looked == 3:
            raise Unavailable("down")
        self._note_sent()
        self.local += 0.002
        date = format_datetime(datetime.fromtimestamp(int(self.local + self.ahead), UTC), usegmt=True)
        self._note_received({"headers": {"date": date}})


@pytest.mark.parametrize("ahead", [-3600.0, -0.4, 0.0, 2.75])
def test_exact_clock_reads_aws_seldom_once_exact(ahead):
    clock = Virtual(ahead=ahead)
    started = clock.local
    clock._keep_exact(clock.look)
    behind = clock.local + ahead - clock.now().timestamp()
    assert 0 <= behind < 0.03
    assert clock.looked <= 10
    assert clock.local - started > 60


class Machine:
    """A machine whose clock may be set, and that may sleep, which its monotonic clock does not count."""

    def __init__(self):
        self.true, self.set_by, self.slept = 1_000_000.0, 0.0, 0.0
        self.time = LearnedTime(wall=lambda: self.true + self.set_by, monotonic=lambda: self.true - self.slept)

    def request(self):
        sent = self.time.sent()
        self.true += 0.01
        self.time.learn(format_datetime(datetime.fromtimestamp(int(self.true), UTC), usegmt=True), sent=sent)


@pytest.mark.parametrize("set_by", [-3600.0, -0.45, 0.45, 3600.0])
def test_set_clock_makes_no_time_wrong(set_by):
    machine = Machine()
    machine.request()
    machine.set_by = set_by
    for _ in range(2):
        moment = machine.time.moment()
        assert moment is None or moment.earliest.timestamp() <= machine.true <= moment.latest.timestamp()
        machine.request()
    assert moment is not None


def test_time_is_unknown_after_sleep():
    machine = Machine()
    machine.request()
    machine.time.learn("Fri, 31 Dec 9999 23:59:59 GMT", sent=machine.time.sent())
    assert machine.time.moment().earliest.timestamp() <= machine.true
    machine.true, machine.slept = machine.true + 7200, 7200
    assert machine.time.moment() is None
    assert machine.time.skew.behind == math.inf


# How far a clock is off another that shows whole seconds


SKEWS = st.floats(-1e5, 1e5)
EXCHANGES = st.lists(st.tuples(st.floats(0, 3600), st.floats(0.001, 5), st.floats(0.001, 5)), min_size=1, max_size=20)


def learned(skew, exchanges, cached=None):
    """Return what is known after requests, each sent at a second and taking so long to get there and back."""
    cached = cached or Skew()
    for sent, there, back in exchanges:
        answer = math.floor(sent + there + skew)
        cached = cached.learned(answer, sent=sent, received=sent + there + back)
    return cached


@given(skew=SKEWS, exchanges=EXCHANGES)
def test_corrected_time_is_never_ahead(skew, exchanges):
    cached = learned(skew, exchanges)
    assert cached.low <= skew + 1e-9
    assert skew < cached.high + 1e-9
    assert skew - cached.low <= 1 + min(back for _, _, back in exchanges) + 1e-6


@given(before=SKEWS, change=st.one_of(st.floats(-1e4, -20), st.floats(20, 1e4)), exchanges=EXCHANGES)
def test_clock_that_was_set_is_learned_again(before, change, exchanges):
    cached = learned(before + change, exchanges, learned(before, exchanges))
    assert cached.low <= before + change + 1e-9
    assert before + change < cached.high + 1e-9
