"""The IAM policy of the services that schedule jobs of one queue through the HTTP API."""

from aws_cdk.aws_iam import ManagedPolicy
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from dueline.config.names import Names
from infra.arns import Arns
from infra.grants import allow
from infra.nag import acknowledge_wildcard

_BELOW_QUEUE = (
    ("POST", "jobs"),
    ("POST", "uploads"),
    ("POST", "cancellations"),
    ("GET", "jobs"),
)
_METHODS_ON_A_JOB = ("GET", "PATCH", "DELETE")


class ProducerPolicy(Construct):
    """A managed policy that allows to schedule, look up, list and cancel jobs of one queue and of no other.

    What controls the queue's workers lies below its path too, and is the operator's: so paths are named one by one.
    It allows to find the API, to ask how that queue is doing, and for the names and settings of all, which have no
    queue in their path.

    The API's id comes through SSM: an export would tie the core stack to every queue's.
    """

    def __init__(self, scope: Construct, id: str, *, names: Names, queue: str) -> None:
        super().__init__(scope, id)
        api_id = StringParameter.value_for_string_parameter(self, names.api_id_parameter)
        arns = Arns(self, names=names)
        named = [(method, f"queues/{queue}/{path}") for method, path in _BELOW_QUEUE]
        asked = [*named, ("GET", f"queues/{queue}"), ("GET", "queues")]
        requests = [arns.request(api_id=api_id, method=method, path=path) for method, path in asked]
        path = f"queues/{queue}/jobs/*"
        on_a_job = [arns.request(api_id=api_id, method=method, path=path) for method in _METHODS_ON_A_JOB]
        policy = ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=names.producer_policy(queue),
            # Never to be changed: that would replace the policy, whose name is taken.
            description=f"Schedule, look up and cancel jobs of queue {queue}.",
            statements=[
                allow("execute-api:Invoke", on=[*requests, *on_a_job]),
                allow("ssm:GetParameter", on=[arns.parameter(names.api_url_parameter)]),
            ],
        )
        for pattern in on_a_job:
            acknowledge_wildcard(policy, pattern, reason="The jobs of one queue, whose ids end their paths.")
