"""The CDK app: the stacks that queues.yaml describes."""

import json
import sys
from pathlib import Path

from aws_cdk import App

from dueline.config import ConfigurationError
from dueline.config.deployment import load
from infra.bundle import BundleError
from infra.stacks import add_stacks

_HERE = Path(__file__).parent


def main() -> None:
    # The CDK's command line reads cdk.json; a synthesis without it keeps to the same feature flags.
    app = App(context=json.loads((_HERE / "cdk.json").read_text())["context"], analytics_reporting=False)
    try:
        deployment = load(Path(app.node.try_get_context("queues") or _HERE / "queues.yaml"))
        add_stacks(app, deployment=deployment)
    except (BundleError, ConfigurationError) as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
