"""DynamoDB's TTL on the table of jobs, as moto keeps it; what DynamoDB refuses besides is made up."""

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from dueline.aws import clients
from dueline.aws.dynamodb import DynamoTimeToLive
from dueline.errors import NotYet, Unavailable
from tests.contract.engines import LONGEST, create_table

STATUS = {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED"}, "ResponseMetadata": {"RequestId": "1"}}


@pytest.fixture
def client(session):
    client = clients.client("dynamodb", session, longest=LONGEST)
    create_table(client, "jobs")
    return client


def test_switching_ttl_twice_is_no_error(client):
    ttl = DynamoTimeToLive(client, "jobs")
    assert not ttl.is_on()
    for on in (True, True, False, False):
        ttl.switch(on=on)
        assert ttl.is_on() == on
    ttl.switch(on=True)
    assert client.describe_time_to_live(TableName="jobs")["TimeToLiveDescription"]["AttributeName"] == "ttl"


@pytest.mark.parametrize(("status", "is_on"), [("ENABLING", True), ("DISABLING", False)])
def test_ttl_that_is_being_switched_counts_as_switched(client, status, is_on):
    with Stubber(client) as switching:
        described = STATUS | {"TimeToLiveDescription": {"TimeToLiveStatus": status}}
        switching.add_response("describe_time_to_live", described)
        assert DynamoTimeToLive(client, "jobs").is_on() == is_on


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [("ValidationException", "has been modified", NotYet), ("AccessDeniedException", "AccessDenied", Unavailable)],
)
def test_second_change_in_an_hour_is_not_yet(client, code, message, error):
    with Stubber(client) as refusing:
        refusing.add_response("describe_time_to_live", STATUS)
        refusing.add_client_error("update_time_to_live", code, message)
        with pytest.raises(error, match=f"switching the TTL of jobs off: .*{message}") as raised:
            DynamoTimeToLive(client, "jobs").switch(on=False)
    assert raised.type is error
    assert isinstance(raised.value.__cause__, ClientError)
