"""The SNS topics that alarms are sent to."""

from collections.abc import Sequence
from typing import NamedTuple

from aws_cdk import Aws, Stack
from aws_cdk.aws_iam import PolicyStatement, ServicePrincipal
from aws_cdk.aws_sns import ITopic, Topic
from aws_cdk.aws_sns_subscriptions import EmailSubscription
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.grants import key_of
from dueline.config.deployment import Deployment


class AlarmTopics(NamedTuple):
    """Where alarms are published: those that wake somebody, and those that can wait."""

    page: Sequence[ITopic]
    ticket: Sequence[ITopic]


class AlarmTopic(Topic):
    """A topic of alarms; its e-mail subscription must be confirmed by the one who gets it.

    Without a key of one's own not encrypted at rest: CloudWatch alarms cannot publish to a topic under the key that
    AWS manages, and an alarm has only names and counts.
    """

    def __init__(self, scope: Construct, id: str, *, name: str, email: str | None, deployment: Deployment) -> None:
        key = key_of(scope, id, deployment=deployment)
        super().__init__(scope, id, topic_name=name, enforce_ssl=True, master_key=key)
        # SNS's default policy allowed it: any policy of one's own replaces that.
        self.add_to_resource_policy(
            PolicyStatement(
                principals=[ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        if email:
            self.add_subscription(EmailSubscription(email))


def topics_of_deployment(scope: Construct, *, deployment: Deployment) -> AlarmTopics:
    """Make the two topics of a deployment."""
    names, email = deployment.names, deployment.alarm_email
    page = AlarmTopic(scope, "AlarmTopic", name=names.alarms, email=email, deployment=deployment)
    ticket = AlarmTopic(scope, "TicketTopic", name=names.tickets, email=email, deployment=deployment)
    return AlarmTopics([page], [ticket])


def topics_of_queue(stack: Stack, *, deployment: Deployment, queue: str) -> AlarmTopics:
    """Return the deployment's topics, and that of the queue's owner, which is made if it is for an e-mail address."""
    names, arns = deployment.names, Arns(stack, names=deployment.names)
    page = Topic.from_topic_arn(stack, "AlarmTopic", arns.topic(names.alarms))
    ticket = Topic.from_topic_arn(stack, "TicketTopic", arns.topic(names.tickets))
    owner, owners = deployment.queues[queue].owner, list[ITopic]()
    if owner and owner.startswith("arn:"):
        owners = [Topic.from_topic_arn(stack, "OwnerTopic", owner)]
    elif owner:
        name = names.queue_alarms(queue)
        owners = [AlarmTopic(stack, "OwnerTopic", name=name, email=owner, deployment=deployment)]
    return AlarmTopics([page, *owners], [ticket, *owners])
