"""The grant that lets a service use one queue through the HTTP API."""

from aws_cdk.aws_iam import ManagedPolicy
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from dueline.config.names import Names
from infra.arns import Arns
from infra.function import allow
from infra.nag import acknowledge_wildcard


class ProducerPolicy(Construct):
    """A managed policy that allows to schedule, look up and cancel jobs of one queue and of no other.

    The API's id comes through SSM: an export would tie the core stack to every queue's.
    """

    def __init__(self, scope: Construct, id: str, *, names: Names, queue: str) -> None:
        super().__init__(scope, id)
        api_id = StringParameter.value_for_string_parameter(self, names.api_id_parameter)
        arns = Arns(self, names=names)
        requests = [arns.requests(api_id=api_id, method=method, queue=queue) for method in ("POST", "GET", "DELETE")]
        policy = ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=names.producer_policy(queue),
            description=f"Schedule, look up and cancel jobs of queue {queue}.",
            statements=[allow("execute-api:Invoke", on=requests)],
        )
        for pattern in requests:
            acknowledge_wildcard(policy, pattern, reason="The paths of one queue, whose jobs' ids end them.")
