"""The IAM policy of the people who operate one queue."""

from collections.abc import Sequence

from aws_cdk.aws_iam import ManagedPolicy
from aws_cdk.aws_sqs import IQueue
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from dueline.config.names import Names
from infra.arns import Arns
from infra.grants import allow

_LOOK = ("sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
_CONTROL = (("POST", "/pause"), ("POST", "/resume"), ("PUT", "/rate"), ("GET", ""))
_REDRIVE = ("sqs:StartMessageMoveTask", "sqs:ListMessageMoveTasks", "sqs:CancelMessageMoveTask")


class OperatorPolicy(Construct):
    """A managed policy that allows to see how one queue is doing, and to redrive its dead-letter queue.

    And to pause and resume it, to limit its rate, and to find it and the API. What the queue's producers may do is in
    their policy; attach both.
    """

    def __init__(
        self, scope: Construct, id: str, *, names: Names, queue: str, levels: Sequence[IQueue], dead_letters: IQueue
    ) -> None:
        super().__init__(scope, id)
        api_id = StringParameter.value_for_string_parameter(self, names.api_id_parameter)
        arns = Arns(self, names=names)
        asked = [*((method, f"queues/{queue}{path}") for method, path in _CONTROL), ("GET", "queues")]
        asked.append(("POST", "schedules/preview"))
        requests = [arns.request(api_id=api_id, method=method, path=path) for method, path in asked]
        parameters = [arns.parameter(name) for name in (names.api_url_parameter, names.queue_parameter(queue))]
        ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=names.operator_policy(queue),
            # Never to be changed: that would replace the policy, whose name is taken.
            description=f"See how queue {queue} is, and redrive its dead-letter queue.",
            statements=[
                allow("sqs:GetQueueAttributes", "sqs:SendMessage", on=[level.queue_arn for level in levels]),
                allow(*_LOOK, *_REDRIVE, on=[dead_letters.queue_arn]),
                allow("execute-api:Invoke", on=requests),
                allow("ssm:GetParameter", on=parameters),
            ],
        )
