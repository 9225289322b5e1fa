"""How a redrive finds its queues on AWS, over real sockets."""

import json

import boto3
import pytest

from dueline.aws import redrive_queues
from dueline.core.message import Message
from dueline.errors import DeploymentNotFound, Forbidden, QueueNotFound, Unavailable
from tests.fake_api_server import DROPPED, fake_api_server, json_reply

URLS = ["https://sqs/1/dueline_emails", "https://sqs/1/dueline_emails_p2"]


@pytest.fixture
def api_server(monkeypatch):
    with fake_api_server() as opened:
        monkeypatch.setenv("AWS_ENDPOINT_URL", opened.url)
        yield opened


@pytest.fixture
def session():
    return boto3.Session("AKIDEXAMPLE", "s", region_name="eu-west-1")


def parameter(**value):
    return json_reply({"Parameter": {"Value": json.dumps(value)}})


def refusal(code, status=400):
    return json_reply({"__type": code, "message": "why"}, status)


def urls_of(ends):
    return ends.dead_letters._url, [queue._url for queue in ends.queues]


def test_dead_letters_are_found_by_the_queues_parameter(api_server, session):
    api_server.script = [parameter(url=URLS[0], urls=URLS, work={"dead_letters": "https://sqs/1/elsewhere"})]
    result = redrive_queues.queue_dead_letters("dueline", "emails", session=session)
    assert urls_of(result) == ("https://sqs/1/elsewhere", URLS)
    assert api_server.requests[0].json == {"Name": "/dueline/dueline/queues/emails"}


def test_queue_without_published_workers_is_known_by_its_name(api_server, session):
    api_server.script = [parameter(url=URLS[0], urls=URLS)]
    result = urls_of(redrive_queues.queue_dead_letters("dueline", "emails", session=session))
    assert result == ("https://sqs/1/dueline_emails_dlq", URLS)


def test_parked_jobs_are_found_by_the_deployments_settings(api_server, session):
    api_server.script = [parameter(queue_urls="https://sqs/1/", lookahead=240)]
    result = urls_of(redrive_queues.parked_dead_letters("sandbox", session=session))
    assert result == ("https://sqs/1/sandbox-dispatch-dlq", ["https://sqs/1/sandbox-inbound"])
    assert api_server.requests[0].json == {"Name": "/dueline/sandbox/settings"}


@pytest.mark.parametrize(
    ("answer", "of_queue", "parked_dead_letters"),
    [
        (refusal("ParameterNotFound"), QueueNotFound, DeploymentNotFound),
        (refusal("AccessDeniedException"), Forbidden, Forbidden),
        (DROPPED, Unavailable, Unavailable),
    ],
)
def test_what_keeps_it_from_them_is_reported(api_server, session, answer, of_queue, parked_dead_letters):
    api_server.script = [answer] * 4
    with pytest.raises(of_queue):
        redrive_queues.queue_dead_letters("dueline", "emails", session=session)
    api_server.script = [answer] * 4
    with pytest.raises(parked_dead_letters):
        redrive_queues.parked_dead_letters("dueline", session=session)


@pytest.mark.parametrize("content", ["{", "{}", "null", '{"url": 1, "queue_urls": 1}'])
def test_a_parameter_that_cannot_be_read_is_named(api_server, session, content):
    api_server.script = [json_reply({"Parameter": {"Value": content}})] * 2
    with pytest.raises(Unavailable, match="parameter /dueline/dueline/queues/emails cannot be read"):
        redrive_queues.queue_dead_letters("dueline", "emails", session=session)
    with pytest.raises(Unavailable, match="parameter /dueline/dueline/settings cannot be read"):
        redrive_queues.parked_dead_letters("dueline", session=session)


def test_invalid_name_of_a_queue_is_not_requested(api_server, session):
    with pytest.raises(QueueNotFound):
        redrive_queues.queue_dead_letters("dueline", "../settings", session=session)
    assert api_server.requests == []


@pytest.mark.parametrize(
    "call",
    [
        lambda ends: ends.dead_letters.depth(),
        lambda ends: ends.dead_letters.receive(most=1, wait=0),
        lambda ends: ends.dead_letters.delete(["1"]),
        lambda ends: ends.dead_letters.hide(["1"], [0]),
        lambda ends: ends.queues[0].send([Message(body="1")]),
    ],
)
def test_missing_right_is_forbidden_without_a_retry(api_server, session, call):
    api_server.script = [parameter(url=f"{api_server.url}/1/dueline_emails")]
    ends = redrive_queues.queue_dead_letters("dueline", "emails", session=session)
    api_server.script = [refusal("AccessDenied", 403)]
    with pytest.raises(Forbidden, match="AccessDenied"):
        call(ends)
