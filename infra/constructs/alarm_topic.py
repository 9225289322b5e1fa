"""The SNS topics that alarms are sent to."""

from dataclasses import dataclass

from aws_cdk import Aws, Stack
from aws_cdk.aws_iam import PolicyStatement, ServicePrincipal
from aws_cdk.aws_sns import ITopic, Topic
from aws_cdk.aws_sns_subscriptions import EmailSubscription
from constructs import Construct

from dueline.config.deployment import Deployment
from infra.arns import Arns
from infra.grants import key_of


@dataclass(frozen=True, kw_only=True, slots=True)
class AlarmTopics:
    """Where alarms are published: those that wake somebody, those that can wait, and both to a queue's owner."""

    page: ITopic
    ticket: ITopic
    owner: ITopic | None = None

    def of(self, *, is_ticket: bool) -> list[ITopic]:
        """Return the topics of an alarm by its severity."""
        return [self.ticket if is_ticket else self.page, *([self.owner] if self.owner else [])]


class AlarmTopic(Topic):
    """A topic of alarms; its e-mail subscription must be confirmed by the one who gets it.

    Without a key of one's own not encrypted at rest: CloudWatch alarms cannot publish to a topic under the key that
    AWS manages, and an alarm has only names and counts.
    """

    def __init__(self, scope: Construct, id: str, *, name: str, email: str | None, deployment: Deployment) -> None:
        key = key_of(scope, id, deployment=deployment)
        super().__init__(scope, id, topic_name=name, enforce_ssl=True, master_key=key)
        self.add_to_resource_policy(self._cloudwatch())
        if email:
            self.add_subscription(EmailSubscription(email))

    def _cloudwatch(self) -> PolicyStatement:
        """Allow what SNS's default policy did: any policy of one's own replaces it."""
        return PolicyStatement(
            principals=[ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[self.topic_arn],
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
        )


def topics_of_deployment(scope: Construct, *, deployment: Deployment) -> AlarmTopics:
    """Make the two topics of a deployment."""
    names, email = deployment.names, deployment.alarm_email
    return AlarmTopics(
        page=AlarmTopic(scope, "AlarmTopic", name=names.alarms, email=email, deployment=deployment),
        ticket=AlarmTopic(scope, "TicketTopic", name=names.tickets, email=email, deployment=deployment),
    )


def topics_of_queue(stack: Stack, *, deployment: Deployment, queue: str) -> AlarmTopics:
    """Return the deployment's topics, and that of the queue's owner, which is made if it is for an e-mail address."""
    names, arns = deployment.names, Arns(stack, names=deployment.names)
    return AlarmTopics(
        page=Topic.from_topic_arn(stack, "AlarmTopic", arns.topic(names.alarms)),
        ticket=Topic.from_topic_arn(stack, "TicketTopic", arns.topic(names.tickets)),
        owner=_owners(stack, deployment, queue),
    )


def _owners(stack: Stack, deployment: Deployment, queue: str) -> ITopic | None:
    owner = deployment.queues[queue].owner
    if owner is None:
        return None
    if owner.startswith("arn:"):
        return Topic.from_topic_arn(stack, "OwnerTopic", owner)
    name = deployment.names.queue_alarms(queue)
    return AlarmTopic(stack, "OwnerTopic", name=name, email=owner, deployment=deployment)
