"""The deployed watch mails what it sees, once."""

import json

from dueline.config.names import Names
from local.emulator import ACCOUNT, REGION

NAMES = Names("e2e")


def test_sent_mails_a_dead_letter_once(emulator, endpoints):
    sns, sqs, functions = (emulator.client(service) for service in ("sns", "sqs", "lambda"))
    url = sqs.create_queue(QueueName="mails")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    allowed = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": arn}
    document = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": document})
    topic = f"arn:aws:sns:{REGION}:{ACCOUNT}:{NAMES.tickets}"
    subscription = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)["SubscriptionArn"]
    dead_letters = endpoints.dead_letter_queues["invoices"]
    # Other tests have left some, of which a mail may be sent already.
    sqs.purge_queue(QueueUrl=dead_letters)
    functions.invoke(FunctionName=NAMES.function("watch"), Payload=b"{}")
    sqs.send_message(QueueUrl=dead_letters, MessageBody="{}")
    for _ in range(2):
        answer = functions.invoke(FunctionName=NAMES.function("watch"), Payload=b"{}")
        assert "FunctionError" not in answer, answer["Payload"].read()
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=2).get("Messages", [])
    [mail] = [each for each in (json.loads(each["Body"]) for each in messages) if "invoices" in each["Message"]]
    sqs.purge_queue(QueueUrl=dead_letters)
    sns.unsubscribe(SubscriptionArn=subscription)
    sqs.delete_queue(QueueUrl=url)
    assert mail["Subject"].startswith("[ticket] e2e: There are dead letters: ")
    assert "invoices: 1 message\n" in mail["Message"]
    assert "docs/runbooks/dead-letters.md" in mail["Message"]
