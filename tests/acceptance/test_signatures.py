"""AWS refuses a request whose signature is over 15 minutes from its own clock: that a job is far rests on it."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.exceptions import ClientError

from dueline.config.names import Names
from dueline.core.partitions import SIGNATURE_LIVES

CODES = ("RequestExpired", "InvalidSignatureException", "RequestTimeTooSkewed", "SignatureDoesNotMatch")


@pytest.mark.aws_only("the local AWS checks no signature's time")
@pytest.mark.parametrize("sign", [1, -1], ids=["ahead", "behind"])
def test_skewed_signature_is_refused(
    names: Names, session: boto3.Session, monkeypatch: pytest.MonkeyPatch, sign: int
) -> None:
    client, skew = session.client("dynamodb"), sign * (SIGNATURE_LIVES + timedelta(minutes=1))
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: datetime.now(UTC) + skew)
    with pytest.raises(ClientError) as raised:
        client.get_item(TableName=names.table, Key={"pk": {"S": "skewed"}, "sk": {"S": str(skew)}})
    assert raised.value.response["Error"]["Code"] in CODES
