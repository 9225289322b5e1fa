"""ARNs and URLs built from physical names, so that no stack imports from another."""

from typing import cast

from aws_cdk import ArnFormat, CfnParameter, Stack
from constructs import Construct

from dueline.config.names import LIVE, Names


class Arns:
    """The ARNs and URLs of a deployment, in the account and region of a construct's stack."""

    def __init__(self, scope: Construct, *, names: Names, parameters: Construct | None = None) -> None:
        """Build them in a scope; what is read of SSM stands in `parameters`, by default in its stack."""
        self._stack = Stack.of(scope)
        self._parameters = parameters or self._stack
        self._names = names

        self.table, self.state, self.once = (
            self._stack.format_arn(service="dynamodb", resource="table", resource_name=name)
            for name in (names.table, names.state, names.once)
        )
        # All teams' queues, and what all publish of themselves: one pattern each, however many there are.
        self.teams_queues = self.queue(f"{names.queue_prefix}*")
        self.queue_parameters = self.parameter(f"{names.queue_parameters}/*")
        self.owners_topics = self.topic(names.queue_alarms("*"))
        # What the URLs of all queues begin with, an account's and a region's.
        self.queue_urls = f"https://sqs.{self._stack.region}.{self._stack.url_suffix}/{self._stack.account}/"
        role = names.scheduler_role
        self.scheduler_role = self._stack.format_arn(service="iam", region="", resource="role", resource_name=role)
        # The name of the bucket of payloads.
        self.payloads_bucket = names.payloads(account=self._stack.account, region=self._stack.region)
        self.bucket = self._stack.format_arn(service="s3", region="", account="", resource=self.payloads_bucket)

    def topic(self, name: str) -> str:
        return self._stack.format_arn(service="sns", resource=name)

    def log(self, name: str) -> str:
        """The log group of a name, with its streams."""
        group = f"{name}:*"
        return self._stack.format_arn(
            service="logs", resource="log-group", resource_name=group, arn_format=ArnFormat.COLON_RESOURCE_NAME
        )

    def schedule_group(self, name: str) -> str:
        return self._stack.format_arn(service="scheduler", resource="schedule-group", resource_name=name)

    def payloads(self, keys: str) -> str:
        """The objects of the bucket of payloads whose keys fit a pattern."""
        return f"{self.bucket}/{keys}"

    def parameter(self, name: str) -> str:
        return self._stack.format_arn(service="ssm", resource="parameter", resource_name=name.removeprefix("/"))

    def queue(self, name: str) -> str:
        return self._stack.format_arn(service="sqs", resource=name)

    def live(self, name: str) -> str:
        """The alias of a function's current version, which stays when a version goes."""
        return self.alias(name, LIVE)

    def alias(self, name: str, alias: str) -> str:
        function = f"{self._names.function(name)}:{alias}"
        return self._stack.format_arn(
            service="lambda", resource="function", resource_name=function, arn_format=ArnFormat.COLON_RESOURCE_NAME
        )

    def request(self, *, method: str, path: str) -> str:
        """The requests of one method for a path. `HttpRoute.grant_invoke` would open every queue."""
        return self._stack.format_arn(
            service="execute-api", resource=self._api_id(), resource_name=f"$default/{method}/{path}"
        )

    def _api_id(self) -> str:
        """Return the API's id, which comes through SSM: an export would tie the core stack to every queue's.

        Without the mark in its description, the CDK's command line deploys a stack with such a parameter each time.
        """
        parameter = self._parameters.node.try_find_child("HttpApiId") or CfnParameter(
            self._parameters,
            "HttpApiId",
            type="AWS::SSM::Parameter::Value<String>",
            default=self._names.api_id_parameter,
            description="The id of the HTTP API, as the core stack published it. [cdk:skip]",
        )
        return cast(CfnParameter, parameter).value_as_string
