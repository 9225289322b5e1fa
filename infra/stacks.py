"""All the stacks of a deployment."""

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from dueline.config.deployment import Deployment
from infra.core_stack import CoreStack
from infra.queue_stack import QueueStack


def add_stacks(app: App, *, deployment: Deployment) -> None:
    """Add the core stack and, after it, a stack a queue, named after it: their order moves no queue."""
    names = deployment.names
    core = CoreStack(app, names.core_stack, deployment=deployment)
    for queue in deployment.queue_settings():
        QueueStack(app, names.queue_stack(queue.name), deployment=deployment, queue=queue).add_stack_dependency(core)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
