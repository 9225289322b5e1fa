"""The watch's mails on AWS's protocol: each once, however many runs there are, and whatever fails."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from botocore.exceptions import EndpointConnectionError

from dueline.aws.dynamodb_items import Items
from dueline.aws.sent_mails import MAILS, Mailer
from dueline.aws.watch_notes import WatchNotes
from dueline.core.rows import SCHEDULES, TICKS, WatchNote
from dueline.operations.watch import Condition, Sighting
from tests.contract.engines import create_table

NOW = datetime(2026, 11, 27, tzinfo=UTC)
LATE = Sighting(states={Condition("late", "emails"): "90 s"})
DEAD = Sighting(states={Condition("dead_letters", "emails"): "3 messages"})
NOTHING = Sighting()


@pytest.fixture
def aws(session):
    create_table(session.client("dynamodb"), "d-state")
    sns, sqs = session.client("sns"), session.client("sqs")
    topic = sns.create_topic(Name="d-alarms")["TopicArn"]
    url = sqs.create_queue(QueueName="inbox")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    client = session.client("dynamodb")
    notes, sent = WatchNotes(client, table="d-state"), Items(client, lambda _: "d-state")

    def came():
        messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        for each in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return [json.loads(each["Body"])["Subject"] for each in messages]

    return SimpleNamespace(sns=sns, topic=topic, notes=notes, sent=sent, came=came)


@pytest.fixture
def mailer(aws):
    owners = map(str, range(100))

    def subject(mail):
        return " ".join(["OK" if mail.is_over else "ALARM", *(state.about for state in mail.figures)]), "text"

    def make(client=aws.sns, topic_of=lambda _: aws.topic):
        return Mailer(sent=aws.sent, client=client, topic_of=topic_of, text_of=subject, new_owner=lambda: next(owners))

    return make


def after(minutes):
    return NOW + timedelta(minutes=minutes)


def test_runs_one_after_another_mail_once(aws, mailer):
    for minutes in (0, 0.1, 5, 10):
        assert mailer().run(LATE, now=after(minutes)) == []
    assert aws.came() == ["ALARM emails"]
    for minutes in (15, 20):
        mailer().run(NOTHING, now=after(minutes))
    assert aws.came() == ["OK emails"]
    mailer().run(LATE, now=after(25))
    assert aws.came() == ["ALARM emails"]


def test_runs_at_once_mail_once(aws, mailer):
    """The second begins while the first is publishing, with what the first had read."""

    class Slow:
        def publish(self, **request):
            mailer().run(LATE, now=after(0.2))
            return aws.sns.publish(**request)

    mailer(Slow()).run(LATE, now=NOW)
    assert aws.came() == ["ALARM emails"]


class Failing:
    """Publishes nothing."""

    def publish(self, **_):
        raise EndpointConnectionError(endpoint_url="sns")


def test_failed_mail_is_sent_by_the_next_run(aws, mailer):
    (fault,) = mailer(Failing()).run(LATE, now=NOW)
    assert "publishing to" in str(fault)
    mailer().run(LATE, now=after(5))
    assert aws.came() == ["ALARM emails"]
    mailer(Failing()).run(NOTHING, now=after(10))
    mailer().run(NOTHING, now=after(15))
    assert aws.came() == ["OK emails"]


def test_one_topic_holds_no_other_up(aws, mailer):
    """An owner's topic that is gone is tried again, and the deployment is not mailed again."""

    def topic_of(mail):
        return mail.topic or aws.topic

    owned = DEAD.with_owners({"emails": f"{aws.topic}-gone"})
    for minutes in (0, 5):
        (fault,) = mailer(topic_of=topic_of).run(owned, now=after(minutes))
        assert "gone" in str(fault)
    assert aws.came() == ["ALARM emails"]


def test_killed_run_holds_nobody_up_for_long(aws, mailer):
    class Killed:
        def publish(self, **_):
            raise SystemExit

    with pytest.raises(SystemExit):
        mailer(Killed()).run(LATE, now=NOW)
    mailer().run(LATE, now=after(1))
    assert aws.came() == []
    mailer().run(LATE, now=after(5))
    assert aws.came() == ["ALARM emails"]


def test_healthy_deployment_writes_nothing(aws, mailer):
    mailer().run(NOTHING, now=NOW)
    assert aws.sent.read_one(MAILS) is None


def test_note_is_the_last_one(aws):
    assert aws.notes.read() == {}
    aws.notes.put(SCHEDULES, now=NOW, count=2)
    aws.notes.put(SCHEDULES, now=NOW - timedelta(minutes=1))
    aws.notes.put(TICKS, now=NOW)
    assert aws.notes.read() == {SCHEDULES: WatchNote(at=NOW, count=2), TICKS: WatchNote(at=NOW, count=0)}
