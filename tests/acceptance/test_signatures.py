"""AWS refuses a request whose signature is over 15 minutes from its own clock: that a job is far rests on it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.exceptions import ClientError

from dueline.config.names import Names
from dueline.core.partitions import SIGNATURE_LIVES

A_MINUTE = timedelta(minutes=1)
CODES = ("RequestExpired", "InvalidSignatureException", "RequestTimeTooSkewed", "SignatureDoesNotMatch")


@pytest.fixture
def put(names: Names, session: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    client = session.client("dynamodb")

    def put(skew: timedelta) -> None:
        """Put a row, which TTL collects, by a clock that is so far off."""
        monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: datetime.now(UTC) + skew)
        key = {"pk": {"S": "skewed"}, "sk": {"S": str(skew)}}
        ttl = {"ttl": {"N": str(int((datetime.now(UTC) + SIGNATURE_LIVES).timestamp()))}}
        client.put_item(TableName=names.table, Item={**key, **ttl})

    return put


@pytest.mark.parametrize("minutes", [0, 1, -1])
def test_signature_of_a_clock_that_is_nearly_right_is_accepted(put: Callable[[timedelta], None], minutes: int) -> None:
    put(timedelta(minutes=minutes))


@pytest.mark.aws_only("the local AWS checks no signature's time")
@pytest.mark.parametrize("sign", [1, -1], ids=["ahead", "behind"])
def test_skewed_signature_is_refused(put: Callable[[timedelta], None], sign: int) -> None:
    with pytest.raises(ClientError) as raised:
        put(sign * (SIGNATURE_LIVES + A_MINUTE))
    assert raised.value.response["Error"]["Code"] in CODES
