"""The CDK app of the sandbox: a deployment as any other, of which nothing outlives its stacks."""

from aws_cdk import App, CfnResource, RemovalPolicy

from dueline.cdk import Dueline, load
from tests.acceptance.sandbox import QUEUES

app = App(analytics_reporting=False)
Dueline(app, "Dueline", deployment=load(QUEUES))
for each in app.node.find_all():
    if CfnResource.is_cfn_resource(each):
        each.apply_removal_policy(RemovalPolicy.DESTROY)
        if each.cfn_resource_type == "AWS::DynamoDB::Table":
            each.add_property_override("DeletionProtectionEnabled", False)
app.synth()
