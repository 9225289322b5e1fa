"""How a redrive finds its queues on AWS, over real sockets."""

import json

import boto3
import pytest

from dueline.aws.sqs import dead_letters
from dueline.errors import DeploymentNotFound, Forbidden, QueueNotFound, Unavailable
from dueline.model.message import Message
from tests.gate import DROPPED, open_gate, told

URLS = ["https://sqs/1/dueline_emails", "https://sqs/1/dueline_emails_p2"]


@pytest.fixture
def gate(monkeypatch):
    with open_gate() as opened:
        monkeypatch.setenv("AWS_ENDPOINT_URL", opened.url)
        yield opened


@pytest.fixture
def session():
    return boto3.Session("AKIDEXAMPLE", "s", region_name="eu-west-1")


def parameter(**value):
    return told({"Parameter": {"Value": json.dumps(value)}})


def refusal(code, status=400):
    return told({"__type": code, "message": "why"}, status)


def urls_of(ends):
    return ends.dead_letters._url, [queue._url for queue in ends.queues]


def test_a_queues_dead_letters_and_levels_are_found_by_its_parameter(gate, session):
    gate.script = [parameter(url=URLS[0], urls=URLS, work={"dead_letters": "https://sqs/1/elsewhere"})]
    assert urls_of(dead_letters.of_queue("dueline", "emails", session=session)) == ("https://sqs/1/elsewhere", URLS)
    assert gate.asked[0].json == {"Name": "/dueline/dueline/queues/emails"}


def test_where_its_workers_are_not_published_the_name_tells(gate, session):
    gate.script = [parameter(url=URLS[0], urls=URLS)]
    found = urls_of(dead_letters.of_queue("dueline", "emails", session=session))
    assert found == ("https://sqs/1/dueline_emails_dlq", URLS)


def test_parked_jobs_are_found_by_the_deployments_settings(gate, session):
    gate.script = [parameter(queue_urls="https://sqs/1/", lookahead=240)]
    found = urls_of(dead_letters.of_parked("sandbox", session=session))
    assert found == ("https://sqs/1/sandbox-dispatch-dlq", ["https://sqs/1/sandbox-inbound"])
    assert gate.asked[0].json == {"Name": "/dueline/sandbox/settings"}


@pytest.mark.parametrize(
    ("answer", "of_queue", "of_parked"),
    [
        (refusal("ParameterNotFound"), QueueNotFound, DeploymentNotFound),
        (refusal("AccessDeniedException"), Forbidden, Forbidden),
        (DROPPED, Unavailable, Unavailable),
    ],
)
def test_what_keeps_it_from_them_is_told(gate, session, answer, of_queue, of_parked):
    gate.script = [answer] * 4
    with pytest.raises(of_queue):
        dead_letters.of_queue("dueline", "emails", session=session)
    gate.script = [answer] * 4
    with pytest.raises(of_parked):
        dead_letters.of_parked("dueline", session=session)


def test_what_is_no_name_of_a_queue_is_not_asked_for(gate, session):
    with pytest.raises(QueueNotFound):
        dead_letters.of_queue("dueline", "../settings", session=session)
    assert gate.asked == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda ends: ends.dead_letters.depth(),
        lambda ends: ends.dead_letters.receive(most=1, wait=0),
        lambda ends: ends.dead_letters.delete(["1"]),
        lambda ends: ends.dead_letters.hide(["1"], [0]),
        lambda ends: ends.queues[0].send([Message(body="1")]),
    ],
)
def test_a_right_that_is_missing_is_forbidden_which_no_retry_mends(gate, session, ask):
    gate.script = [parameter(url=f"{gate.url}/1/dueline_emails")]
    ends = dead_letters.of_queue("dueline", "emails", session=session)
    gate.script = [refusal("AccessDenied", 403)]
    with pytest.raises(Forbidden, match="AccessDenied"):
        ask(ends)
