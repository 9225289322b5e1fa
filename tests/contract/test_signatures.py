"""By when a request must be signed, and that botocore signs with the machine's own clock, whatever AWS answers."""

from datetime import timedelta

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

from bench.counted import Meter
from dueline.aws.dynamodb import DynamoTable
from dueline.core import instant
from dueline.errors import DuelineError, Unavailable
from tests.builders import EMAILS, NOW
from tests.contract.answers import answer, answering, error

ROW = {"pk": "emails#0", "sk": "1"}
TWICE = Config(retries={"total_max_attempts": 2, "mode": "standard"})
TIMED_OUT = ReadTimeoutError(endpoint_url="https://aws")
DONE = (200, {"Attributes": {"owner": {"S": "me"}, "lease": {"S": "2"}, "fence": {"S": "3"}}})
A_MINUTE, AN_HOUR = timedelta(minutes=1), timedelta(hours=1)


class SigningClock:
    """The clock that botocore signs with. `signed` are the requests that were sent, by the time in their signatures."""

    def __init__(self, monkeypatch):
        self.now, self.passes, self.signed = NOW, timedelta(), []
        monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: self.now)
        # Before its second attempt botocore waits.
        monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)

    def table(self, *answers):
        client = boto3.client("dynamodb", config=TWICE)
        client.meta.events.register("before-send", self._note)
        return DynamoTable(answering("dynamodb", *answers, client=client), "jobs", state="state")

    def _note(self, request, **_):
        self.signed.append(request.headers["X-Amz-Date"].decode())
        self.now += self.passes


@pytest.fixture
def clock(monkeypatch):
    return SigningClock(monkeypatch)


def stamp(at):
    return at.strftime("%Y%m%dT%H%M%SZ")


def test_request_is_not_sent_when_signed_too_late(clock):
    table = clock.table((200, {}))
    assert table.add(ROW, signed_before=NOW) == ROW
    clock.now += timedelta(seconds=1)
    with pytest.raises(
        Unavailable, match=r"signed at 2026-11-21T07:05:01.000Z, and must be by 2026-11-21T07:05:00.000Z"
    ):
        table.add(ROW, signed_before=NOW)
    assert table.add(ROW) == ROW
    assert clock.signed == [stamp(NOW), stamp(clock.now)]


def test_second_attempt_is_signed_and_checked_again(clock):
    table, clock.passes = clock.table(TIMED_OUT, (200, {})), A_MINUTE
    assert table.add(ROW, signed_before=NOW + A_MINUTE) == ROW
    assert clock.signed == [stamp(NOW), stamp(NOW + A_MINUTE)]
    late = clock.table(TIMED_OUT, (200, {}))
    with pytest.raises(Unavailable, match="not sent"):
        late.add(ROW, signed_before=clock.now + timedelta(seconds=59))
    assert len(clock.signed) == 3


@pytest.mark.parametrize("call", ["acquire_lease", "checkpoint", "release"])
def test_fence_of_a_clock_that_was_set_back_is_not_sent(clock, call):
    table, made = clock.table(DONE), {"now": instant.text(NOW), "fence": instant.text(NOW + AN_HOUR)}
    calls = {
        "acquire_lease": lambda: table.acquire_lease(EMAILS, owner="me", lease="3", **made),
        "checkpoint": lambda: table.checkpoint(EMAILS, owner="me", cursor="1", lease="3", **made),
        "release": lambda: table.checkpoint(EMAILS, owner="me", cursor="1", lease="", fence=made["fence"]),
    }
    clock.now -= A_MINUTE
    calls[call]()
    clock.now -= timedelta(seconds=1)
    if call == "release":
        # It raises no fence: what it names is there.
        calls[call]()
        return
    with pytest.raises(Unavailable, match="the clock was set back"):
        calls[call]()
    assert clock.signed == [stamp(NOW - A_MINUTE)]


@pytest.mark.parametrize("code", ["RequestTimeTooSkewed", "InvalidSignatureException"])
def test_botocore_corrects_no_skew(clock, code):
    """A clock that AWS refuses stays refused: if botocore ever signs with another, FAR is to be thought over."""
    refused = error(code)
    # Two hours later, by AWS's clock.
    refused.headers["Date"] = "Sat, 21 Nov 2026 09:05:00 GMT"
    table = clock.table(refused)
    for _ in range(3):
        with pytest.raises(DuelineError, match=code):
            table.add(ROW)
    assert set(clock.signed) == {stamp(NOW)}
    accepted = answer(200, {})
    accepted.headers["Date"] = refused.headers["Date"]
    assert clock.table(accepted).add(ROW) == ROW
    assert set(clock.signed) == {stamp(NOW)}


@pytest.mark.parametrize("engine", ["moto"], indirect=True)
def test_row_that_is_there_comes_with_the_refusal(engine):
    table, meter = engine.table(), Meter(engine.dynamodb.meta)
    table.add({**ROW, "exact": True, "ttl": 7, "packed": b"\x00"})
    with meter.counting() as exchanges:
        assert table.add(ROW) == {**ROW, "exact": True, "ttl": 7, "packed": b"\x00"}
    assert [each.operation for each in exchanges] == ["PutItem"]
