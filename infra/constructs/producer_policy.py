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
    ("GET", "schedules"),
)
_METHODS_ON_A_JOB = ("GET", "PATCH", "DELETE")
# What is done with one lies below its path: pause, resume, run, backfill and history.
_METHODS_ON_A_SCHEDULE = ("GET", "PUT", "POST", "DELETE")


class ProducerPolicy(Construct):
    """A managed policy that allows to schedule, look up, list and cancel jobs of one queue and of no other.

    And to make, change and run its schedules: a team that may send any job may have it sent again and again.

    What controls the queue's workers lies below its path too, and is the operator's: so paths are named one by one.
    It allows to find the API, to ask how that queue is doing, and for the names and settings of all and the next runs
    of a rule, which have no queue in their path.

    The API's id comes through SSM: an export would tie the core stack to every queue's.
    """

    def __init__(self, scope: Construct, id: str, *, names: Names, queue: str) -> None:
        super().__init__(scope, id)
        api_id = StringParameter.value_for_string_parameter(self, names.api_id_parameter)
        arns = Arns(self, names=names)
        named = [(method, f"queues/{queue}/{path}") for method, path in _BELOW_QUEUE]
        asked = [*named, ("GET", f"queues/{queue}"), ("GET", "queues"), ("POST", "schedules/preview")]
        requests = [arns.request(api_id=api_id, method=method, path=path) for method, path in asked]
        of_one = {"jobs": _METHODS_ON_A_JOB, "schedules": _METHODS_ON_A_SCHEDULE}
        on_one = [
            arns.request(api_id=api_id, method=method, path=f"queues/{queue}/{kind}/*")
            for kind, methods in of_one.items()
            for method in methods
        ]
        policy = ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=names.producer_policy(queue),
            # Never to be changed: that would replace the policy, whose name is taken.
            description=f"Schedule, look up and cancel jobs of queue {queue}.",
            statements=[
                allow("execute-api:Invoke", on=[*requests, *on_one]),
                allow("ssm:GetParameter", on=[arns.parameter(names.api_url_parameter)]),
            ],
        )
        for pattern in on_one:
            acknowledge_wildcard(policy, pattern, reason="The jobs and schedules of one queue, whose names end paths.")
