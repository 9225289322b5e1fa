"""The SNS topic that alarms are sent to."""

from aws_cdk import Aws
from aws_cdk.aws_iam import PolicyStatement, ServicePrincipal
from aws_cdk.aws_sns import Topic
from aws_cdk.aws_sns_subscriptions import EmailSubscription
from constructs import Construct

from dueline.config.deployment import Deployment


class AlarmTopic(Topic):
    """The topic of all the deployment's alarms; its e-mail subscription must be confirmed by the one who gets it.

    Not encrypted at rest: CloudWatch alarms cannot publish to a topic under the key that AWS manages, and an
    alarm tells names and counts only.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, id, topic_name=deployment.names.alarms, enforce_ssl=True)
        self.add_to_resource_policy(self._cloudwatch())
        if deployment.alarm_email:
            self.add_subscription(EmailSubscription(deployment.alarm_email))

    def _cloudwatch(self) -> PolicyStatement:
        """Allow what SNS's default policy did: any policy of one's own replaces it."""
        return PolicyStatement(
            principals=[ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[self.topic_arn],
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
        )
