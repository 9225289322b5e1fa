"""The CDK app of the sandbox: a deployment as any other, of which nothing outlives its stacks."""

from typing import Any

from aws_cdk import App, CfnResource, RemovalPolicy

from dueline.cdk import Dueline, load
from tests.acceptance.sandbox import QUEUES


def synthesize(**options: Any) -> None:
    app = App(analytics_reporting=False, **options)
    Dueline(app, "Dueline", deployment=load(QUEUES))
    for each in app.node.find_all():
        if CfnResource.is_cfn_resource(each):
            each.apply_removal_policy(RemovalPolicy.DESTROY)
            if each.cfn_resource_type == "AWS::DynamoDB::Table":
                each.add_property_override("DeletionProtectionEnabled", False)
    app.synth()


if __name__ == "__main__":
    synthesize()
