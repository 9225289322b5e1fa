"""The declared queues, and which of their partitions can take jobs: those whose schedules are deployed.

This code is deployed before the queues' stacks, in which the schedules are.
"""

import os
from dataclasses import replace
from datetime import timedelta

from dueline.aws.aws_deployment import AwsDeployment
from dueline.aws.settings import ActivePartitions
from dueline.config.environment import Settings
from dueline.config.registry import Registry
from dueline.functions.declared_queues import DECLARED

# Little of a function's time, for without an answer there is another way or a later try.
_LONGEST_REQUEST = timedelta(seconds=5)
_DEPLOYMENT = AwsDeployment(Settings.from_env(os.environ).deployment, longest=_LONGEST_REQUEST)
_ACTIVE = ActivePartitions(_DEPLOYMENT.settings_store().published, queues=DECLARED.queues, clock=_DEPLOYMENT.clock)

REGISTRY: Registry = replace(DECLARED, active_partitions=_ACTIVE)
