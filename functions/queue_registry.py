"""The declared queues, and which of their partitions can take jobs: those whose schedules are deployed.

This code is deployed before the queues' stacks, in which the schedules are.
"""

import os
from dataclasses import replace
from datetime import timedelta

from dueline.aws import clients
from dueline.aws.published import Published
from dueline.aws.standing import Standing
from dueline.clock import SystemClock
from dueline.config.names import Names
from dueline.config.registry import Registry
from dueline.config.settings import Settings
from functions.declared_queues import DECLARED

# Little of a function's time, for without an answer there is another way or a later try.
_LONGEST_REQUEST = timedelta(seconds=4)
_CLOCK = SystemClock()
_PUBLISHED = Published(
    clients.ssm(longest=_LONGEST_REQUEST), Names(Settings.from_env(os.environ).deployment), clock=_CLOCK
)

_STANDING = Standing(_PUBLISHED.anew, clock=_CLOCK, all_published=_PUBLISHED.some)

REGISTRY: Registry = replace(DECLARED, standing=_STANDING, standings=_STANDING.of_each)
