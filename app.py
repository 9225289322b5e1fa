"""The CDK app: the stacks that queues.yaml describes."""

import sys
from pathlib import Path

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from dueline.cdk import Dueline, load
from dueline.cdk.bundle import BundleError
from dueline.config import ConfigurationError

app = App(analytics_reporting=False)
try:
    Dueline(app, "Dueline", deployment=load(Path(app.node.try_get_context("queues") or "queues.yaml")))
except (BundleError, ConfigurationError) as error:
    sys.exit(str(error))
Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
