"""The IAM policy of the services that schedule jobs of a queue, or of those of a group, over HTTP."""

from aws_cdk.aws_iam import ManagedPolicy
from constructs import Construct

from dueline.config.deployment import Deployment
from infra.arns import Arns
from infra.grants import allow
from infra.nag import acknowledge_wildcard
from infra.policy_scope import PolicyScope

_METHODS_ON_A_JOB = ("GET", "PATCH", "DELETE")
# What is done with one lies below its path: pause, resume, run, backfill and history.
_METHODS_ON_A_SCHEDULE = ("GET", "PUT", "POST", "DELETE")
_NAMED = (
    ("POST", "/jobs"),
    ("POST", "/uploads"),
    ("POST", "/cancellations"),
    ("GET", "/jobs"),
    ("GET", "/schedules"),
    ("GET", ""),
    *((method, "/jobs/*") for method in _METHODS_ON_A_JOB),
    *((method, "/schedules/*") for method in _METHODS_ON_A_SCHEDULE),
)
# The same, for the 6,144 characters of a policy: there is no other method or path.
_NAMED_BRIEFLY = (("*", "/jobs*"), ("*", "/uploads"), ("*", "/cancellations"), ("*", "/schedules*"), ("GET", ""))


class ProducerPolicy(Construct):
    """A managed policy that allows to schedule, look up, list and cancel jobs of one queue and of no other.

    And to make, change and run its schedules: a team that may send any job may have it sent again and again.

    What controls the queue's workers lies below its path too, and is the operator's: so paths are named one by one.
    It allows to find the API, to ask how that queue is doing, and for the names and settings of all and the next runs
    of a rule, which have no queue in their path.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment, of: PolicyScope) -> None:
        super().__init__(scope, id)
        arns = Arns(self, names=deployment.names)
        named = _NAMED_BRIEFLY if of.group else _NAMED
        asked = [(method, f"queues/{queue.name}{path}") for queue in of.queues for method, path in named]
        asked += [("GET", "queues"), ("POST", "schedules/preview")]
        policy = ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=of.policy("producer"),
            # Never to be changed: that would replace the policy, whose name is taken.
            description=f"Schedule, look up and cancel jobs of {of}.",
            statements=[
                allow("execute-api:Invoke", on=[arns.request(method=method, path=path) for method, path in asked]),
                allow("ssm:GetParameter", on=[arns.parameter(deployment.names.api_url_parameter)]),
            ],
        )
        for method, path in asked:
            if "*" in method + path:
                pattern = arns.request(method=method, path=path)
                acknowledge_wildcard(policy, pattern, reason="A queue's jobs and schedules, whose names end paths.")
