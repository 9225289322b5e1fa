"""The functions' logger, which writes lines of JSON.

Each byte is paid for: a line holds nothing that its log group's name says already, and what went well is told at the
level DEBUG, for whoever turns that on.
"""

import logging
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

# Lambda gives the root logger the level that is set for the function, and all libraries have it from there. At DEBUG
# botocore tells each request, with payloads and session tokens. Our logger asks for that level itself.
logging.root.setLevel(max(logging.root.level, logging.INFO))

_LEFT_OUT = frozenset({"location", "service", "function_name", "function_memory_size", "function_arn"})


class _Formatter(LambdaPowertoolsFormatter):
    def serialize(self, log: dict[str, Any]) -> str:  # type: ignore[override]
        return super().serialize({name: value for name, value in log.items() if name not in _LEFT_OUT})


def log(service: str | None = None) -> Logger:
    """Return the logger of a function, by default that of the environment. The same one each time."""
    # Of a line whose time is not of RFC 3339, Lambda takes the level to be INFO:
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
    return Logger(service=service, logger_formatter=_Formatter(use_rfc3339=True))
