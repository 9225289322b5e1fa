"""The IAM policy of the people who operate a queue, or those of a group."""

from aws_cdk.aws_iam import ManagedPolicy
from constructs import Construct

from dueline.config.deployment import Deployment
from infra.arns import Arns
from infra.encryption import use_of_key
from infra.grants import allow
from infra.policy_scope import PolicyScope

_LOOK = ("sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
_CONTROL = (("POST", "/pause"), ("POST", "/resume"), ("PUT", "/rate"), ("GET", ""))
_REDRIVE = ("sqs:StartMessageMoveTask", "sqs:ListMessageMoveTasks", "sqs:CancelMessageMoveTask")


class OperatorPolicy(Construct):
    """A managed policy that allows to see how one queue is doing, and to redrive its dead-letter queue.

    And to pause and resume it, to limit its rate, and to find it and the API. What the queue's producers may do is in
    their policy; attach both.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment, of: PolicyScope) -> None:
        super().__init__(scope, id)
        arns = Arns(self, names=deployment.names)
        asked = [(method, f"queues/{queue.name}{path}") for queue in of.queues for method, path in _CONTROL]
        asked += [("GET", "queues"), ("POST", "schedules/preview")]
        requests = [arns.request(method=method, path=path) for method, path in asked]
        ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=of.policy("operator"),
            # Never to be changed: that would replace the policy, whose name is taken.
            description=f"See how {of} is, and redrive its dead-letter queue.",
            statements=[
                allow("sqs:GetQueueAttributes", "sqs:SendMessage", on=of.levels(arns)),
                allow(*_LOOK, *_REDRIVE, on=of.dead_letters(arns)),
                allow("execute-api:Invoke", on=requests),
                allow(
                    "ssm:GetParameter", on=[arns.parameter(deployment.names.api_url_parameter), *of.parameters(arns)]
                ),
                *use_of_key(self, "sqs", deployment=deployment),
            ],
        )
