"""The time as a service's answers tell it, over real sockets."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import boto3
import pytest
from botocore.config import Config

from dueline.aws.service_clock import ServiceClock
from dueline.errors import Unavailable
from tests.gate import DROPPED, open_gate, told
from tests.waiting import HANG_SECONDS


@pytest.fixture
def gate():
    with open_gate() as opened:
        opened.api = lambda _: told({})
        yield opened


@pytest.fixture
def sqs(gate):
    keys = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "s", "region_name": "eu-west-1"}
    return boto3.client("sqs", endpoint_url=gate.url, config=Config(retries={"total_max_attempts": 1}), **keys)


@pytest.mark.parametrize("ahead", [-86_400, 0, 86_400])
def test_a_clock_that_is_wrong_is_put_right_by_the_first_answer_and_never_goes_ahead(sqs, ahead):
    clock = ServiceClock(lambda: time.time() + ahead)
    clock.listen_to(sqs)
    sqs.list_queues()
    behind = datetime.now(UTC) - clock.now()
    assert timedelta() <= behind < timedelta(seconds=HANG_SECONDS)


def test_before_any_answer_and_after_one_that_was_lost_the_local_time_counts(sqs, gate):
    clock = ServiceClock(lambda: time.time() + 2 * HANG_SECONDS)
    clock.listen_to(sqs)
    gate.api = lambda _: DROPPED
    with pytest.raises(Exception, match="Connection was closed"):
        sqs.list_queues()
    assert gate.asked
    assert timedelta(seconds=HANG_SECONDS) < clock.now() - datetime.now(UTC) <= timedelta(seconds=2 * HANG_SECONDS)


class Virtual(ServiceClock):
    """A clock whose time passes while it rests; `looked` counts its looks at AWS, whose time is `ahead`."""

    def __init__(self, *, ahead):
        self.local, self.ahead, self.looked = 1_000_000.3, ahead, 0
        super().__init__(lambda: self.local)

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
def test_an_exact_clock_looks_until_it_knows_the_time_and_then_seldom_and_faults_do_not_end_it(ahead):
    clock = Virtual(ahead=ahead)
    begun = clock.local
    clock._keep_exact(clock.look)
    behind = clock.local + ahead - clock.now().timestamp()
    assert 0 <= behind < 0.03
    assert clock.looked <= 10
    assert clock.local - begun > 60
