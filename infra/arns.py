"""ARNs and URLs built from physical names, so that no stack imports from another."""

from typing import cast

from aws_cdk import ArnFormat, CfnParameter, Stack
from constructs import Construct

from dueline.config.names import LIVE, Names


class Arns:
    """The ARNs and URLs of a deployment, in the account and region of a construct's stack."""

    def __init__(self, scope: Construct, *, names: Names) -> None:
        self._stack = Stack.of(scope)
        self._names = names

    @property
    def table(self) -> str:
        return self._stack.format_arn(service="dynamodb", resource="table", resource_name=self._names.table)

    @property
    def state(self) -> str:
        return self._stack.format_arn(service="dynamodb", resource="table", resource_name=self._names.state)

    @property
    def once(self) -> str:
        return self._stack.format_arn(service="dynamodb", resource="table", resource_name=self._names.once)

    @property
    def teams_queues(self) -> str:
        """All teams' queues at once: one pattern, however many there are."""
        return self.queue(f"{self._names.queue_prefix}*")

    @property
    def queue_urls(self) -> str:
        """What the URLs of all queues begin with, an account's and a region's."""
        return f"https://sqs.{self._stack.region}.{self._stack.url_suffix}/{self._stack.account}/"

    def topic(self, name: str) -> str:
        return self._stack.format_arn(service="sns", resource=name)

    def schedule_group(self, name: str) -> str:
        return self._stack.format_arn(service="scheduler", resource="schedule-group", resource_name=name)

    @property
    def scheduler_role(self) -> str:
        return self._stack.format_arn(
            service="iam", region="", resource="role", resource_name=self._names.scheduler_role
        )

    @property
    def payloads_bucket(self) -> str:
        """The name of the bucket of payloads."""
        return self._names.payloads(account=self._stack.account, region=self._stack.region)

    @property
    def bucket(self) -> str:
        return self._stack.format_arn(service="s3", region="", account="", resource=self.payloads_bucket)

    def payloads(self, keys: str) -> str:
        """The objects of the bucket of payloads whose keys fit a pattern."""
        return f"{self.bucket}/{keys}"

    def parameter(self, name: str) -> str:
        return self._stack.format_arn(service="ssm", resource="parameter", resource_name=name.removeprefix("/"))

    @property
    def queue_parameters(self) -> str:
        """What all queues publish of themselves: one pattern, however many there are."""
        return self.parameter(f"{self._names.queue_parameters}/*")

    def queue(self, name: str) -> str:
        return self._stack.format_arn(service="sqs", resource=name)

    def function(self, name: str) -> str:
        return self._stack.format_arn(
            service="lambda",
            resource="function",
            resource_name=self._names.function(name),
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )

    def live(self, name: str) -> str:
        """The alias of a function's current version, which stays when a version goes."""
        return f"{self.function(name)}:{LIVE}"

    def request(self, *, method: str, path: str) -> str:
        """The requests of one method for a path. `HttpRoute.grant_invoke` would open every queue."""
        return self._stack.format_arn(
            service="execute-api", resource=self._api_id(), resource_name=f"$default/{method}/{path}"
        )

    def _api_id(self) -> str:
        """Return the API's id, which comes through SSM: an export would tie the core stack to every queue's.

        Without the mark in its description, the CDK's command line deploys a stack with such a parameter each time.
        """
        parameter = self._stack.node.try_find_child("HttpApiId") or CfnParameter(
            self._stack,
            "HttpApiId",
            type="AWS::SSM::Parameter::Value<String>",
            default=self._names.api_id_parameter,
            description="The id of the HTTP API, as the core stack published it. [cdk:skip]",
        )
        return cast(CfnParameter, parameter).value_as_string
