"""A deployment as a construct: all its stacks, and what other stacks of the app use of it."""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from aws_cdk import Duration, Environment, Stack, Stage, Tags
from aws_cdk.aws_iam import CfnManagedPolicy, IGrantable, ManagedPolicy, PermissionsBoundary
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_lambda_event_sources import SqsEventSource
from aws_cdk.aws_sqs import DeadLetterQueue, IQueue, Queue
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.constructs.alarms import Alarms, topics_of_queue
from dueline.cdk.constructs.policies import PolicyScope, add_policies, statements_of
from dueline.cdk.constructs.storage import DurableQueue
from dueline.cdk.constructs.tick import TickSchedules
from dueline.cdk.constructs.watched import QueueDashboard
from dueline.cdk.core_stack import CoreStack
from dueline.cdk.nag import spelled
from dueline.config import ConfigurationError
from dueline.config.deployment import Deployment, of_settings
from dueline.core.job import MAX_PRIORITY
from dueline.core.queue_settings import QueueSettings

_READABLE_CHARACTERS = 8
# IAM's, of a managed policy.
MOST_CHARACTERS = 6_144
# What becomes of references in a policy, as long as it is at most.
_REFERENCES = {
    "<AWS::Partition>": "aws",
    "<AWS::Region>": "ap-southeast-99",
    "<AWS::AccountId>": "1" * 12,
    "<HttpApiId>": "a" * 10,
}


class Dueline(Construct):
    """A deployment: a core stack and, after it, a stack a queue, named after it: their order moves no queue.

    `settings` are those of queues.yaml, or `deployment` is what `load` makes of such a file. All physical names begin
    with `name`, which is made of the construct's place in the app unless it is given. The stacks are the app's own or,
    if there is one, the stage's. A stack in which the construct stands depends on them: `cdk deploy` deploys them with
    it, and `cdk destroy` leaves them.
    Raises ConfigurationError, and BundleError where the functions' libraries cannot be installed.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment | None = None, **settings: Any) -> None:
        super().__init__(scope, id)
        if deployment and settings:
            raise ConfigurationError(f"{', '.join(settings)}: settings are given, or a deployment, and not both")
        self._deployment = deployment or of_settings({"name": _name_of(self), **settings})
        around = [cast(Stack, each) for each in self.node.scopes if Stack.is_stack(each)]
        self._around = around[-1] if around else None
        names = self._deployment.names
        self._core = self._add(CoreStack, names.core_stack)
        self._queues = {
            queue.name: self._add(QueueStack, names.queue_stack(queue.name), queue=queue)
            for queue in self._deployment.queue_settings()
        }
        if self._deployment.groups:
            self._add(GroupsStack, names.groups_stack)

    @property
    def name(self) -> str:
        """The deployment's name, by which clients find it."""
        return self._deployment.name

    def queue(self, name: str) -> "DeployedQueue":
        """Return a queue, by its name in the settings. Raises ConfigurationError if there is none."""
        for queue in self._deployment.queue_settings():
            if queue.name == name:
                return DeployedQueue(self._deployment, queue, stack=self._queues[name])
        raise ConfigurationError(f"there is no queue {name!r}; there are {', '.join(self._queues) or 'none'}")

    def _add(self, kind: Any, name: str, **options: Any) -> Stack:
        around, stage = self._around, Stage.of(self)
        env = Environment(account=around.account, region=around.region) if around else None
        stack: Stack = kind(stage, name, deployment=self._deployment, stack_name=name, env=env, **options)
        if kind is not CoreStack:
            stack.add_stack_dependency(self._core)
        if around:
            around.add_stack_dependency(stack)
        stack.termination_protection = self._deployment.termination_protection
        for key, value in self._deployment.tags.items():
            Tags.of(stack).add(key, value)
            # The stack's own, which CloudFormation hands on to what it makes.
            stack.tags.set_tag(key, value)
        if arn := self._deployment.permission_boundary:
            PermissionsBoundary.of(stack).apply(ManagedPolicy.from_managed_policy_arn(stack, "Boundary", arn))
        return stack


class QueueStack(Stack):
    """A queue, its levels, dead-letter queue, schedules, policies to attach and parameter for clients."""

    def __init__(
        self, scope: Construct, id: str, *, deployment: Deployment, queue: QueueSettings, **options: Any
    ) -> None:
        description = f"Dueline: the queue {queue.name}."
        super().__init__(scope, id, description=description, suppress_template_indentation=True, **options)
        names = deployment.names
        dead_letters = self._dead_letters(deployment, queue.name)
        levels = [
            self._level(deployment, queue.name, priority, dead_letters) for priority in range(1, queue.priorities + 1)
        ]
        schedules = TickSchedules(self, "Schedules", names=names, queue=queue.name, partitions=queue.partitions)
        # A tick parks the jobs of a queue that does not exist, and jobs of a partition without a tick are lost.
        schedules.node.add_dependency(*levels)
        add_policies(self, deployment=deployment, queues=[queue])
        topics = topics_of_queue(self, deployment=deployment, queue=queue.name)
        if deployment.queues[queue.name].metrics == "queue":
            Alarms(self, "Alarms", topics=topics, deployment=deployment).on_queue(queue.name)
        if deployment.dashboards == "all":
            QueueDashboard(
                self, "Overview", deployment=deployment, queue=queue.name, levels=levels, dead_letters=dead_letters
            )
        self._publish(deployment, queue, levels, dead_letters)

    def _dead_letters(self, deployment: Deployment, queue: str) -> DurableQueue:
        names = deployment.names
        # Those of all levels that there may be: one that is given up keeps its dead-letter queue.
        levels = [names.queue(queue, priority) for priority in range(1, MAX_PRIORITY + 1)]
        name = names.queue_dlq(queue)
        return DurableQueue(self, "DeadLetterQueue", name=name, deployment=deployment, redriven_from=levels)

    def _level(self, deployment: Deployment, queue: str, priority: int, dead_letters: IQueue) -> DurableQueue:
        """Add the SQS queue of one priority."""
        settings = deployment.queues[queue]
        return DurableQueue(
            self,
            "Queue" if priority == 1 else f"Level{priority}",
            name=deployment.names.queue(queue, priority),
            deployment=deployment,
            visibility_timeout=settings.visibility_timeout,
            retention_days=settings.message_retention_days,
            dead_letter_queue=DeadLetterQueue(queue=dead_letters, max_receive_count=settings.receives),
        )

    def _publish(
        self, deployment: Deployment, queue: QueueSettings, levels: Sequence[IQueue], dead_letters: IQueue
    ) -> None:
        """Publish the queue to clients, workers and functions: the URLs of its levels, the most urgent first, and its
        settings.

        Last of all: who reads of a partition gives it jobs, and if anything failed after that, the rollback would
        take the partition's new schedule away again.
        """
        others = list(self.node.children)
        urls = [level.queue_url for level in levels]
        work = deployment.work_settings(queue, urls=urls, dead_letters=dead_letters.queue_url)
        settings = work.to_json()
        name = deployment.names.queue_parameter(queue.name)
        parameter = StringParameter(self, "Parameter", parameter_name=name, string_value=self.to_json_string(settings))
        parameter.node.add_dependency(*others)


class GroupsStack(Stack):
    """Policies to attach like those of a queue, each for all queues of a group: a role may have ten."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment, **options: Any) -> None:
        description = "Dueline: the policies of groups of queues."
        super().__init__(scope, id, description=description, suppress_template_indentation=True, **options)
        by_name = {queue.name: queue for queue in deployment.queue_settings()}
        for group, names in deployment.groups.items():
            place, queues = Construct(self, f"Group-{group}"), [by_name[name] for name in names]
            for policy in add_policies(place, deployment=deployment, queues=queues, group=group):
                self._check(policy, group)

    def _check(self, policy: ManagedPolicy, group: str) -> None:
        """Raise ConfigurationError for a policy that IAM would refuse, in the middle of a deployment."""
        made = cast(CfnManagedPolicy, policy.node.default_child)
        document = json.dumps(_spelled(self.resolve(made.policy_document)), separators=(",", ":"))
        if len(document) > MOST_CHARACTERS:
            raise ConfigurationError(
                f"groups.{group} has too many queues: its policy {made.managed_policy_name} takes {len(document):,}"
                f" characters, and IAM's limit is {MOST_CHARACTERS:,}; make two groups of it"
            )


def _spelled(value: object) -> object:
    """Return a document with the references in it as long as what becomes of them."""
    if isinstance(value, list):
        return [_spelled(each) for each in value]
    if isinstance(value, dict) and not value.keys() & {"Ref", "Fn::Join"}:
        return {name: _spelled(each) for name, each in value.items()}
    text = spelled(value)
    for reference, meant in _REFERENCES.items():
        text = text.replace(reference, meant)
    return text


class DeployedQueue:
    """A queue of a deployment, for other stacks of the app, in the account and region of the deployment.

    Rights are granted to the role of whatever is given, as a policy of its own stack, which depends on the queue's.
    """

    def __init__(self, deployment: Deployment, queue: QueueSettings, *, stack: Stack) -> None:
        self._deployment, self._queue, self._stack = deployment, queue, stack

    def grant_producer(self, grantee: IGrantable) -> None:
        """Allow to schedule, look up, move and cancel jobs of the queue, and to make its schedules."""
        self._grant("Producer", grantee)

    def grant_direct_producer(self, grantee: IGrantable) -> None:
        """Allow to schedule, look up, move and cancel jobs without the API, by a direct client."""
        self._grant("Direct", grantee)

    def grant_consumer(self, grantee: IGrantable) -> None:
        """Allow to process the jobs of the queue, as a worker does."""
        self._grant("Consumer", grantee)

    def grant_operator(self, grantee: IGrantable) -> None:
        """Allow to see how the queue is doing, to pause it, to limit its rate and to redrive its dead letters."""
        self._grant("Operator", grantee)

    def add_consumer(self, function: IFunction, **options: Any) -> None:
        """Have a Lambda function process the jobs of the queue, with the rights to do so. Each job fails alone.

        Of each priority it is an event source; `options` are those of SqsEventSource, such as `batch_size`.
        Raises ConfigurationError if the queue's visibility timeout is less than AWS advises: six times the function's
        timeout, and the batching window.
        """
        self._check_visibility(function, options.get("max_batching_window"))
        self._grant("Consumer", function)
        names, place = self._deployment.names, self._place(function)
        arns = Arns(place, names=names)
        for priority in range(1, self._queue.priorities + 1):
            name = names.queue(self._queue.name, priority)
            queue = place.node.try_find_child(name) or Queue.from_queue_arn(place, name, arns.queue(name))
            source = SqsEventSource(cast(IQueue, queue), report_batch_item_failures=True, **options)
            function.add_event_source(source)

    def _check_visibility(self, function: IFunction, window: Duration | None) -> None:
        # An alias, or a function of elsewhere, has no timeout to be seen; Lambda's own is 3 s.
        timeout = getattr(function, "timeout", None)
        least = 6 * (timeout.to_seconds() if timeout else 3) + (window.to_seconds() if window else 0)
        visible = self._deployment.queues[self._queue.name].visibility_timeout
        if visible < least:
            raise ConfigurationError(
                f"queues.{self._queue.name}.visibility_timeout is {visible}: for the function {function.node.path} it"
                f" must be at least six times its timeout, and the batching window, which is {least:g}"
            )

    def _grant(self, kind: str, grantee: IGrantable) -> None:
        place = self._place(grantee)
        names = self._deployment.names
        of = PolicyScope(arns=Arns(place, names=names, parameters=place), names=names, queues=[self._queue])
        for statement in statements_of(kind, place, deployment=self._deployment, of=of):
            grantee.grant_principal.add_to_principal_policy(statement)

    def _place(self, user: Any) -> Construct:
        """Return what holds the parameters and queues that a user's stack needs of the deployment."""
        stack, own = Stack.of(user), self._stack
        if (stack.account, stack.region) != (own.account, own.region):
            raise ConfigurationError(
                f"{user.node.path} is in {stack.account}/{stack.region}: it must be where the deployment"
                f" {self._deployment.name} is, in {own.account}/{own.region}"
            )
        stack.add_stack_dependency(own)
        id = f"Dueline-{self._deployment.name}"
        return cast(Construct, stack.node.try_find_child(id) or Construct(stack, id))


def _name_of(construct: Construct) -> str:
    """Return a name that no other place of an app has: the construct's id, and a hash of its path."""
    readable = re.sub("[^a-z0-9]", "", construct.node.id.lower()).lstrip("0123456789")[:_READABLE_CHARACTERS]
    return f"{readable or 'dueline'}-{construct.node.addr[-6:]}"
