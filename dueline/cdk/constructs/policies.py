"""The managed policies of a queue: producers, direct producers, consumers and operators."""

from collections.abc import Callable
from dataclasses import dataclass

from aws_cdk.aws_iam import ManagedPolicy, PolicyStatement
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.constructs.payloads_bucket import keys_of_queue
from dueline.cdk.grants import allow, allow_on_rows, with_use_of_key
from dueline.cdk.nag import acknowledge_wildcard
from dueline.config.deployment import Deployment
from dueline.config.names import Names
from dueline.config.routes import Caller, requests_of, requests_of_all
from dueline.core.queue_settings import QueueSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueScope:
    """What belongs to one queue, as its policies name it."""

    arns: Arns
    names: Names
    queue: QueueSettings

    @property
    def levels(self) -> list[str]:
        """The SQS queues of all priorities."""
        priorities = range(1, self.queue.priorities + 1)
        return [self.arns.queue(self.names.queue(self.queue.name, priority)) for priority in priorities]

    @property
    def dead_letters(self) -> str:
        return self.arns.queue(self.names.queue_dlq(self.queue.name))

    @property
    def parameter(self) -> str:
        """What the queue publishes of itself."""
        return self.arns.parameter(self.names.queue_parameter(self.queue.name))

    @property
    def payloads(self) -> str:
        return self.arns.payloads(keys_of_queue(self.queue.name))

    def rows(self, *rest: str) -> list[str]:
        """Return the partition keys that begin with the queue's name and `#`, and go on with any of some patterns."""
        return [f"{self.queue.name}#{each}" for each in rest]


_READ = ("dynamodb:BatchGetItem", "dynamodb:GetItem")
_WRITE = ("dynamodb:BatchWriteItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
_RECEIVE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes")
# What Powertools' Idempotency does with its table.
_IDEMPOTENCY = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem")
# What follows a queue's name and `#` in the keys of its partitions, 0 to 999, and of its idempotency keys' partitions.
# `control`, `rate` and `outcome#0` are longer.
_DIRECT_ROWS = ("?", "??", "???", "keys?", "keys??")
_INSPECT = ("sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
_REDRIVE = ("sqs:StartMessageMoveTask", "sqs:ListMessageMoveTasks", "sqs:CancelMessageMoveTask")


Grants = list[PolicyStatement]


def _producer(of: QueueScope) -> Grants:
    """Allow to schedule, look up, list and cancel jobs of one queue and of no other.

    And to make, change and run its schedules: a team that may send any job may have it sent again and again.

    What controls the queue's workers lies below its path too, and is the operator's: so paths are named one by one.
    It allows to find the API, to see how that queue is doing, and the names and settings of all and the next runs
    of a rule, which have no queue in their path.
    """
    return _call_the_api(of, Caller.PRODUCER)


def _call_the_api(of: QueueScope, caller: Caller) -> Grants:
    """Allow a caller's requests, over the gateway and by the aliases of the function, and to find both."""
    arns, names, requests = of.arns, of.names, [*requests_of(caller, of.queue.name), *requests_of_all()]
    parameters = [arns.parameter(name) for name in (names.api_url_parameter, names.api_function_parameter)]
    return [
        allow("execute-api:Invoke", on=[arns.request(method=method, path=path) for method, path in requests]),
        allow("lambda:InvokeFunction", on=[arns.alias("api", caller.alias_of(of.queue.name))]),
        allow("ssm:GetParameter", on=parameters),
    ]


def _direct(of: QueueScope) -> Grants:
    """Allow to schedule, look up, list and cancel jobs of one queue, without HTTP.

    It allows to write the rows of that queue's jobs, and nothing of what controls their way: fences, leases, pause and
    rate can be read alone. Not to send to the inbound queue, by which jobs reach any queue. What goes over HTTP is in
    the producer's policy; attach both where both are needed.
    """
    arns, names, rows = of.arns, of.names, of.rows("*")
    of_deployment = [arns.parameter(name) for name in (names.settings_parameter, names.schema_parameter)]
    parameters = [of.parameter, arns.parameter(names.api_url_parameter), *of_deployment]
    return [
        allow_on_rows(*_READ, "dynamodb:Query", table=arns.table, keys=rows),
        allow_on_rows(*_WRITE, table=arns.table, keys=of.rows(*_DIRECT_ROWS)),
        # A transaction checks a partition's fence.
        allow_on_rows(*_READ, "dynamodb:ConditionCheckItem", table=arns.state, keys=rows),
        allow("sqs:GetQueueAttributes", "sqs:SendMessage", on=of.levels),
        allow("sqs:GetQueueAttributes", on=[of.dead_letters]),
        allow("s3:GetObject", "s3:PutObject", on=[of.payloads]),
        allow("ssm:GetParameter", on=parameters),
        allow("ssm:GetParameters", on=of_deployment),
    ]


def _consumer(of: QueueScope) -> Grants:
    """Allow to find one queue, to process its messages and to see which were cancelled.

    And to read offloaded payloads, to see whether the queue is paused, to take slots of its rate and locks of its
    schedules, to write the outcomes of its jobs if it tracks them and the rows of `once`, and to move failed jobs into
    the queue's dead-letter queue. What may be written has partition keys of its own: a right to write one row of a key
    is one to write all.
    """
    arns, is_tracked = of.arns, of.queue.track
    return [
        allow(*_RECEIVE, on=of.levels),
        allow("sqs:SendMessage", on=[of.dead_letters]),
        allow("ssm:GetParameter", on=[of.parameter]),
        allow_on_rows(*_READ, table=arns.table, keys=of.rows("*")),
        allow_on_rows(*_READ, table=arns.state, keys=of.rows("control")),
        allow_on_rows("dynamodb:UpdateItem", table=arns.state, keys=of.rows("rate", "runs")),
        allow_on_rows(*_IDEMPOTENCY, table=arns.once, keys=of.rows("*")),
        *([allow_on_rows("dynamodb:PutItem", table=arns.table, keys=of.rows("outcome#*"))] if is_tracked else []),
        allow("s3:GetObject", on=[of.payloads]),
    ]


def _operator(of: QueueScope) -> Grants:
    """Allow to see how one queue is doing, and to redrive its dead-letter queue.

    And to pause and resume it, to limit its rate, and to find it and the API. What the queue's producers may do is in
    their policy; attach both.
    """
    return [
        *_call_the_api(of, Caller.OPERATOR),
        allow("sqs:GetQueueAttributes", "sqs:SendMessage", on=of.levels),
        allow(*_INSPECT, *_REDRIVE, on=[of.dead_letters]),
        allow("ssm:GetParameter", on=[of.parameter]),
        # What is put back needs its payload for as long again: it is copied onto itself.
        allow("s3:GetObject", "s3:PutObject", on=[of.payloads]),
    ]


# A policy's description never changes: that would replace the policy, whose name is in use.
_KINDS: dict[str, tuple[str, Callable[[QueueScope], Grants]]] = {
    "Producer": ("Schedule, look up and cancel jobs of queue {}.", _producer),
    "Consumer": ("Find queue {}, work off its messages, and read which of its jobs were cancelled.", _consumer),
    "Operator": ("See how queue {} is, and redrive its dead-letter queue.", _operator),
    "Direct": ("Schedule, look up and cancel jobs of queue {} without HTTP.", _direct),
}


def statements_of(kind: str, place: Construct, *, deployment: Deployment, of: QueueScope) -> Grants:
    """Return what the policy of a kind allows, such as `Producer`, the use of the deployment's key included."""
    _, grants = _KINDS[kind]
    return with_use_of_key(place, grants(of), deployment=deployment)


def add_policies(scope: Construct, *, deployment: Deployment, queue: QueueSettings) -> None:
    """Add the managed policies of a queue."""
    names = deployment.names
    for kind, (description, _) in _KINDS.items():
        place = Construct(scope, kind)
        of = QueueScope(arns=Arns(place, names=names), names=names, queue=queue)
        policy = ManagedPolicy(
            place,
            "Policy",
            managed_policy_name=names.policy(queue.name, kind.lower()),
            description=description.format(queue.name),
            statements=statements_of(kind, place, deployment=deployment, of=of),
        )
        patterns, reason = [of.payloads], "The payloads of one queue's jobs, whose ids end their keys."
        if kind == "Producer":
            requests = requests_of(Caller.PRODUCER, queue.name)
            patterns = [of.arns.request(method=method, path=path) for method, path in requests if "*" in path]
            reason = "A queue's jobs and schedules, whose names end paths."
        for pattern in patterns:
            acknowledge_wildcard(policy, pattern, reason=reason)
