"""All the stacks of a deployment."""

from aws_cdk import App, Stack, Tags, Validations
from aws_cdk.aws_iam import ManagedPolicy, PermissionsBoundary
from cdk_nag import AwsSolutionsChecks

from dueline.config.deployment import Deployment
from infra.core_stack import CoreStack
from infra.queue_stack import GroupsStack, QueueStack


def add_stacks(app: App, *, deployment: Deployment) -> None:
    """Add the core stack and, after it, a stack a queue, named after it: their order moves no queue.

    Raises ConfigurationError for a group of too many queues.
    """
    names = deployment.names
    core = CoreStack(app, names.core_stack, deployment=deployment)
    _apply_what_all_have(core, deployment)
    for queue in deployment.queue_settings():
        stack = QueueStack(app, names.queue_stack(queue.name), deployment=deployment, queue=queue)
        stack.add_stack_dependency(core)
        _apply_what_all_have(stack, deployment)
    if deployment.groups:
        groups = GroupsStack(app, names.groups_stack, deployment=deployment)
        groups.add_stack_dependency(core)
        _apply_what_all_have(groups, deployment)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))


def _apply_what_all_have(stack: Stack, deployment: Deployment) -> None:
    stack.termination_protection = deployment.termination_protection
    for key, value in deployment.tags.items():
        Tags.of(stack).add(key, value)
        # The stack's own, which CloudFormation hands on to what it makes.
        stack.tags.set_tag(key, value)
    if deployment.permission_boundary:
        boundary = ManagedPolicy.from_managed_policy_arn(stack, "Boundary", deployment.permission_boundary)
        PermissionsBoundary.of(stack).apply(boundary)
