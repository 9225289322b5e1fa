"""The managed policies of a queue, or of a group of queues: producers, direct producers, consumers and operators."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aws_cdk.aws_iam import ManagedPolicy, PolicyStatement
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.constructs.storage import keys_of_queue
from dueline.cdk.grants import allow, allow_on_rows, with_use_of_key
from dueline.cdk.nag import acknowledge_wildcard
from dueline.config.deployment import Deployment
from dueline.config.names import Names
from dueline.config.routes import Caller, requests_of, requests_of_all
from dueline.core.queue_settings import QueueSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyScope:
    """What belongs to a queue, or to all queues of a group, as their policies name it."""

    arns: Arns
    names: Names
    queues: Sequence[QueueSettings]
    group: str | None = None

    def __str__(self) -> str:
        return f"group {self.group}" if self.group else f"queue {self.queues[0].name}"

    def policy(self, kind: str) -> str:
        """Return the name of the policy of a kind, such as `producer`."""
        if self.group:
            return self.names.group_policy(self.group, kind)
        return self.names.policy(self.queues[0].name, kind)

    @property
    def levels(self) -> list[str]:
        """The SQS queues of all priorities."""
        return [
            self.arns.queue(self.names.queue(queue.name, priority))
            for queue in self.queues
            for priority in range(1, queue.priorities + 1)
        ]

    @property
    def dead_letters(self) -> list[str]:
        return [self.arns.queue(self.names.queue_dlq(queue.name)) for queue in self.queues]

    @property
    def parameters(self) -> list[str]:
        """What the queues publish of themselves."""
        return [self.arns.parameter(self.names.queue_parameter(queue.name)) for queue in self.queues]

    @property
    def payloads(self) -> list[str]:
        return [self.arns.payloads(keys_of_queue(queue.name)) for queue in self.queues]

    def requests(self, caller: Caller) -> list[tuple[str, str]]:
        """Return the methods and paths of a caller's requests that concern these queues."""
        if self.group and caller is Caller.PRODUCER:
            return [(method, f"queues/{each.name}{path}") for each in self.queues for method, path in _BRIEFLY]
        return [request for queue in self.queues for request in requests_of(caller, queue.name)]

    def rows(self, *rest: str) -> list[str]:
        """Return the partition keys that begin with a queue's name and `#`, and go on with any of some patterns."""
        return [f"{queue.name}#{each}" for queue in self.queues for each in rest]


_READ = ("dynamodb:BatchGetItem", "dynamodb:GetItem")
_WRITE = ("dynamodb:BatchWriteItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
_RECEIVE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes")
# What Powertools' Idempotency does with its table.
_IDEMPOTENCY = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem")
# What follows a queue's name and `#` in the keys of its partitions, 0 to 999, and of its idempotency keys' partitions.
# `control`, `rate` and `outcome#0` are longer.
_DIRECT_ROWS = ("?", "??", "???", "keys?", "keys??")
# A group's producers' requests, for the 6,144 characters of a policy: there is no other method or path.
_BRIEFLY = (("*", "/jobs*"), ("*", "/uploads"), ("*", "/cancellations"), ("*", "/schedules*"), ("GET", ""))
_INSPECT = ("sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
_REDRIVE = ("sqs:StartMessageMoveTask", "sqs:ListMessageMoveTasks", "sqs:CancelMessageMoveTask")


Grants = list[PolicyStatement]


def _producer(of: PolicyScope) -> Grants:
    """Allow to schedule, look up, list and cancel jobs of one queue and of no other.

    And to make, change and run its schedules: a team that may send any job may have it sent again and again.

    What controls the queue's workers lies below its path too, and is the operator's: so paths are named one by one.
    It allows to find the API, to see how that queue is doing, and the names and settings of all and the next runs
    of a rule, which have no queue in their path.
    """
    return _call_the_api(of, Caller.PRODUCER)


def _call_the_api(of: PolicyScope, caller: Caller) -> Grants:
    """Allow a caller's requests, over the gateway and by the aliases of the function, and to find both."""
    arns, names, requests = of.arns, of.names, of.requests(caller) + requests_of_all()
    parameters = [arns.parameter(name) for name in (names.api_url_parameter, names.api_function_parameter)]
    return [
        allow("execute-api:Invoke", on=[arns.request(method=method, path=path) for method, path in requests]),
        allow("lambda:InvokeFunction", on=[arns.alias("api", caller.alias_of(queue.name)) for queue in of.queues]),
        allow("ssm:GetParameter", on=parameters),
    ]


def _direct(of: PolicyScope) -> Grants:
    """Allow to schedule, look up, list and cancel jobs of one queue, without HTTP.

    It allows to write the rows of that queue's jobs, and nothing of what controls their way: fences, leases, pause and
    rate can be read alone. Not to send to the inbound queue, by which jobs reach any queue. What goes over HTTP is in
    the producer's policy; attach both where both are needed.
    """
    arns, names, rows = of.arns, of.names, of.rows("*")
    of_deployment = [arns.parameter(name) for name in (names.settings_parameter, names.schema_parameter)]
    parameters = [*of.parameters, arns.parameter(names.api_url_parameter), *of_deployment]
    return [
        allow_on_rows(*_READ, "dynamodb:Query", table=arns.table, keys=rows),
        allow_on_rows(*_WRITE, table=arns.table, keys=of.rows(*_DIRECT_ROWS)),
        # A transaction checks a partition's fence.
        allow_on_rows(*_READ, "dynamodb:ConditionCheckItem", table=arns.state, keys=rows),
        allow("sqs:GetQueueAttributes", "sqs:SendMessage", on=of.levels),
        allow("sqs:GetQueueAttributes", on=of.dead_letters),
        allow("s3:GetObject", "s3:PutObject", on=of.payloads),
        allow("ssm:GetParameter", on=parameters),
        allow("ssm:GetParameters", on=of_deployment),
    ]


def _consumer(of: PolicyScope) -> Grants:
    """Allow to find one queue, to process its messages and to see which were cancelled.

    And to read offloaded payloads, to see whether the queue is paused, to take slots of its rate and locks of its
    schedules, to write the outcomes of its jobs if it tracks them and the rows of `once`, and to move failed jobs into
    the queue's dead-letter queue. What may be written has partition keys of its own: a right to write one row of a key
    is one to write all.
    """
    arns, tracked = of.arns, [f"{queue.name}#outcome#*" for queue in of.queues if queue.track]
    return [
        allow(*_RECEIVE, on=of.levels),
        allow("sqs:SendMessage", on=of.dead_letters),
        allow("ssm:GetParameter", on=of.parameters),
        allow_on_rows(*_READ, table=arns.table, keys=of.rows("*")),
        allow_on_rows(*_READ, table=arns.state, keys=of.rows("control")),
        allow_on_rows("dynamodb:UpdateItem", table=arns.state, keys=of.rows("rate", "runs")),
        allow_on_rows(*_IDEMPOTENCY, table=arns.once, keys=of.rows("*")),
        *([allow_on_rows("dynamodb:PutItem", table=arns.table, keys=tracked)] if tracked else []),
        allow("s3:GetObject", on=of.payloads),
    ]


def _operator(of: PolicyScope) -> Grants:
    """Allow to see how one queue is doing, and to redrive its dead-letter queue.

    And to pause and resume it, to limit its rate, and to find it and the API. What the queue's producers may do is in
    their policy; attach both.
    """
    return [
        *_call_the_api(of, Caller.OPERATOR),
        allow("sqs:GetQueueAttributes", "sqs:SendMessage", on=of.levels),
        allow(*_INSPECT, *_REDRIVE, on=of.dead_letters),
        allow("ssm:GetParameter", on=of.parameters),
        # What is put back needs its payload for as long again: it is copied onto itself.
        allow("s3:GetObject", "s3:PutObject", on=of.payloads),
    ]


# A policy's description never changes: that would replace the policy, whose name is in use.
_KINDS: dict[str, tuple[str, Callable[[PolicyScope], Grants]]] = {
    "Producer": ("Schedule, look up and cancel jobs of {}.", _producer),
    "Consumer": ("Find {}, work off its messages, and read which of its jobs were cancelled.", _consumer),
    "Operator": ("See how {} is, and redrive its dead-letter queue.", _operator),
    "Direct": ("Schedule, look up and cancel jobs of {} without HTTP.", _direct),
}


def statements_of(kind: str, place: Construct, *, deployment: Deployment, of: PolicyScope) -> Grants:
    """Return what the policy of a kind allows, such as `Producer`, the use of the deployment's key included."""
    _, grants = _KINDS[kind]
    return with_use_of_key(place, grants(of), deployment=deployment)


def add_policies(
    scope: Construct, *, deployment: Deployment, queues: Sequence[QueueSettings], group: str | None = None
) -> list[ManagedPolicy]:
    """Add the managed policies of a queue, or of a group of queues."""
    names, policies = deployment.names, []
    for kind, (description, _) in _KINDS.items():
        place = Construct(scope, kind)
        of = PolicyScope(arns=Arns(place, names=names), names=names, queues=queues, group=group)
        policy = ManagedPolicy(
            place,
            "Policy",
            managed_policy_name=of.policy(kind.lower()),
            description=description.format(of),
            statements=statements_of(kind, place, deployment=deployment, of=of),
        )
        patterns, reason = of.payloads, "The payloads of one queue's jobs, whose ids end their keys."
        if kind == "Producer":
            requests = of.requests(Caller.PRODUCER)
            patterns = [of.arns.request(method=method, path=path) for method, path in requests if "*" in method + path]
            reason = "A queue's jobs and schedules, whose names end paths."
        for pattern in patterns:
            acknowledge_wildcard(policy, pattern, reason=reason)
        policies.append(policy)
    return policies
