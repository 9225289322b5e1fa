"""A deployment as a construct: all its stacks, and what other stacks of the app use of it."""

import re
from typing import Any

from aws_cdk import Environment, Stack, Stage, Tags
from aws_cdk.aws_iam import ManagedPolicy, PermissionsBoundary
from constructs import Construct

from dueline.cdk.core_stack import CoreStack
from dueline.cdk.queue_stack import GroupsStack, QueueStack
from dueline.config.deployment import Deployment, of_settings

_READABLE_CHARACTERS = 8


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
        self._deployment = deployment or of_settings({"name": _name_of(self), **settings})
        self._around = next((each for each in reversed(self.node.scopes) if Stack.is_stack(each)), None)
        names = self._deployment.names
        self._core = self._add(CoreStack, names.core_stack)
        for queue in self._deployment.queue_settings():
            self._add(QueueStack, names.queue_stack(queue.name), queue=queue)
        if self._deployment.groups:
            self._add(GroupsStack, names.groups_stack)

    @property
    def name(self) -> str:
        """The deployment's name, by which clients find it."""
        return self._deployment.name

    def _add(self, kind: Any, name: str, **options: Any) -> Stack:
        around, stage = self._around, Stage.of(self)
        env = Environment(account=around.account, region=around.region) if around else None
        stack: Stack = kind(stage, name, deployment=self._deployment, stack_name=name, env=env, **options)
        if kind is not CoreStack:
            stack.add_stack_dependency(self._core)
        if around:
            around.add_stack_dependency(stack)
        _apply_what_all_have(stack, self._deployment)
        return stack


def _name_of(construct: Construct) -> str:
    """Return a name that no other place of an app has: the construct's id, and a hash of its path."""
    readable = re.sub("[^a-z0-9]", "", construct.node.id.lower()).lstrip("0123456789")[:_READABLE_CHARACTERS]
    return f"{readable or 'dueline'}-{construct.node.addr[-6:]}"


def _apply_what_all_have(stack: Stack, deployment: Deployment) -> None:
    stack.termination_protection = deployment.termination_protection
    for key, value in deployment.tags.items():
        Tags.of(stack).add(key, value)
        # The stack's own, which CloudFormation hands on to what it makes.
        stack.tags.set_tag(key, value)
    if deployment.permission_boundary:
        boundary = ManagedPolicy.from_managed_policy_arn(stack, "Boundary", deployment.permission_boundary)
        PermissionsBoundary.of(stack).apply(boundary)
