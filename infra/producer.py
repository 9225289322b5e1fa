"""The grant that lets a service use one queue through the HTTP API."""

from aws_cdk.aws_iam import ManagedPolicy
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from dueline.config.names import Names
from infra.arns import Arns
from infra.function import allow
from infra.nag import acknowledge_wildcard

_METHODS = ("POST", "GET", "PATCH", "DELETE")


class ProducerPolicy(Construct):
    """A managed policy that allows to schedule, look up, list and cancel jobs of one queue and of no other.

    It allows to find the API, to ask how that queue is doing, and for the names and settings of all, which have no
    queue in their path.

    The API's id comes through SSM: an export would tie the core stack to every queue's.
    """

    def __init__(self, scope: Construct, id: str, *, names: Names, queue: str) -> None:
        super().__init__(scope, id)
        api_id = StringParameter.value_for_string_parameter(self, names.api_id_parameter)
        arns = Arns(self, names=names)
        requests = [arns.requests(api_id=api_id, method=method, queue=queue) for method in _METHODS]
        asked = [arns.request(api_id=api_id, method="GET", path=path) for path in (f"queues/{queue}", "queues")]
        policy = ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=names.producer_policy(queue),
            # Never to be changed: that would replace the policy, whose name is taken.
            description=f"Schedule, look up and cancel jobs of queue {queue}.",
            statements=[
                allow("execute-api:Invoke", on=[*requests, *asked]),
                allow("ssm:GetParameter", on=[arns.parameter(names.api_url_parameter)]),
            ],
        )
        for pattern in requests:
            acknowledge_wildcard(policy, pattern, reason="The paths of one queue, whose jobs' ids end them.")
