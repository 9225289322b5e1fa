"""An app whose stacks Terraform deploys: without `cdk bootstrap`."""

from aws_cdk import App, CliCredentialsStackSynthesizer

from dueline.cdk import Dueline

app = App(default_stack_synthesizer=CliCredentialsStackSynthesizer(file_assets_bucket_name="shop-artifacts"))
Dueline(app, "Jobs", name="shop", queues={"emails": {}})
app.synth()
